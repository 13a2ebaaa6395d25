"""Reductions in another dtype than their operand's: one pass over it, and one rounding at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.backends.host import memory

REDUCTIONS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "sum of int8": (np.int8, ops.sum), "sum as float64": (np.float32, lambda x: ops.sum(x, dtype=rn.float64)),
    "sum of bool": (np.bool_, ops.sum), "mean of int16": (np.int16, lambda x: ops.mean(x, 1)),
    "prod of uint8": (np.uint8, lambda x: ops.prod(x, 1)), "any of float32": (np.float32, ops.any),
    "all of int32": (np.int32, lambda x: ops.all(x, (0, 1))), "sum of float16": (np.float16, lambda x: ops.sum(x, 1)),
    "mean of float16": (np.float16, ops.mean), "sum as int64": (np.float32, lambda x: ops.sum(x, dtype=rn.int64)),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_cast_is_not_stored(name: str) -> None:
    dtype, reduce = REDUCTIONS[name]
    x = rn.asarray(np.ones((1024, 2048), dtype))
    expected = reduce(x)
    memory.reset_peak()
    before = memory.statistics().live
    actual = reduce(x)
    assert memory.statistics().peak - before <= 1 << 14
    np.testing.assert_array_equal(actual.numpy(), expected.numpy())
    compiled = rn.compile(reduce)(x)
    assert compiled.numpy().tobytes() == actual.numpy().tobytes()


def test_gradients_pass_through() -> None:
    x = rn.asarray(np.array([[1.0, 2.0], [3.0, 0.5]]), rn.float16)
    g = rn.grad(lambda t: ops.sum(ops.prod(t, 1)).astype(rn.float32))(x)
    assert g.dtype is rn.float16
    np.testing.assert_allclose(g.numpy(), [[2, 1], [0.5, 3]])


@pytest.mark.parametrize("dtype", [rn.float16, rn.bfloat16], ids=str)
def test_statistics_of_halves_round_once(dtype: Any) -> None:
    """Sums that would overflow in half precision are not formed in it."""
    x = rn.asarray(np.random.default_rng(0).normal(200, 10, 3000), dtype)
    wide = x.numpy().astype(np.float64)
    step = 2.0**-10 if dtype is rn.float16 else 2.0**-7
    expected = {
        ops.mean: wide.mean(), ops.var: wide.var(), ops.std: wide.std(), ops.norm: np.linalg.norm(wide),
        ops.logsumexp: np.log(np.sum(np.exp(wide - wide.max()))) + wide.max(),
    }  # fmt: skip
    for function, value in expected.items():
        actual = function(x)
        assert actual.dtype is dtype
        assert abs(float(actual.numpy()) - value) <= step * abs(value), function.__name__
