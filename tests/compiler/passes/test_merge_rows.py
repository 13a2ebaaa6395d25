"""Regions behind products move to the products' rows and columns: fewer kernels, the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import ops
from runnel.compiler.passes.merge_rows import merge_rows
from runnel.compiler.passes.simplify import simplify
from runnel.graph.graph import Graph
from tests.compiler.harness import Traced, same_bits


def normal(*shape: int) -> rn.Tensor:
    return rn.asarray(np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32))


def both(function: Any, args: list[rn.Tensor]) -> tuple[Traced, Traced]:
    """The function without and with the pass, after a check that their bits are eager's."""
    actual = function(*args)
    expected = [x.numpy() for x in (actual if isinstance(actual, tuple) else (actual,))]
    plain, merged = (
        Traced(function, args, rewrite=simplify),
        Traced(function, args, rewrite=lambda g: merge_rows(simplify(g)), threads=2),
    )
    for program in (plain, merged):
        for e, f in zip(expected, program(*args), strict=True):
            assert same_bits(e, f)
    return plain, merged


def test_bias_activation_and_residual_become_an_epilogue() -> None:
    args = [normal(2, 5, 8), normal(6, 8), normal(6), normal(2, 5, 6)]
    plain, merged = both(lambda x, w, b, r: ops.gelu(ops.linear(x, w, b)) + r, args)
    assert len(plain.plan.calls) == 2 and len(merged.plan.calls) == 1


def test_norms_dropout_and_sums_come_along() -> None:
    def program(x: rn.Tensor, w: rn.Tensor, b: rn.Tensor, key: rn.Tensor) -> tuple[rn.Tensor, ...]:
        y = ops.dropout(ops.linear(x, w, b), key, 0.3) + x
        z = ops.layer_norm(y, 8, b, b)
        return z, ops.sum(z * y, axis=(0, 1)), ops.softmax(z)

    key = rn.asarray(np.array([1, 2], np.uint32))
    plain, merged = both(program, [normal(3, 20, 8), normal(8, 8), normal(8), key])
    assert len(merged.plan.calls) <= len(plain.plan.calls)
    product = next(c for c in merged.plan.calls if c.depth)
    assert "random_bits" in {n.op.name for n in product.nodes if n.op}


def test_what_would_be_copied_stays() -> None:
    def turned(x: rn.Tensor, w: rn.Tensor, r: rn.Tensor) -> rn.Tensor:
        return x @ w + ops.permute(r, (1, 0, 2))

    for rest in (normal(5, 2, 6), normal(5, 1, 6)):
        plain, merged = both(turned, [normal(2, 5, 8), normal(8, 6), rest])
        assert len(plain.plan.calls) == len(merged.plan.calls)

    def per_sequence(x: rn.Tensor, w: rn.Tensor, r: rn.Tensor) -> rn.Tensor:
        return x @ w + r

    both(per_sequence, [normal(2, 5, 8), normal(8, 6), normal(2, 1, 6)])


def test_graphs_without_such_products_are_left_alone() -> None:
    graphs: list[Graph] = []

    def watch(graph: Graph) -> Graph:
        graphs.extend((graph, merge_rows(graph)))
        return graph

    Traced(lambda x: ops.softmax(x * 2.0) + x, [normal(2, 3, 4)], rewrite=watch)
    assert graphs[0] is graphs[1]


@settings(deadline=None, max_examples=25)
@given(
    lead=st.lists(st.integers(1, 4), min_size=1, max_size=3), inner=st.integers(1, 20), outer=st.integers(1, 20),
    steps=st.lists(st.sampled_from(["bias", "scalar", "residual", "rows", "norm", "relu"]), max_size=5),
)  # fmt: skip
def test_any_region_keeps_its_bits(lead: list[int], inner: int, outer: int, steps: list[str]) -> None:
    def program(x: rn.Tensor, w: rn.Tensor, b: rn.Tensor, r: rn.Tensor, s: rn.Tensor) -> tuple[rn.Tensor, ...]:
        y = x @ w
        for step in steps:
            y = {
                "bias": lambda y: y + b, "scalar": lambda y: y * 0.5, "residual": lambda y: r - y,
                "rows": lambda y: y * s, "norm": lambda y: ops.layer_norm(y, outer), "relu": ops.relu,
            }[step](y)  # fmt: skip
        return y, ops.sum(y, axis=tuple(range(len(lead)))), ops.max(y, axis=-1)

    both(program, [normal(*lead, inner), normal(inner, outer), normal(outer), normal(*lead, outer), normal(*lead, 1)])


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2)])
def test_other_reductions_end_a_region(axes: tuple[int, ...]) -> None:
    both(lambda x, w: ops.sum(ops.relu(x @ w), axis=axes) * 2.0, [normal(3, 4, 5), normal(5, 6)])
