"""Which nodes are one value, and which only look like one."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.compiler.passes.simplify import merge_common_subexpressions
from runnel.core.avals import aval
from runnel.core.dtypes import float32, float64, int32
from runnel.graph.node import Value, applied
from runnel.ops.conversion import cast_p
from runnel.ops.elementwise.arithmetic import add_p, mul_p, neg_p
from runnel.ops.shapes.views import reshape_p

from ...graph.build import argument, constant, graph, op, variable

X, Y = argument(2, 3), argument(2, 3)


def with_attr(value: object) -> Value:
    return applied(neg_p, (X,), {"a": value}, aval((2, 3), float32))


ONE = {
    "same op": (op(add_p, X, Y), op(add_p, X, Y, where="elsewhere.py:1")),
    "same attributes": (op(reshape_p, X, shape=(6,)), op(reshape_p, X, shape=(6,))),
    "same subtree": (op(neg_p, op(mul_p, X, Y)), op(neg_p, op(mul_p, X, Y))),
    "same constant": (constant([1.0, np.nan]), constant([1.0, np.nan])),
    "ops on equal constants": (op(neg_p, constant([1.0])), op(neg_p, constant([1.0]))),
}
TWO = {
    "other op": (op(add_p, X, Y), op(mul_p, X, Y)),
    "other order": (op(add_p, X, Y), op(add_p, Y, X)),
    "other attributes": (op(reshape_p, X, shape=(6,)), op(reshape_p, X, shape=(6, 1))),
    "other dtype attribute": (op(cast_p, X, dtype=float64), op(cast_p, X, dtype=int32)),
    "equal attributes of other types": (with_attr(1), with_attr(True)),
    "zeros of other signs": (with_attr(0.0), with_attr(-0.0)),
    "attributes without identity": (with_attr(object()), with_attr(object())),
    "constants of other signs": (constant([0.0]), constant([-0.0])),
    "constants of other dtypes": (constant([0]), constant([0], int32)),
    "constants of other shapes": (constant([0]), constant([[0]])),
    "two inputs": (X, Y),
}


@pytest.mark.parametrize("name", ONE)
def test_merged(name: str) -> None:
    first, second = merge_common_subexpressions(graph([X, Y], *ONE[name])).outputs
    assert first is second
    assert first is ONE[name][0]


@pytest.mark.parametrize("name", TWO)
def test_kept_apart(name: str) -> None:
    before = graph([X, Y], *TWO[name])
    assert merge_common_subexpressions(before) is before


def test_in_updates_too() -> None:
    w = variable(2, 3)
    after = merge_common_subexpressions(graph([X, w], op(add_p, X, w), updates={w: op(add_p, X, w)}))
    assert after.outputs[0] is after.updates[w] and len(after.values) == 3
