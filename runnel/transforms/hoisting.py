"""Input hoisting: compute outside a loop what its body computes without its carries.

Values that depend only on constants are computed once. A contraction that depends only on xs and constants becomes one
contraction over all steps, which is faster than many small ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from runnel.compiler.lowering.protocol import lowering_of
from runnel.core.axes import LOOPED
from runnel.core.tables import axes
from runnel.graph.graph import Graph
from runnel.graph.node import Node, Result, Value
from runnel.graph.rewriting import extract
from runnel.tensor.batching import Batching
from runnel.tensor.bodies import leaf, results
from runnel.tensor.tensor import Tensor


def is_batchable(node: Value) -> bool:
    """Return whether ``node`` can be computed for all steps at once. Checks and host calls stay in their steps."""
    if node.op is None:
        return node.is_constant
    return axes.get(node.op) not in (None, LOOPED) and not lowering_of(node).stays_in_step


def is_view(node: Value) -> bool:
    """Return whether ``node`` computes nothing."""
    return lowering_of(node).is_view


class Steps:
    """The values of a body's nodes at all ``length`` steps, computed as ``vmap`` does from some known ones."""

    def __init__(self, length: int) -> None:
        self._level = Batching(length)
        self._known: dict[Value, Tensor] = {}
        self._results: dict[Node, tuple[Tensor, ...]] = {}

    def fix(self, nodes: Iterable[Value], values: Iterable[Tensor]) -> None:
        """Note that ``nodes`` have these values at every step."""
        self._known.update((node, self._level.lifted(x)) for node, x in zip(nodes, values, strict=True))

    def stack(self, nodes: Iterable[Value], values: Iterable[Tensor]) -> None:
        """Note the stacked values of ``nodes``."""
        self._known.update((node, self._level.stack(x)) for node, x in zip(nodes, values, strict=True))

    def reaches(self, node: Value, further: Collection[Value]) -> bool:
        """Return whether ``node`` can be computed from known values and ``further`` nodes."""
        pending, visited = [node], set()
        while pending:
            at = pending.pop()
            if at in visited or at in self._known or at in further:
                continue
            visited.add(at)
            if not is_batchable(at):
                return False
            pending += at.inputs
        return True

    def compute(self, nodes: Iterable[Value]) -> None:
        """Compute these nodes and the unknown nodes that they depend on."""
        stack = list(nodes)
        with self._level:
            while stack:
                node = stack[-1]
                missing = [] if node in self._known else [x for x in node.inputs if x not in self._known]
                if missing:
                    stack += missing
                    continue
                stack.pop()
                if node not in self._known:
                    result = self._computed(node)
                    self._known[node] = result if result._level is self._level else self._level.lifted(result)

    def _computed(self, value: Value) -> Tensor:
        if not isinstance(value, Result):
            return leaf(value)
        if value.node not in self._results:
            self._results[value.node] = results(value.node, [self._known[x] for x in value.inputs])
        return self._results[value.node][value.index]

    def all_steps(self, node: Value) -> Tensor:
        """Return the stacked values of ``node``, repeated if it has one value at every step."""
        return self._level.all_elements(self._known[node])

    def fixed(self, node: Value) -> Tensor:
        """Return the value of ``node``, which is the same at every step."""
        return self._level.split(self._known[node])[0]


class Loop(NamedTuple):
    """A scan before it is recorded: a body with inputs (constants, carries, xs), and their values."""

    graph: Graph
    constants: list[Tensor]
    carries: list[Tensor]
    xs: list[Tensor]
    length: int


def hoisted(loop: Loop) -> Loop:
    """Return ``loop`` with a smaller body, and with further inputs that are computed outside."""
    graph, n, m = loop.graph, len(loop.constants), len(loop.carries)
    constants, xs = graph.inputs[:n], graph.inputs[n + m :]
    fixed = _computed_from(graph, set(constants))
    without_carries = _computed_from(graph, {*constants, *xs})
    once = [node for node in graph.values if node in fixed and _is_worth_moving(node)]
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
        body, [known.fixed(x) for x in used_constants], loop.carries, [known.all_steps(x) for x in used_xs], loop.length
    )


def _computed_from(graph: Graph, sources: set[Value]) -> set[Value]:
    """Return the nodes that depend on ``sources`` and on no other input."""
    dependent = set(sources)
    others = set(graph.inputs) - sources
    for node in graph.values:
        if node in others or any(x in others for x in node.inputs):
            others.add(node)
        elif any(x in dependent for x in node.inputs):
            dependent.add(node)
    return dependent


def _is_worth_moving(node: Value) -> bool:
    """Return whether it saves time to compute a constant node outside. Views cost nothing inside."""
    return node.op is not None and not is_view(node) and not node.op.regions


def _is_product(node: Value) -> bool:
    return node.op is not None and is_batchable(node) and lowering_of(node).is_product


def _read_inside(graph: Graph, hoisted: list[Value]) -> list[Value]:
    """Return the nodes of ``hoisted`` that the rest of the body reads, also through views."""
    ends, pending, visited = set(hoisted), list(graph.outputs), set()
    while pending:
        node = pending.pop()
        if node not in visited:
            visited.add(node)
            if node not in ends:
                pending += node.inputs
    return [node for node in hoisted if node in visited]


def _used(graph: Graph, value_map: dict[Value, Value], inputs: list[Value]) -> list[Value]:
    read = {x for node in graph.values for x in node.inputs} | set(graph.outputs)
    return [x for x in inputs if value_map[x] in read]
