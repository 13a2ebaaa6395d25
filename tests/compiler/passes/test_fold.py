"""Values that become constants, and values that must not."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.compiler.passes.simplify import fold_constants
from runnel.core.dtypes import bool_, float16, float32, int32, int64
from runnel.graph.node import Value
from runnel.graph.verifier import verify
from runnel.ops.conversion import cast_p
from runnel.ops.elementwise.arithmetic import add_p, div_p, maximum_p, mul_p, neg_p, relu_p, remainder_p, sub_p
from runnel.ops.elementwise.comparison import and_p, lt_p, where_p
from runnel.ops.elementwise.exponential import exp_p, sqrt_p
from runnel.ops.reductions.primitives import max_p
from runnel.ops.shapes.broadcasting import broadcast_p, sum_p
from runnel.ops.shapes.pieces import concat_p, slice_p
from runnel.ops.shapes.views import permute_p, reshape_p

from ...graph.build import argument, constant, graph, op

A, B = constant([[1.0, 2.0, 3.0]]), constant([[0.1], [0.7]])
N, M = constant([[5, -7, 9]], int32), constant([[2, 3, 0]], int32)
TRUTH = constant([[True, False, True]], bool_)

FOLDED = {
    "add": (op(add_p, A, B), np.float32([[1, 2, 3]]) + np.float32([[0.1], [0.7]])),
    "div": (op(div_p, A, B), np.float32([[1, 2, 3]]) / np.float32([[0.1], [0.7]])),
    "sqrt": (op(sqrt_p, A), np.sqrt(np.float32([[1, 2, 3]]))),
    "chain": (op(neg_p, op(mul_p, A, A)), -np.float32([[1, 4, 9]])),
    "maximum": (op(maximum_p, A, B), np.float32([[1, 2, 3], [1, 2, 3]])),
    "comparison": (op(lt_p, A, B), np.zeros((2, 3), bool)),
    "choice": (op(where_p, TRUTH, A, A), np.float32([[1, 2, 3]])),
    "cast to half": (op(cast_p, B, dtype=float16), np.float32([[0.1], [0.7]]).astype(np.float16)),
    "cast to int": (op(cast_p, A, dtype=int32), np.int32([[1, 2, 3]])),
    "integers": (op(remainder_p, N, M), np.int32([[1, 2, 0]])),
    "relu of integers": (op(relu_p, N), np.int32([[5, 0, 9]])),
    "bools": (op(and_p, TRUTH, TRUTH), np.array([[True, False, True]])),
    "integer sum": (op(sum_p, op(cast_p, N, dtype=int64), axes=(1,)), np.int64([[7]])),
    "reshape": (op(reshape_p, A, shape=(3, 1)), np.float32([[1], [2], [3]])),
    "permute": (op(permute_p, A, axes=(1, 0)), np.float32([[1], [2], [3]])),
    "slice": (op(slice_p, A, starts=(0, 2), sizes=(1, 2), steps=(1, -2)), np.float32([[3, 1]])),
    "concat": (op(concat_p, A, A, axis=1), np.float32([[1, 2, 3, 1, 2, 3]])),
    "small broadcast": (op(broadcast_p, B, shape=(2, 2)), np.float32([[0.1, 0.1], [0.7, 0.7]])),
    "moved NaN": (op(reshape_p, constant([np.nan, 1]), shape=(2, 1)), np.float32([[np.nan], [1]])),
}

KEPT = {
    "exp": op(exp_p, A),
    "float sum": op(sum_p, A, axes=(1,)),
    "float max": op(max_p, A, axes=(1,)),
    "several float operations in one op": op(relu_p, A),
    "an input": op(add_p, argument(1, 3), A),
    "a NaN": op(sub_p, constant([np.inf]), constant([np.inf])),
    "a broadcast that grows": op(broadcast_p, constant([[1.0]]), shape=(64, 64)),
}


@pytest.mark.parametrize("name", FOLDED)
def test_folded(name: str) -> None:
    node, expected = FOLDED[name]
    after = fold_constants(graph([], node))
    verify(after)
    (output,) = after.outputs
    assert output.is_constant and output.value.dtype == expected.dtype
    assert output.value.tobytes() == expected.tobytes() and output.value.shape == expected.shape


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str) -> None:
    before = graph([], KEPT[name])
    assert fold_constants(before) is before


def test_folding_stops_at_what_is_not_constant() -> None:
    x = argument(1, 3)
    (output,) = fold_constants(graph([x], op(add_p, x, op(mul_p, A, A)))).outputs
    assert output.op is add_p and output.inputs[0] is x and output.inputs[1].value.tolist() == [[1, 4, 9]]


def test_budgets() -> None:
    large: Value = constant(np.ones(1000))
    sum_ = op(add_p, large, large)
    assert fold_constants(graph([], sum_)).outputs[0].is_constant
    assert not fold_constants(graph([], sum_), max_bytes=3999).outputs[0].is_constant
    assert not fold_constants(graph([], sum_), max_work=2999).outputs[0].is_constant
    twice = graph([], sum_, op(mul_p, large, large))
    assert [o.is_constant for o in fold_constants(twice, max_work=3000).outputs] == [True, False]


def test_default_bound_is_a_mebibyte() -> None:
    for count, folded in ((1 << 18, True), ((1 << 18) + 1, False)):
        big = constant(np.ones(count))
        assert fold_constants(graph([], op(neg_p, big))).outputs[0].is_constant == folded
    assert constant(np.ones(1 << 18)).aval.dtype is float32
