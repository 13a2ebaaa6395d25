"""A part of a graph as a graph of its own, and the nodes that stand at its borders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from runnel.core.avals import Aval
from runnel.core.errors import VerifierError
from runnel.graph.graph import Graph, InputKind, Node


class Extracted(NamedTuple):
    """``stands_for`` takes nodes of the whole to those of the part."""

    graph: Graph
    stands_for: dict[Node, Node]


def extract(inputs: Sequence[Node], outputs: Sequence[Node], name: str) -> Extracted:
    """The graph that computes ``outputs`` from ``inputs``, which may be any nodes. Constants are shared."""
    fresh = {x: placeholder(x.aval, x.name) for x in inputs}
    known = copied(outputs, fresh)
    return Extracted(Graph([fresh[x] for x in inputs], [known[o] for o in outputs], {}, name), known)


def copied(outputs: Sequence[Node], stands_for: dict[Node, Node]) -> dict[Node, Node]:
    """Copies of ``outputs`` and of what they are computed from, down to the nodes that others stand for."""
    known = dict(stands_for)
    for output in outputs:
        stack = [output]
        while stack:
            node = stack[-1]
            missing = [x for x in node.inputs if x not in known] if node not in known else []
            if missing:
                stack += reversed(missing)
                continue
            stack.pop()
            if node not in known:
                known[node] = _copied(node, known)
    return known


def _copied(node: Node, known: dict[Node, Node]) -> Node:
    if node.is_constant:
        return node
    if node.op is None:
        raise VerifierError(f"{node!r} is an input that nothing stands for.")
    return Node(node.op, tuple(known[x] for x in node.inputs), node.attrs, node.aval, node.where)


def placeholder(value: Aval, name: str) -> Node:
    """An input."""
    return Node(None, (), {}, value, kind=InputKind.ARGUMENT, name=name)


def zeros(value: Aval) -> Node:
    """A constant of zeros."""
    array = np.zeros(value.shape, value.dtype.numpy)
    array.flags.writeable = False
    return Node(None, (), {}, value, value=array)
