"""The graph: what a traced function computes, as nodes in topological order.

A node applies one op to earlier nodes. Inputs and constants are nodes without an op. A graph also says which nodes are
its outputs and which new value each Variable it was given ends up with.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Any

from runnel.core.avals import Aval
from runnel.core.lazy import lazy
from runnel.core.tables import Op


class InputKind(enum.Enum):
    """Where an input's value comes from when the program runs."""

    ARGUMENT = "argument"  # a tensor passed to the function, or captured by it: new at each call
    SCALAR = "scalar"  # a Python float passed as run-time data
    VARIABLE = "variable"  # the state of a Variable: read, and perhaps written


class Node:
    """One value of a graph: ``op`` applied to ``inputs`` with ``attrs``; ``where`` is the user's source line."""

    __slots__ = ("attrs", "aval", "inputs", "kind", "name", "op", "value", "where")

    def __init__(
        self,
        op: Op | None,
        inputs: tuple[Node, ...],
        attrs: dict[str, Any],
        aval: Aval,
        where: str = "",
        *,
        kind: InputKind | None = None,
        value: Any = None,
        name: str = "",
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.attrs = attrs
        self.aval = aval
        self.where = where
        self.kind = kind  # of an input node
        self.value = value  # of a constant node: a read-only ndarray
        self.name = name  # of an input: how reports call it

    @property
    def is_input(self) -> bool:
        return self.kind is not None

    @property
    def is_constant(self) -> bool:
        return self.op is None and self.kind is None

    def __repr__(self) -> str:
        what = self.op.name if self.op else (self.kind.value if self.kind else "constant")
        return f"Node({what}: {self.aval})"


class Graph:
    """Nodes in topological order, with ``inputs``, ``outputs`` and ``updates`` (Variable input → its new value)."""

    def __init__(
        self,
        inputs: Iterable[Node],
        outputs: Iterable[Node],
        updates: dict[Node, Node],
        name: str = "program",
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.updates = dict(updates)
        self.name = name

    @property
    def roots(self) -> tuple[Node, ...]:
        return (*self.outputs, *self.updates.values())

    @lazy
    def nodes(self) -> list[Node]:
        """Every node the roots need, inputs first, each after its inputs. The graph's own inputs are always listed."""
        return topological(self.roots, self.inputs)

    def users(self) -> dict[Node, list[Node]]:
        """For each node, the nodes that read it (once per reading)."""
        users: dict[Node, list[Node]] = {n: [] for n in self.nodes}
        for node in self.nodes:
            for x in node.inputs:
                users[x].append(node)
        return users

    def rebuilt(self, replace: dict[Node, Node]) -> Graph:
        """The same graph with each node of ``replace`` swapped for another (chains followed), unreachable ones gone."""
        done: dict[Node, Node] = {}

        def final(node: Node) -> Node:
            while node in replace and replace[node] is not node:
                node = replace[node]
            return node

        for node in topological([final(r) for r in self.roots], self.inputs, through=final):
            inputs = tuple(done[final(x)] for x in node.inputs)
            if inputs == node.inputs:
                done[node] = node
            else:
                done[node] = Node(node.op, inputs, node.attrs, node.aval, node.where)
        return Graph(
            self.inputs,
            [done[final(o)] for o in self.outputs],
            {v: done[final(n)] for v, n in self.updates.items()},
            self.name,
        )


def topological(roots: Iterable[Node], first: Iterable[Node] = (), through: Any = None) -> list[Node]:
    """The ancestors of ``roots`` in topological order (``first`` at the head); iterative, so depth is no limit.

    ``through`` maps each node to the one that stands for it.
    """
    order: list[Node] = []
    seen: set[Node] = set()
    for node in first:
        if node not in seen:
            seen.add(node)
            order.append(node)
    stack: list[tuple[Node, Iterator[Node]]] = []
    for root in roots:
        if root not in seen:
            seen.add(root)
            stack.append((root, iter(root.inputs)))
        while stack:
            node, rest = stack[-1]
            for child in rest:
                x = child if through is None else through(child)
                if x in seen:
                    continue
                seen.add(x)
                if x.inputs:
                    stack.append((x, iter(x.inputs)))
                    break
                order.append(x)
            else:
                order.append(node)
                stack.pop()
    return order
