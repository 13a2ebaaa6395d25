"""Graphs in which some values are computed again, next to their late readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from runnel.compiler.fusion.strided import Strided
from runnel.compiler.schedule.remat_candidates import RematCandidate
from runnel.graph.graph import Graph
from runnel.graph.node import Node, Result, Value, applied, reapplied, results_of
from runnel.ops.optimization_barrier import optimization_barrier_p


class Repeated(NamedTuple):
    """The new graph, and the replacement of each node of the old one."""

    graph: Graph
    new: dict[Value, Value]


def repeated(graph: Graph, views: dict[Value, Strided], picks: Sequence[RematCandidate]) -> Repeated:
    """``graph`` in which the late readers of each pick read another computation of its value."""
    return _Rewriting(graph, views, picks).run()


class _Part(NamedTuple):
    """A node of the new graph, before it is created: ``node`` itself (no pick); its recomputation for a pick; or itself
    as an operand of a pick (``late``)."""

    node: Value
    candidate: int = -1
    late: bool = False


class _Rewriting:
    def __init__(self, graph: Graph, views: dict[Value, Strided], picks: Sequence[RematCandidate]) -> None:
        self.graph = graph
        self.views = views
        self.picks = picks
        self.reads_late = {(user, candidate.value): i for i, candidate in enumerate(picks) for user in candidate.users}
        self.new: dict[_Part, Value] = {}
        self.results: dict[Node, tuple[Result, ...]] = {}
        self.shared: dict[tuple[Value, tuple[Value, ...], bool], Value] = {}  # recomputed values of picks at one point

    def run(self) -> Repeated:
        """Create all values that the roots depend on; iterative, so depth is no limit."""
        stack = [_Part(root) for root in reversed((*self.graph.inputs, *self.graph.roots))]
        while stack:
            part = stack[-1]
            if part in self.new:
                stack.pop()
                continue
            parts = self._parts(part)
            missing = [p for p in parts if p not in self.new]
            if missing:
                stack += reversed(missing)
            else:
                self.new[part] = self._make(part, tuple(self.new[p] for p in parts))
        old = {part.node: node for part, node in self.new.items() if part.candidate < 0}
        graph = Graph(
            self.graph.inputs,
            [old[o] for o in self.graph.outputs],
            {variable: old[new] for variable, new in self.graph.updates.items()},
            self.graph.name,
            [old[x] for x in self.graph.effects],
        )
        return Repeated(graph, old)

    def _parts(self, part: _Part) -> list[_Part]:
        node, number, late = part
        if number < 0:
            late_reads = [self.reads_late.get((node, self.views[x].base), -1) for x in node.inputs]
            return [_Part(x, candidate) for x, candidate in zip(node.inputs, late_reads, strict=True)]
        candidate = self.picks[number]
        if late:
            return [_Part(node), _Part(candidate.after)]
        if self.views[node].base is not node:
            source, *after = node.inputs
            return [_Part(source, number), *map(_Part, after)]
        return [_Part(x, number, self.views[x].base not in candidate.repeated) for x in node.inputs]

    def _make(self, part: _Part, inputs: tuple[Value, ...]) -> Value:
        node, number, late = part
        if number < 0:
            return node if inputs == node.inputs else self._with_inputs(node, inputs)
        if late and node.is_constant:
            return node
        key = (node, inputs, late)
        if key not in self.shared:
            remade = (
                applied(optimization_barrier_p, inputs, {}, node.aval, node.where) if late else reapplied(node, inputs)
            )
            self.shared[key] = remade
        return self.shared[key]

    def _with_inputs(self, value: Value, inputs: tuple[Value, ...]) -> Value:
        """``value`` of the first computation, on other inputs. The results of one node remain results of one node."""
        if not isinstance(value, Result):
            return value
        node = value.node
        if node not in self.results:
            self.results[node] = results_of(Node(node.op, inputs, node.attrs, node.avals, node.where))
        return self.results[node][value.index]
