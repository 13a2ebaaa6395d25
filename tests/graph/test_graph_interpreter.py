"""A graph run node by node equals the NumPy expression that it represents."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.core.avals import aval
from runnel.core.dtypes import float64
from runnel.core.errors import VerifierError
from runnel.graph import interpreter
from runnel.graph.node import applied
from runnel.ops.elementwise.arithmetic import add_p, mul_p
from runnel.ops.shapes.broadcasting import sum_p

from .build import argument, constant, graph, op, variable


def test_outputs_and_updates() -> None:
    x, w = argument(2, 3), variable(2, 3)
    product = op(mul_p, x, w)
    program = graph([x, w], op(sum_p, product, axes=(1,)), x, updates={w: op(add_p, w, constant([[2.0]]))})
    xs, ws = np.arange(6, dtype=np.float32).reshape(2, 3), np.full((2, 3), 0.5, np.float32)
    (total, same), (new,) = interpreter.run(program, [xs, ws])
    np.testing.assert_array_equal(total, (xs * ws).sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(new, ws + 2)
    assert same is xs


def test_values_are_checked() -> None:
    x = argument(2)
    with pytest.raises(VerifierError, match="must get 1 input values; got 0"):
        interpreter.run(graph([x], x), [])
    with pytest.raises(VerifierError, match=r"shape \(3,\) and dtype float32"):
        interpreter.run(graph([x], x), [np.zeros(3, np.float32)])
    with pytest.raises(VerifierError, match="dtype float32"):
        interpreter.run(graph([x], applied(add_p, (x, x), {}, aval((2,), float64))), [np.zeros(2, np.float32)])
    with pytest.raises(VerifierError, match="does not list"):
        interpreter.run(graph([], op(add_p, x, x)), [])
