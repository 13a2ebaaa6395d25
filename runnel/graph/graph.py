"""The graph of a traced function: nodes in topological order.

A graph lists its inputs and outputs, and the new value of each Variable that it updates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runnel.core.caching import lazy
from runnel.core.kinds import declare
from runnel.graph.node import Node, Result, Value


@declare
class Graph:
    """Values and the nodes that compute them.

    Args:
        inputs: the inputs, in the order of a call.
        outputs: the outputs, in the order of a call.
        updates: the new value of each input for a Variable that changes.
        name: the name in reports.
        effects: results of nodes that run for their side effects.
    """

    def __init__(
        self,
        inputs: Iterable[Value],
        outputs: Iterable[Value],
        updates: Mapping[Value, Value],
        name: str = "program",
        effects: Iterable[Value] = (),
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.updates = dict(updates)
        self.name = name
        self.effects = tuple(effects)

    @property
    def roots(self) -> tuple[Value, ...]:
        return (*self.outputs, *self.updates.values(), *self.effects)

    @lazy
    def values(self) -> list[Value]:
        """Return all inputs, then all values that the roots depend on, in topological order."""
        return topological(self.roots, self.inputs)

    @lazy
    def nodes(self) -> dict[Node, list[Result]]:
        """Return all nodes in topological order, each with its needed results."""
        nodes: dict[Node, list[Result]] = {}
        for value in self.values:
            if isinstance(value, Result):
                nodes.setdefault(value.node, []).append(value)
        return nodes

    def users(self) -> dict[Value, list[Result]]:
        """Return for each value the nodes that read it, once for each operand, as the first of their results."""
        users: dict[Value, list[Result]] = {x: [] for x in self.values}
        for node, results in self.nodes.items():
            for x in node.inputs:
                users[x].append(results[0])
        return users


def topological(roots: Iterable[Value], first: Iterable[Value] = (), through: Any = None) -> list[Value]:
    """Return ``first``, then ``roots`` and the values that they depend on, in topological order.

    This is iterative, so graphs can be deep. ``through``, if given, maps each value to its replacement.
    """
    order: list[Value] = []
    visited: set[Value] = set()
    for value in first:
        if value not in visited:
            visited.add(value)
            order.append(value)
    stack: list[tuple[Value, Iterator[Value]]] = []
    for root in roots:
        if root not in visited:
            visited.add(root)
            stack.append((root, iter(root.inputs)))
        while stack:
            value, rest = stack[-1]
            for child in rest:
                x = child if through is None else through(child)
                if x in visited:
                    continue
                visited.add(x)
                if x.inputs:
                    stack.append((x, iter(x.inputs)))
                    break
                order.append(x)
            else:
                order.append(value)
                stack.pop()
    return order
