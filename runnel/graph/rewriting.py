"""Rewrite graphs value by value, with a map from old values to their replacements, and extract subgraphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from runnel.core.arrays import short_repr
from runnel.core.avals import ShapedArray
from runnel.core.errors import VerifierError
from runnel.graph.graph import Graph, topological
from runnel.graph.node import Constant, Input, InputKind, Node, Result, Value, applied, results_of


class Rewriter:
    """A map ``known`` from the values of an old graph to values of a new one, which can start with some entries."""

    def __init__(self, known: Mapping[Value, Value] | None = None) -> None:
        self.known: dict[Value, Value] = dict(known or {})
        self._replacements: dict[Node, tuple[Result, ...] | None] = {}  # None for a node that is kept

    def inputs(self, value: Value | Node) -> tuple[Value, ...]:
        """Return the replacements of the inputs of ``value``."""
        known = self.known
        return tuple([known[x] for x in value.inputs])

    def keep(self, value: Value, *, fresh: bool = False) -> Value:
        """Return ``value`` with the replacements of its inputs; itself if they are unchanged and not ``fresh``.

        The results of one node remain results of one node.
        """
        if not isinstance(value, Result):
            return value
        inputs = self.inputs(value)
        if inputs == value.inputs and not fresh:
            return value
        if len(value.node.avals) == 1:
            return applied(value.node.op, inputs, value.attrs, value.aval, value.where)
        return self.replace(value, lambda node: Node(node.op, inputs, node.attrs, node.avals, node.where))

    def replace(self, value: Result, make: Callable[[Node], Node]) -> Value:
        """Return ``value`` as a result of ``make(node)``, which is called once for all results of its node."""
        node = value.node
        if node not in self._replacements:
            new = make(node)
            self._replacements[node] = None if new is node else results_of(new)
        results = self._replacements[node]
        return value if results is None else results[value.index]

    def graph(self, old: Graph) -> Graph:
        """Return ``old`` with its outputs and updates replaced; ``old`` itself if none of them changed."""
        known = self.known
        if all(known[x] is x for x in old.roots):
            return old
        updates = {variable: known[new] for variable, new in old.updates.items()}
        return Graph(old.inputs, [known[x] for x in old.outputs], updates, old.name, [known[x] for x in old.effects])


def rewrite(graph: Graph, visit: Callable[[Value], Value]) -> Graph:
    """Return the graph with ``visit(value)`` for each value that is not an input; unreachable nodes are dropped.

    The inputs of the value that ``visit`` gets are rewritten already. If nothing changes, the result is ``graph``.
    """
    rewriter = Rewriter({x: x for x in graph.inputs})
    known = rewriter.known
    for value in graph.values:
        if value not in known:
            known[value] = new = visit(rewriter.keep(value))
            if not isinstance(new, Value):
                raise VerifierError(
                    f"Graph '{graph.name}': visit must return a value in place of {value!r}; got {short_repr(new)}."
                )
    return rewriter.graph(graph)


def substituted(graph: Graph, replace: Mapping[Value, Value]) -> Graph:
    """Return the graph with the values of ``replace`` replaced, along chains; unreachable nodes are dropped."""

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
    """A rewriter that looks up ``final(x)`` for each input x."""

    def __init__(self, final: Callable[[Value], Value]) -> None:
        super().__init__()
        self.final = final

    def inputs(self, value: Value | Node) -> tuple[Value, ...]:
        return tuple([self.known[self.final(x)] for x in value.inputs])


def copied(outputs: Sequence[Value], value_map: Mapping[Value, Value]) -> dict[Value, Value]:
    """Copy ``outputs`` and the values that they depend on, down to the keys of ``value_map``; return all copies."""
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
                    raise VerifierError(f"the map must have the input {value!r}.")
                known[value] = rewriter.keep(value, fresh=True)
    return known


class Extracted(NamedTuple):
    """A subgraph, and the map from values of the whole graph to its values."""

    graph: Graph
    value_map: dict[Value, Value]


def extract(inputs: Sequence[Value], outputs: Sequence[Value], name: str) -> Extracted:
    """Return the graph that computes ``outputs`` from ``inputs``, which can be any values. Constants are shared."""
    fresh: dict[Value, Value] = {x: placeholder(x.aval, x.name) for x in inputs}
    known = copied(outputs, fresh)
    return Extracted(Graph([fresh[x] for x in inputs], [known[o] for o in outputs], {}, name), known)


def placeholder(value: ShapedArray, name: str) -> Input:
    """Return an input."""
    return Input(value, InputKind.ARGUMENT, name)


def zeros(value: ShapedArray) -> Constant:
    """Return a constant of zeros."""
    array = np.zeros(value.shape, value.dtype.numpy)
    array.flags.writeable = False
    return Constant(value, array)
