"""Test the arguments of compiled functions: kinds, structures, dtypes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import runnel as rn
from runnel.compile import compile
from runnel.core.errors import CaptureWarning
from tests.compile.capture.agreeing import check, tensor


def test_slices() -> None:
    x = rn.asarray(np.arange(20, dtype=np.float32).reshape(4, 5))
    calls = [(x[i : i + n],) for i in range(3) for n in (1, 2)] + [(x[:, i:],) for i in range(3)] + [(x[::2],)]
    check(lambda t: t * 2 + 1, *calls)


def test_same_tensor_twice_and_nests() -> None:
    x, y = tensor(1, 2), tensor(3, 4)
    check(lambda a, b: a * b + a, (x, x), (x, y), (y, y))

    @dataclasses.dataclass
    class Batch:
        x: rn.Tensor
        scale: float
        name: str

    def nested(batch, pair, table, nothing):
        return {
            "sum": batch.x * batch.scale + pair[0] - pair[1][0],
            "name": batch.name,
            "table": [table["a"] + 1, (table["b"], nothing)],
            "batch": Batch(batch.x + 1, 2.0, "out"),
            "n": 3,
        }

    check(
        nested,
        (Batch(x, 2.0, "p"), (x, [y]), {"a": x, "b": 3}, None),
        (Batch(y, 3.0, "p"), (y, [x]), {"a": y, "b": 3}, None),
        (Batch(y, 3.0, "q"), (y, [x]), {"a": y, "b": 4}, None),
    )


def test_dtypes() -> None:
    dtypes = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8"]
    xs = [rn.asarray([0, 1, 2, 3]).astype(dtype) for dtype in dtypes]
    check(lambda x: (x + x, x * 2, x > 1, x), *[(x,) for x in xs])
    check(lambda x: (x == x, x), *[(x,) for x in (*xs, xs[0] > 1)])


def test_shapes() -> None:
    def f(x):
        return (x * 2).sum(), x + 1

    shapes = [(), (0,), (1,), (3,), (2, 3), (0, 3), (3, 1, 2)]
    check(f, *[(rn.asarray(np.ones(s, np.float32)),) for s in shapes])


def test_layouts_and_numpy_arrays() -> None:
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    t = rn.asarray(base)
    check(lambda x: x * 2 + x.sum(0), (t.T,), (t[:, ::2],), (t[::-1],), (t,))
    compiled = compile(lambda x: rn.asarray(x) * 2)
    for array in (base, base.T, base[:, 1:], base[::-1]):
        assert np.array_equal(compiled(array).numpy(), array * 2)
    base[0] = 100
    assert np.array_equal(compiled(base).numpy(), base * 2)
    with pytest.warns(CaptureWarning, match="NumPy computes with the array 'x'"):
        assert type(compile(lambda x: x * 2)(base)) is np.ndarray
