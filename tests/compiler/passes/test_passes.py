"""Every pass must keep each value to the bit, keep the graph well-formed, and know no limit of depth."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from runnel.compiler.passes.pipeline import USUAL, Pipeline
from runnel.core.avals import aval
from runnel.core.dtypes import float32
from runnel.graph import interpreter
from runnel.graph.graph import Graph
from runnel.graph.hashing import structural_hash
from runnel.graph.node import Value, applied
from runnel.graph.verifier import verify
from runnel.ops.elementwise.arithmetic import add_p, neg_p

from ...graph.build import argument, constant, graph
from .random_graphs import bits, graphs

pytestmark = pytest.mark.suite


ALONE = [pytest.param(Pipeline([p]).rewritten, id=p.name) for p in USUAL.passes]
PASSES = [*ALONE, pytest.param(USUAL.rewritten, id="all")]


@pytest.mark.parametrize("run", PASSES)
@settings(deadline=None, max_examples=60)
@given(sample=graphs())
def test_values_are_kept_to_the_bit(run: Any, sample: tuple[Graph, list[Any]]) -> None:
    before, values = sample
    after = run(before)
    verify(after)
    assert after.inputs == before.inputs and list(after.updates) == list(before.updates)
    for old, new in zip(interpreter.run(before, values), interpreter.run(after, values), strict=True):
        assert [bits(x) for x in old] == [bits(x) for x in new]
    assert len(after.nodes) <= len(before.nodes)


@pytest.mark.parametrize("run", ALONE)
@settings(deadline=None, max_examples=25)
@given(sample=graphs())
def test_a_second_run_changes_nothing(run: Any, sample: tuple[Graph, list[Any]]) -> None:
    """Of one pass; after all of them, merging may have made work for simplify: max(x, y) where y turned out to be x."""
    once = run(sample[0])
    assert structural_hash(run(once)) == structural_hash(once)


DEEP = 4 * sys.getrecursionlimit()


def chains(length: int) -> Graph:
    """Two chains of nodes: negations of an input, and additions of constants."""
    full = aval((2,), float32)
    x = node = argument(2)
    folded: Value = constant([0.0, 1.0])
    one = constant([1.0, 1.0])
    for _ in range(length):
        node = applied(neg_p, (node,), {}, full)
        folded = applied(add_p, (folded, one), {}, full)
    return graph([x], node, folded)


@pytest.fixture(scope="module")
def deep() -> Graph:
    return chains(DEEP)


@pytest.mark.parametrize("run", PASSES)
def test_depth_is_no_limit(run: Any, deep: Graph) -> None:
    run(deep)


def calls(run: Any, graph: Graph) -> int:
    """How many functions are called for a pass."""
    count = 0

    def called(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        run(graph)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("run", PASSES)
def test_work_grows_as_the_graph_does(run: Any) -> None:
    short, long = (calls(run, chains(length)) for length in (200, 800))
    assert long < 4.5 * short


def test_deep_graphs_are_verified_and_run(deep: Graph) -> None:
    after = USUAL.rewritten(deep)
    verify(deep)
    verify(after)
    outputs, _ = interpreter.run(after, [np.array([1.0, -2.0], np.float32)])
    assert [o.tolist() for o in outputs] == [[1.0, -2.0], [float(DEEP), DEEP + 1.0]]
