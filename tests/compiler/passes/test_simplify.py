"""One example for each row of the table, and the look-alikes that must stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.compiler.passes.simplify import ROWS, Identity, simplify
from runnel.core import dtypes
from runnel.core.dtypes import DType, bfloat16, bool_, float16, float32, float64, int32, int64, uint8
from runnel.core.pytree import flatten
from runnel.graph.node import Value
from runnel.ops.conversion import cast_p, stop_gradient_p
from runnel.ops.elementwise.arithmetic import abs_p, add_p, div_p, maximum_p, minimum_p, mul_p, neg_p, sub_p
from runnel.ops.elementwise.comparison import and_p, not_p, or_p, where_p
from runnel.ops.indexing.gather import take_p
from runnel.ops.reductions.primitives import all_p, any_p, max_p, min_p, prod_p
from runnel.ops.shapes.broadcasting import broadcast_p, sum_p
from runnel.ops.shapes.pieces import concat_p, slice_p
from runnel.ops.shapes.views import permute_p, reshape_p
from tests.compiler.harness import same_bits

from ...graph.build import argument, constant, graph, op

X, N, B, T, L = (
    argument(2, 3),
    argument(2, 3, dtype=int32),
    argument(2, 3, dtype=bool_),
    argument(2, 3, 4),
    argument(2, 3, dtype=int64),
)
H, E = argument(2, 3, dtype=float16), argument(2, 3, dtype=bfloat16)
COLUMN, TRUTHS = argument(2, 1), argument(2, 1, dtype=bool_)


def filled(value: float, dtype: DType = float32, *, wide: bool = False) -> Value:
    one = constant([[value]], dtype)
    return op(broadcast_p, one, shape=(2, 3)) if wide else one


def whole(x: Value) -> Value:
    return op(slice_p, x, starts=(0, 0), sizes=x.aval.shape, steps=(1, 1))


BECOMES_X = {
    "x*1": (op(mul_p, X, filled(1)), X),
    "1*x": (op(mul_p, filled(1), X), X),
    "x * a broadcast 1": (op(mul_p, X, filled(1, wide=True)), X),
    "x * a full constant": (op(mul_p, X, constant(np.ones((2, 3)))), X),
    "n*1": (op(mul_p, N, filled(1, int32)), N),
    "x/1": (op(div_p, X, filled(1)), X),
    "x-0": (op(sub_p, X, filled(0.0)), X),
    "n-0": (op(sub_p, N, filled(0, int32)), N),
    "n+0": (op(add_p, N, filled(0, int32)), N),
    "0+n": (op(add_p, filled(0, int32), N), N),
    "x+(-0)": (op(add_p, X, filled(-0.0)), X),
    "-0+x": (op(add_p, filled(-0.0), X), X),
    "neg neg": (op(neg_p, op(neg_p, X)), X),
    "four times neg": (op(neg_p, op(neg_p, op(neg_p, op(neg_p, X)))), X),
    "not not": (op(not_p, op(not_p, B)), B),
    "maximum of one": (op(maximum_p, X, X), X),
    "minimum of one": (op(minimum_p, X, X), X),
    "and of one": (op(and_p, B, B), B),
    "or of one": (op(or_p, B, B), B),
    "where of one": (op(where_p, B, X, X), X),
    "cast": (op(cast_p, X, dtype=float32), X),
    "half wide and back": (op(cast_p, op(cast_p, H, dtype=float32), dtype=float16), H),
    "bfloat wide and back": (op(cast_p, op(cast_p, E, dtype=float64), dtype=bfloat16), E),
    "int wide and back": (op(cast_p, op(cast_p, N, dtype=int64), dtype=int32), N),
    "stop_gradient": (op(stop_gradient_p, X), X),
    "reshape": (op(reshape_p, X, shape=(2, 3)), X),
    "reshape and back": (op(reshape_p, op(reshape_p, X, shape=(6,)), shape=(2, 3)), X),
    "permute": (op(permute_p, T, axes=(0, 1, 2)), T),
    "permute and back": (op(permute_p, op(permute_p, T, axes=(1, 2, 0)), axes=(2, 0, 1)), T),
    "broadcast": (op(broadcast_p, X, shape=(2, 3)), X),
    "slice": (whole(X), X),
    "concat": (op(concat_p, X, axis=0), X),
    "prod": (op(prod_p, COLUMN, axes=(1,)), COLUMN),
    "max": (op(max_p, COLUMN, axes=(1,)), COLUMN),
    "min": (op(min_p, COLUMN, axes=(1,)), COLUMN),
    "any": (op(any_p, TRUTHS, axes=(1,)), TRUTHS),
    "all": (op(all_p, TRUTHS, axes=(1,)), TRUTHS),
    "integer sum": (op(sum_p, L, axes=()), L),
    "all at once": (op(neg_p, op(mul_p, op(neg_p, op(reshape_p, X, shape=(2, 3))), filled(1))), X),
}

BECOMES = {
    "abs abs": (op(abs_p, op(abs_p, X)), op(abs_p, X)),
    "abs neg": (op(abs_p, op(neg_p, X)), op(abs_p, X)),
    "reshapes": (op(reshape_p, op(reshape_p, X, shape=(3, 2)), shape=(6,)), op(reshape_p, X, shape=(6,))),
    "rows in another order": (
        op(permute_p, op(take_p, X, L, axis=0), axes=(1, 0, 2)),
        op(take_p, X, op(permute_p, L, axes=(1, 0)), axis=0),
    ),
    "permutes": (
        op(permute_p, op(permute_p, T, axes=(1, 0, 2)), axes=(2, 0, 1)),
        op(permute_p, T, axes=(2, 1, 0)),
    ),
    "broadcasts": (
        op(broadcast_p, op(broadcast_p, argument(1, 1), shape=(2, 1)), shape=(2, 3)),
        op(broadcast_p, argument(1, 1), shape=(2, 3)),
    ),
}

STAYS = {
    "x+0 turns -0 into 0": op(add_p, X, filled(0.0)),
    "0+x": op(add_p, filled(0.0), X),
    "x-(-0)": op(sub_p, X, filled(-0.0)),
    "0-x": op(sub_p, filled(0.0), X),
    "1/x": op(div_p, filled(1), X),
    "x*0": op(mul_p, X, filled(0.0)),
    "x-x": op(sub_p, X, X),
    "x/x": op(div_p, X, X),
    "x*1 that broadcasts": op(mul_p, COLUMN, constant(np.ones((2, 3)))),
    "ones but one": op(mul_p, X, constant([[1, 1, 1], [1, 1, 2]])),
    "float sum over size 1": op(sum_p, COLUMN, axes=(1,)),
    "cast through a narrower dtype": op(cast_p, op(cast_p, X, dtype=float16), dtype=float32),
    "cast through the other half": op(cast_p, op(cast_p, H, dtype=bfloat16), dtype=float16),
    "int through float": op(cast_p, op(cast_p, N, dtype=float64), dtype=int32),
    "flip": op(slice_p, X, starts=(1, 0), sizes=(2, 3), steps=(-1, 1)),
    "columns of rows": op(permute_p, op(take_p, X, L, axis=0), axes=(0, 2, 1)),
    "rows along axis 1": op(permute_p, op(take_p, X, L, axis=1), axes=(1, 0, 2)),
    "permute of a square": op(permute_p, argument(3, 3), axes=(1, 0)),
    "reshape of another op": op(reshape_p, op(neg_p, X), shape=(6,)),
    "neg of abs": op(neg_p, op(abs_p, X)),
    "abs neg without signs": op(abs_p, op(neg_p, argument(2, 3, dtype=uint8))),
    "where that broadcasts": op(where_p, B, COLUMN, COLUMN),
}


@pytest.mark.parametrize("name", BECOMES_X)
def test_becomes_its_operand(name: str) -> None:
    node, expected = BECOMES_X[name]
    assert simplify(graph([expected], node)).outputs == (expected,)


@pytest.mark.parametrize("name", BECOMES)
def test_becomes_another_node(name: str) -> None:
    node, expected = BECOMES[name]
    (output,) = simplify(graph([], node)).outputs
    assert (output.op, output.attrs, output.aval) == (expected.op, expected.attrs, expected.aval)
    assert [x.is_input for x in output.inputs] == [x.is_input for x in expected.inputs]


@pytest.mark.parametrize("name", STAYS)
def test_stays(name: str) -> None:
    before = graph([], STAYS[name])
    assert simplify(before) is before


@pytest.mark.parametrize("dtype", dtypes.REAL, ids=lambda d: d.name)
def test_values_of_every_dtype_stay(dtype: DType) -> None:
    """A row's result for values at the ends of each dtype's range equals the ops one by one."""

    def rewritten(x: Any) -> Any:
        column = ops.reshape(x, (-1, 1))
        there = [ops.cast(ops.cast(x, wide), dtype) for wide in dtypes.REAL]
        any_, all_, where = ops.any(column, axis=1), ops.all(column, axis=1), ops.where(x == x, x, x)
        if dtype is bool_:
            return there, any_, all_, where, ~(~x), x & x, x | x
        chains = [outer(inner(x)) for outer in (ops.abs, ops.negative) for inner in (ops.abs, ops.negative)]
        numbers = [x * 1, x + 0, 0 + x, x - 0, x / 1, ops.maximum(x, x), ops.minimum(x, x)]
        along = [reduce(column, axis=1) for reduce in (ops.sum, ops.prod, ops.max, ops.min)]
        return there, any_, all_, where, chains, numbers, along

    values = [0, 1, 7, 100, 127, 128, 255] if dtype.kind in ("uint", "bool") else [-128, -100, -1, 0, 1, 100, 127]
    floats = [-0.0, 0.0, 1.5, -2.5, 100, np.inf, -np.inf, np.nan, 6e-8]
    with np.errstate(all="ignore"):
        x = rn.asarray(np.array(floats if dtype.is_float else values).astype(dtype.numpy))
    expected, actual = flatten(rewritten(x))[0], flatten(rn.compile(rewritten)(x))[0]
    for a, b in zip(expected, actual, strict=True):
        assert a.dtype is b.dtype
        assert same_bits(a.numpy(), b.numpy())


def test_every_row_has_an_example() -> None:
    """Each row applies to some node among the examples above."""
    examples = [node for table in (BECOMES_X, BECOMES) for root, _ in table.values() for node in graph([], root).values]
    unused = [r for r in ROWS if not any(n.op is r.op and r.rewrite(n) is not None for n in examples)]
    assert unused == []


def test_source_lines_are_kept() -> None:
    node = op(abs_p, op(neg_p, X, where="a.py:1"), where="a.py:2")
    assert simplify(graph([X], node)).outputs[0].where == "a.py:2"


def test_a_row_of_ones_own() -> None:
    row = Identity(neg_p, "for this test: -x is |x|", lambda node: op(abs_p, node.inputs[0]))
    ROWS.append(row)
    try:
        assert simplify(graph([X], op(neg_p, X))).outputs[0].op is abs_p
    finally:
        ROWS.remove(row)
