"""Numbers reach a dtype by one rounding, wherever they come from; extrema know the sign of zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.core.conversion import rounded
from runnel.core.dtypes import bfloat16
from runnel.core.errors import DTypeError

STEP = 2.0**-7  # of bfloat16, from 1 on
CASES = [
    1 + STEP / 2 + 2.0**-40, 1 + STEP / 2, 1 + 3 * STEP / 2 - 2.0**-40, -1 - STEP / 2 - 2.0**-50, 2.0**-134 + 2.0**-180,
    3.4e38, 1e39, -1e300, 1e-320, 0.0, -0.0, 0.1,
]  # fmt: skip
INTEGERS = [2**40 + 2**32 + 1, -(2**40) - 2**32 - 1, 2**62 + 2**54 + 1, 2**63 - 1, -(2**63), 257, 2**31 + 2**23 + 1]
BITS = np.arange(1 << 16, dtype=np.uint16)
FINITE = sorted(set(BITS[BITS & 0x7F80 < 0x7F80].view(bfloat16.numpy).astype(np.float64).tolist()))


def nearest(x: float | int) -> float:
    """The bfloat16 nearest to a finite number, the even one of two, by exact arithmetic."""
    exact = Fraction(x)
    if abs(exact) >= Fraction(FINITE[-1]) + Fraction(2) ** 119:
        return float(np.sign(float(exact)) * np.inf)
    at = int(np.searchsorted(FINITE, float(exact)))
    around = [FINITE[i] for i in range(max(at - 2, 0), min(at + 2, len(FINITE)))]
    least = min(abs(Fraction(v) - exact) for v in around)
    ties = [v for v in around if abs(Fraction(v) - exact) == least]
    return next((v for v in ties if int(np.asarray(v).astype(bfloat16.numpy).view(np.uint16)) % 2 == 0), ties[0])


def bits(t: Any) -> int:
    array = t.numpy() if isinstance(t, rn.Tensor) else np.asarray(t)
    return int(array.reshape(-1)[:1].view(np.uint16)[0])


@pytest.mark.parametrize("x", CASES, ids=repr)
def test_floats_become_bfloat16_in_one_rounding(x: float) -> None:
    expected = bits(np.asarray(np.copysign(nearest(x), x)).astype(bfloat16.numpy))
    one = rn.ones((3,), rn.bfloat16)
    ways = {
        "asarray": rn.asarray(x, rn.bfloat16), "full": rn.full((2,), x, rn.bfloat16), "eager": one * x,
        "compiled": rn.compile(lambda t: t * x)(one), "argument": rn.compile(lambda t, s: t * s)(one, x),
        "list": rn.asarray([x, x], rn.bfloat16), "Variable": rn.Variable(np.array([x]), dtype=rn.bfloat16).read(),
        "cast": rn.asarray(np.array([x])).astype(rn.bfloat16), "rounded": rounded(x, bfloat16).reshape(1),
        "folded": rn.compile(lambda t: t * rn.asarray(x, rn.float64).astype(rn.bfloat16))(one),
    }  # fmt: skip
    assert {name: bits(way) for name, way in ways.items()} == dict.fromkeys(ways, expected)


@pytest.mark.parametrize("x", INTEGERS)
def test_integers_become_bfloat16_in_one_rounding(x: int) -> None:
    expected = bits(np.asarray(nearest(x)).astype(bfloat16.numpy))
    array = np.array([x], np.int64)
    assert bits(rounded(array, bfloat16)) == bits(rn.asarray(array).astype(rn.bfloat16)) == expected
    assert bits(rn.asarray(array, rn.bfloat16)) == expected
    if x >= 0:
        unsigned = array.astype(np.uint64)
        assert bits(rounded(unsigned, bfloat16)) == bits(rn.asarray(unsigned).astype(rn.bfloat16)) == expected


WIDE = [2**70, -(2**70), 2**80 + 2**72 + 1, 2**80 + 2**72, -(2**100) - 3 * 2**92, 2**64, 2**127, 10**400, -(10**400)]


@pytest.mark.parametrize("x", WIDE)
def test_ints_of_any_size_are_numbers(x: int) -> None:
    """Beyond 64 bits, too, eagerly and compiled, for every float dtype; too large is infinite, as with floats."""
    for dtype in (rn.bfloat16, rn.float16, rn.float32, rn.float64):
        zeros = rn.zeros((2,), dtype)
        for function in (lambda y: y + x, rn.compile(lambda y: y + x)):
            actual = function(zeros)
            assert actual.dtype is dtype
            if abs(x) > 2**1023:
                assert actual[0].item() == (np.inf if x > 0 else -np.inf)
            elif dtype is rn.bfloat16:
                assert actual[0].item() == nearest(x)
            elif dtype is not rn.float16:
                assert actual[0].item() == dtype.numpy.type(float(x)).item()


@pytest.mark.parametrize("dtype", [rn.float32, rn.float64, rn.float16, rn.bfloat16], ids=str)
def test_zeros_in_extrema(dtype: Any) -> None:
    """+0 is greater than -0 (IEEE 754-2019), on either side, beside constants and among many."""
    signs = [(0.0, 0.0), (0.0, -0.0), (-0.0, 0.0), (-0.0, -0.0)]
    for x, y in signs:
        a, b = rn.full((19,), x, dtype), rn.full((19,), y, dtype)
        both = [np.signbit(v) for v in (x, y)]
        for op, negative in ((ops.maximum, all(both)), (ops.minimum, any(both))):
            actual = [op(a, b), op(a, y), op(x, b), rn.compile(lambda a, op=op, y=y: op(a, y) * 1)(a)]
            actual += [rn.compile(op)(a, b), rn.compile(lambda a, s, op=op: op(a, s))(a, y)]
            for result in actual:
                assert (np.signbit(result.numpy().astype(np.float64)) == negative).all()


def test_contiguous_is_dense() -> None:
    base = rn.asarray(np.arange(64.0).reshape(8, 8))
    views = (
        base[:, ::2],
        base[::2, ::2],
        base.T,
        base[::-1],
        base[:, ::-1],
        base[3, ::2],
        ops.broadcast_to(base[0, :1], (3, 3)),
    )
    for view in views:
        dense = view.contiguous()
        np.testing.assert_array_equal(dense.numpy(), view.numpy())
        assert dense.strides == tuple(s // 8 for s in np.ascontiguousarray(view.numpy()).strides)


N = rn.int8
MISFITS: dict[str, Callable[[Any], Any]] = {
    "asarray": lambda v: rn.asarray(v, N), "list": lambda v: rn.asarray([v, v], N),
    "full": lambda v: rn.full((2,), v, N), "full_like": lambda v: rn.full_like(rn.zeros(2, N), v),
    "new_full": lambda v: rn.zeros(2, N).new_full((2,), v), "new_tensor": lambda v: rn.zeros(2, N).new_tensor([v]),
    "fill": lambda v: rn.zeros(2, N).fill_(v), "Variable": lambda v: rn.Variable([v], dtype=N).read(),
    "linspace": lambda v: rn.linspace(v, v, 1, dtype=N),
}  # fmt: skip


@pytest.mark.parametrize("way", MISFITS)
def test_numbers_that_an_integer_dtype_lacks_are_refused(way: str) -> None:
    make = MISFITS[way]
    bad = [300, -129, 300.0, 1e30, *([] if way == "linspace" else [math.inf, math.nan])]
    compiled = [] if way == "Variable" else [rn.compile(lambda x, v: make(v) + x)]
    for call in (lambda x, v: make(v) + x, *compiled):
        for good in (127, -128, 127.9, -0.5):
            assert (call(rn.zeros(1, N), good) == int(good)).all()
        for value in bad:
            with pytest.raises(DTypeError, match=r"the Python number .* does not fit int8"):
                call(rn.zeros(1, N), value)
    with pytest.raises(DTypeError, match=r"\[arange\] the Python number 200"):
        rn.arange(0, 300, 100, dtype=N)
    assert rn.asarray(np.array([300]), N).tolist() == [44], "arrays wrap, as in astype()"
