"""Input hoisting: what a loop's body computes without its carries is computed outside of the loop.

What depends on constants alone is computed once; a contraction that reads only xs and constants becomes one contraction
over all steps, which is large and fast where the step's was small.
"""

from __future__ import annotations

from typing import NamedTuple

from runnel.compiler.lowering.protocol import lowering_of
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.graph.rewriting import extract
from runnel.tensor.tensor import Tensor
from runnel.transforms.steps import Steps, is_batchable, is_view


class Loop(NamedTuple):
    """A scan before it is recorded: a body with inputs (constants, carries, xs), and their values."""

    graph: Graph
    constants: list[Tensor]
    carries: list[Tensor]
    xs: list[Tensor]
    length: int


def hoisted(loop: Loop) -> Loop:
    """``loop`` with a smaller body, and inputs that have been computed outside."""
    graph, n, m = loop.graph, len(loop.constants), len(loop.carries)
    constants, xs = graph.inputs[:n], graph.inputs[n + m :]
    fixed = _computed_from(graph, set(constants))
    without_carries = _computed_from(graph, {*constants, *xs})
    once = [node for node in graph.values if node in fixed and _leaves(node)]
    known = Steps(loop.length)
    known.fix(constants, loop.constants)
    known.stack(xs, loop.xs)
    products = [
        node
        for node in graph.values
        if node in without_carries and node not in fixed and _is_product(node) and known.reaches(node, once)
    ]
    needed = _read_inside(graph, [*once, *products])
    if not needed or not loop.length:
        return loop
    known.compute(needed)
    new_constants = [node for node in needed if node in fixed]
    new_xs = [node for node in needed if node not in fixed]
    carries = graph.inputs[n : n + m]
    inputs = [*constants, *new_constants, *carries, *xs, *new_xs]
    smaller = extract(inputs, graph.outputs, graph.name)
    used_constants = _used(smaller.graph, smaller.value_map, [*constants, *new_constants])
    used_xs = _used(smaller.graph, smaller.value_map, [*xs, *new_xs])
    value_map = smaller.value_map
    body = Graph([value_map[x] for x in (*used_constants, *carries, *used_xs)], smaller.graph.outputs, {}, graph.name)
    return Loop(
        body,
        [known.fixed(x) for x in used_constants],
        loop.carries,
        [known.all_steps(x) for x in used_xs],
        loop.length,
    )


def _computed_from(graph: Graph, sources: set[Value]) -> set[Value]:
    """The nodes that are computed from at least one of ``sources``, and from no other input."""
    dependent = set(sources)
    others = set(graph.inputs) - sources
    for node in graph.values:
        if node in others or any(x in others for x in node.inputs):
            others.add(node)
        elif any(x in dependent for x in node.inputs):
            dependent.add(node)
    return dependent


def _leaves(node: Value) -> bool:
    """Whether a node that is the same at every step is worth computing outside: views cost nothing inside."""
    return node.op is not None and not is_view(node) and not node.op.regions


def _is_product(node: Value) -> bool:
    return node.op is not None and is_batchable(node) and lowering_of(node).is_product


def _read_inside(graph: Graph, hoisted: list[Value]) -> list[Value]:
    """Those of ``hoisted`` that the rest of the body reads, perhaps through views."""
    inside = _reached(graph, set(hoisted))
    return [node for node in hoisted if node in inside]


def _reached(graph: Graph, out: set[Value]) -> set[Value]:
    """What is met on the way up from the outputs, going no further than ``out``."""
    pending, visited = list(graph.outputs), set()
    while pending:
        node = pending.pop()
        if node not in visited:
            visited.add(node)
            if node not in out:
                pending += node.inputs
    return visited


def _used(graph: Graph, value_map: dict[Value, Value], inputs: list[Value]) -> list[Value]:
    read = {x for node in graph.values for x in node.inputs} | set(graph.outputs)
    return [x for x in inputs if value_map[x] in read]
