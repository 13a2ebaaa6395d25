"""Ops made of others are replaced, and regions are laid out so that nothing is copied; every value stays to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import nn, ops, optim
from runnel.compiler.passes.decompose import decompose
from runnel.compiler.passes.permutes import sink_permutes
from runnel.core.dtypes import float32, int32, uint32
from runnel.core.tables import Op, abstract_eval, decompose as table, lower
from runnel.graph import interpreter
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.graph.rewriting import substituted
from runnel.graph.verifier import verify
from runnel.nn import functional as F
from runnel.ops.creation_like import iota_p
from runnel.ops.elementwise.arithmetic import add_p, mul_p, neg_p
from runnel.ops.random import random_bits_p
from runnel.ops.reductions.primitives import max_p
from runnel.ops.shapes.broadcasting import broadcast_p, sum_p
from runnel.ops.shapes.padding import pad_p
from runnel.ops.shapes.pieces import concat_p, slice_p
from runnel.ops.shapes.views import permute_p, reshape_p

from ...graph.build import argument, constant, graph, op
from .random_graphs import bits

Draw = Callable[[st.SearchStrategy[Any]], Any]
LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def test_expanded_graphs_hold_nothing_to_expand() -> None:
    x, w = argument(2, 3, 6, 5), argument(4, 3, 3, 3)
    attrs: dict[str, Any] = {"stride": (2, 1), "padding": ((1, 1), (0, 0)), "dilation": (1, 1), "groups": 1}
    y = op(Op.registry["convolution"], x, w, **attrs)
    dx = op(Op.registry["convolution_input_gradient"], y, w, size=(6, 5), **attrs)
    pooled = op(Op.registry["max_pool"], dx, kernel=(2, 2), stride=(2, 2), padding=((0, 0), (0, 1)), dilation=(1, 1))
    before = graph([x, w], y, pooled)
    after = decompose(before)
    verify(after)
    lowered = {n.op for n in after.values if n.op is not None}
    assert all(op_name in lower for op_name in lowered) and decompose(after) is after
    rng = np.random.default_rng(0)
    values = [rng.integers(-3, 4, n.aval.shape).astype(np.float32) for n in before.inputs]  # sums of these are exact
    for old, new in zip(interpreter.run(before, values)[0], interpreter.run(after, values)[0], strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_rule_may_leave_its_op_alone() -> None:
    doubled = Op("_doubled_in_a_test", "x", "x + x, for floats.")
    abstract_eval.register(doubled, lambda x: x)
    table.register(doubled, lambda x: ops.add(x, x) if x.dtype is float32 else None)
    try:
        x, i = argument(3), argument(3, dtype=int32)
        after = decompose(graph([x, i], op(doubled, x), op(doubled, i)))
        assert [o.op for o in after.outputs] == [add_p, doubled]
    finally:
        del Op.registry[doubled.name], abstract_eval._rules[doubled], table._rules[doubled]


# --- layouts ------------------------------------------------------------------------------------------------------


def orders(g: Graph) -> list[tuple[int, ...]]:
    return [n.attrs["axes"] for n in g.values if n.op is permute_p]


def in_last(node: Value, order: tuple[int, ...] = LAST) -> Value:
    return op(permute_p, node, axes=order)


def opaque(node: Value) -> Value:
    """Something that has its order of axes: a reduction of floats."""
    return op(sum_p, node, axes=(0,))


def test_a_region_takes_the_order_of_its_border() -> None:
    """Between two values that lie channels-last everything is computed channels-last, whatever the ops are."""
    x = argument(2, 5, 6, 3)
    scale = argument(3)
    a = op(neg_p, in_last(x, FIRST))
    a = op(mul_p, a, op(reshape_p, scale, shape=(1, 3, 1, 1)))
    a = op(pad_p, a, constant([[[[7.0]]]]), widths=((0, 0, 1), (0, 0, 1), (1, 2, 1), (0, 1, 2)))
    a = op(concat_p, a, a, axis=1)
    a = op(slice_p, a, starts=(0, 1, 0, 2), sizes=(2, 4, 8, 3), steps=(1, 1, 1, 3))
    last = in_last(a)
    before = graph([x, scale], opaque(last))
    after = sink_permutes(before)
    verify(after)
    assert [n.aval.shape[-1] for n in after.values if n.op in (neg_p, pad_p, concat_p, slice_p)] == [3, 3, 6, 4]
    assert all(p == LAST for p in orders(after)) and len(orders(after)) == 1  # the vector's, which is a view
    same_values(before, after)


def test_random_bits_and_positions_keep_their_values() -> None:
    x = argument(2, 4, 5, 3, dtype=uint32)
    key = constant([[[[9]]]], uint32)
    drawn = op(random_bits_p, key, key, shape=(2, 3, 4, 5), word=0, stream=0)
    counted = op(iota_p, key, shape=(2, 3, 4, 5), axis=1)
    mixed = op(add_p, op(add_p, in_last(x, FIRST), drawn), counted)
    again = op(max_p, op(add_p, in_last(mixed), in_last(mixed)), axes=(3,))
    before = graph([x], again)
    after = sink_permutes(before)
    assert orders(after) == []
    same_values(before, after)
    same_values(after, sink_permutes(in_order_of_first(after)))


def in_order_of_first(g: Graph) -> Graph:
    """The same graph, asked for channels-first: the random bits are permuted a second time."""
    (x,), (out,) = g.inputs, g.outputs
    fresh = argument(*(x.aval.shape[a] for a in FIRST), dtype=uint32)
    copied = substituted(g, {x: in_last(fresh)})
    return Graph([fresh], copied.outputs, {}, out.op.name if out.op else "")


def same_values(before: Graph, after: Graph) -> None:
    rng = np.random.default_rng(4)
    values = [rng.integers(0, 9, n.aval.shape).astype(n.aval.dtype.numpy) for n in before.inputs]
    moved = [
        v if old.aval is new.aval else np.transpose(v, FIRST)
        for v, old, new in zip(values, before.inputs, after.inputs, strict=True)
    ]
    for old, new in zip(interpreter.run(before, values)[0], interpreter.run(after, moved)[0], strict=True):
        assert bits(old) == bits(new)


def test_sums_of_floats_keep_their_order() -> None:
    x = argument(2, 5, 6, 3)
    before = graph([x], op(sum_p, op(neg_p, in_last(x, FIRST)), axes=(2, 3)))
    after = sink_permutes(before)
    summed = next(n for n in after.values if n.op is sum_p)
    assert summed.attrs == {"axes": (2, 3)} and summed.inputs[0].aval.shape == (2, 3, 5, 6)


@pytest.mark.parametrize("bytes_first, sunk", [(2, False), (1, True)])
def test_most_bytes_decide_and_a_tie_changes_nothing(bytes_first: int, sunk: bool) -> None:
    """One value lies channels-last, one or two channels-first: a tie, or a majority for staying."""
    x, ys = argument(2, 5, 6, 3), [argument(2, 3, 5, 6) for _ in range(bytes_first)]
    a = in_last(x, FIRST)
    for y in ys:
        a = op(add_p, a, y)
    result = in_last(a)
    g = graph([x, *ys], opaque(result))
    assert (sink_permutes(g) is not g) == sunk


MEMBERS = st.sampled_from(["neg", "add", "mul", "pad", "slice", "concat", "broadcast", "permute", "sum", "max"])


@st.composite
def layouts(draw: Draw) -> Graph:
    """Graphs of permutes among the ops they pass and the ops they do not."""
    inputs = [argument(*draw(st.permutations((2, 3, 4)))) for _ in range(2)]
    nodes = list(inputs)
    for _ in range(draw(st.integers(2, 12))):
        x = draw(st.sampled_from(nodes))
        kind = draw(MEMBERS)
        shape = x.aval.shape
        if kind == "permute":
            nodes.append(op(permute_p, x, axes=tuple(draw(st.permutations(range(3))))))
        elif kind == "neg":
            nodes.append(op(neg_p, x))
        elif kind in ("add", "mul"):
            fitting = [n for n in nodes if all(a == b or 1 in (a, b) for a, b in zip(shape, n.aval.shape, strict=True))]
            nodes.append(op(add_p if kind == "add" else mul_p, x, draw(st.sampled_from(fitting))))
        elif kind == "pad":
            nodes.append(
                op(
                    pad_p,
                    x,
                    constant([[[1.5]]]),
                    widths=tuple(draw(st.permutations([(0, 0, 1), (1, 0, 2), (0, 2, 1)]))),
                )
            )
        elif kind == "slice":
            starts = tuple(draw(st.integers(0, n - 1)) for n in shape)
            sizes = tuple(n - s for n, s in zip(shape, starts, strict=True))
            nodes.append(op(slice_p, x, starts=starts, sizes=sizes, steps=(1, 1, 1)))
        elif kind == "concat":
            nodes.append(op(concat_p, x, x, axis=draw(st.integers(0, 2))))
        elif kind == "broadcast":
            nodes.append(op(broadcast_p, x, shape=tuple(2 if n == 1 else n for n in shape)))
        else:
            nodes.append(op(sum_p if kind == "sum" else max_p, x, axes=(draw(st.integers(0, 2)),)))
    return graph(inputs, *draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=3)), nodes[-1])


@settings(deadline=None, max_examples=150)
@given(layouts())
def test_random_regions_keep_every_bit(before: Graph) -> None:
    after = sink_permutes(before)
    verify(after)
    same_values(before, after)
    once = orders(after)
    assert orders(sink_permutes(after)) == once


# --- a network ----------------------------------------------------------------------------------------------------


class Network(nn.Module):
    """Two convolutions with pooling, dropout and a dense layer: every kind of border there is."""

    def __init__(self) -> None:
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 12, 3, padding=1)
        self.norm = nn.BatchNorm2d(12)
        self.dense = nn.Linear(12 * 4 * 4, 10)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.first(x)), 2)
        x = rn.dropout(F.max_pool2d(F.relu(self.norm(self.second(x))), 2), 0.25)
        return self.dense(x.reshape(x.shape[0], -1))


def training() -> tuple[Network, Callable[..., Any]]:
    rn.manual_seed(3)
    net = Network()
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return net, step


def batch() -> tuple[rn.Tensor, rn.Tensor]:
    rng = np.random.default_rng(5)
    return rn.asarray(rng.standard_normal((6, 3, 16, 16)).astype(np.float32)), rn.asarray(rng.integers(0, 10, 6))


def test_a_training_step_copies_only_what_it_pads() -> None:
    """No copy of an activation but padding (three: two inputs, one cotangent) and the change of order before the dense
    layer; what else is copied are weights."""
    _, step = training()
    calls = rn.compile(step).program(*batch()).plan.calls
    kinds = [call.kernel.name.split("_")[0] for call in calls]
    padded = {c.nodes[0] for c, kind in zip(calls, kinds, strict=True) if kind == "pad"}
    assert len(padded) == 3 and kinds.count("contract") == 5 + 3
    largest_weight = 12 * 8 * 9
    copied = [c for c, kind in zip(calls, kinds, strict=True) if kind == "copy"]
    assert copied and all(c.nodes[-1].aval.size <= largest_weight for c in copied)
    merged = [c for c in calls if any(n.op is reshape_p for n in c.nodes)]
    assert [c.nodes[-1].aval.shape for c in merged] == [(6, 192)]


def test_compiled_steps_are_eager_steps_to_the_bit() -> None:
    x, y = batch()
    eager, eager_step = training()
    losses = [eager_step(x, y).item() for _ in range(3)]
    compiled, step = training()
    run = rn.compile(step)
    assert [run(x, y).item() for _ in range(3)] == losses
    for (name, a), (_, b) in zip(eager.state_dict().items(), compiled.state_dict().items(), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes(), name
