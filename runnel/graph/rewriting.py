"""The one way to make a graph out of another: value by value, with what stands for each so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from runnel.core.errors import VerifierError
from runnel.graph.graph import Graph, topological
from runnel.graph.node import Node, Result, Value, applied, results_of


class Rewriter:
    """What stands for each value of an old graph in a new one: ``known``, which may be given a start."""

    def __init__(self, known: Mapping[Value, Value] | None = None) -> None:
        self.known: dict[Value, Value] = dict(known or {})
        self._made: dict[Node, tuple[Result, ...] | None] = {}  # None for a node that stays

    def inputs(self, value: Value | Node) -> tuple[Value, ...]:
        """What stands for the inputs of ``value``."""
        known = self.known
        return tuple([known[x] for x in value.inputs])

    def keep(self, value: Value, *, fresh: bool = False) -> Value:
        """``value`` made of what stands for its inputs: itself where these stand for themselves, unless ``fresh``. The
        results of one node stay those of one node."""
        if not isinstance(value, Result):
            return value
        inputs = self.inputs(value)
        if inputs == value.inputs and not fresh:
            return value
        if len(value.node.avals) == 1:
            return applied(value.node.op, inputs, value.attrs, value.aval, value.where)
        return self.replace(value, lambda node: Node(node.op, inputs, node.attrs, node.avals, node.where))

    def replace(self, value: Result, make: Callable[[Node], Node]) -> Value:
        """``value`` as the result of the node ``make(node)``, which is made once for all results of its node."""
        node = value.node
        if node not in self._made:
            new = make(node)
            self._made[node] = None if new is node else results_of(new)
        made = self._made[node]
        return value if made is None else made[value.index]

    def graph(self, old: Graph) -> Graph:
        """``old`` with its outputs and updates by what stands for them; itself if they stand for themselves."""
        known = self.known
        if all(known[x] is x for x in old.roots):
            return old
        updates = {variable: known[new] for variable, new in old.updates.items()}
        return Graph(old.inputs, [known[x] for x in old.outputs], updates, old.name, [known[x] for x in old.effects])


def rewrite(graph: Graph, visit: Callable[[Value], Value]) -> Graph:
    """The graph with ``visit(value)`` for each value that is not an input; nodes without readers are gone.

    ``visit`` is given a value whose inputs have been rewritten already. Iterative; the same graph if nothing changed.
    """
    rewriter = Rewriter({x: x for x in graph.inputs})
    known = rewriter.known
    for value in graph.values:
        if value not in known:
            known[value] = visit(rewriter.keep(value))
    return rewriter.graph(graph)


def substituted(graph: Graph, replace: Mapping[Value, Value]) -> Graph:
    """``graph`` with each value of ``replace`` swapped for another (chains are followed); unreachable ones are gone."""

    def final(value: Value) -> Value:
        while value in replace and replace[value] is not value:
            value = replace[value]
        return value

    rewriter = _Through(final)
    for value in topological([final(root) for root in graph.roots], graph.inputs, through=final):
        rewriter.known[value] = rewriter.keep(value)
    done = rewriter.known
    updates = {variable: done[final(new)] for variable, new in graph.updates.items()}
    effects = [done[final(x)] for x in graph.effects]
    return Graph(graph.inputs, [done[final(x)] for x in graph.outputs], updates, graph.name, effects)


class _Through(Rewriter):
    """Looks up values by those that ``final`` gives for them."""

    def __init__(self, final: Callable[[Value], Value]) -> None:
        super().__init__()
        self.final = final

    def inputs(self, value: Value | Node) -> tuple[Value, ...]:
        return tuple([self.known[self.final(x)] for x in value.inputs])


def copied(outputs: Sequence[Value], value_map: Mapping[Value, Value]) -> dict[Value, Value]:
    """Copies of ``outputs`` and of what they are computed from, down to the values that others stand for."""
    rewriter = Rewriter(value_map)
    known = rewriter.known
    for output in outputs:
        stack = [output]
        while stack:
            value = stack[-1]
            missing = [x for x in value.inputs if x not in known] if value not in known else []
            if missing:
                stack += reversed(missing)
                continue
            stack.pop()
            if value not in known:
                if value.is_input:
                    raise VerifierError(f"{value!r} is an input that nothing stands for.")
                known[value] = rewriter.keep(value, fresh=True)
    return known
