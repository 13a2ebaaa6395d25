"""Derivatives of conversions, and of reductions in another dtype: exact, and rounded to the operand's dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops

X = np.array([[1.5, -2.0, 0.25], [4.0, 8.0, -0.5]])
T = np.array([[0.5, 1.0, -2.0], [0.25, -1.0, 4.0]])
PROD = np.array([[-0.5, 0.375, -3.0], [-4.0, -2.0, 32.0]])  # of the others of the row
CASES: dict[str, tuple[Callable[[Any], Any], np.ndarray[Any, Any]]] = {
    "cast up": (lambda x: ops.cast(x, rn.float64), np.ones((2, 3))),
    "cast down": (lambda x: ops.cast(x, rn.float16), np.ones((2, 3))),
    "cast_reduce by sum": (lambda x: ops.sum(x, 1, dtype=rn.float64), np.ones((2, 3))),
    "cast_reduce by prod": (lambda x: ops.prod(x, 1, dtype=rn.float64), PROD),
    "cast_reduce by mean": (lambda x: ops.mean(x, 1, dtype=rn.float64), np.full((2, 3), 1 / 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_and_tangents(name: str) -> None:
    function, expected = CASES[name]
    x = rn.asarray(X, rn.float32)
    g = rn.grad(lambda x: ops.sum(ops.cast(function(x), rn.float64)))(x)
    assert g.dtype is rn.float32
    np.testing.assert_array_equal(g.numpy(), expected.astype(np.float32))
    out, tangent = rn.jvp(function, (x,), (rn.asarray(T, rn.float32),))
    assert tangent.dtype is out.dtype
    along = (expected * T).sum(1) if out.ndim == 1 else expected * T
    np.testing.assert_allclose(tangent.numpy(), along, rtol=1e-7)
