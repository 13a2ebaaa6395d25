"""Concatenations without copies: a kernel that makes a piece of one stores it where it belongs.

That holds for values of map kernels without reductions whose rows are whole vectors; other pieces are copied.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from runnel.core import tables
from runnel.core.avals import row_major
from runnel.graph.graph import Node
from runnel.loops.rules import Concatenation
from runnel.lowering.alone import Lie
from runnel.lowering.clusters import Cluster, Form, essential
from runnel.lowering.places import Place
from runnel.lowering.strided import Strided

_SHORTEST: Final = 16  # elements of a row that is worth storing apart from the others


@dataclass(frozen=True, slots=True)
class Laying:
    """``pieces`` are, for each concatenation, the numbers of the inputs that are stored in place by their makers."""

    pieces: dict[Node, dict[int, Node]] = field(default_factory=dict)  # to the node that is stored

    def spares(self, node: Node, x: Node) -> bool:
        """Whether ``node`` has no need to read its input ``x``."""
        return node in self.pieces and all(i in self.pieces[node] for i, y in enumerate(node.inputs) if y is x)

    def lies(self, targets: dict[Node, list[Place]]) -> dict[Node, list[Lie]]:
        """Where each stored node lies in its concatenations, with strides over its axes that are not 1."""
        found: dict[Node, list[Lie]] = {}
        for node, numbers in self.pieces.items():
            axis, strides, start = node.attrs["axis"], row_major(node.aval.shape), 0
            for i, x in enumerate(node.inputs):
                if i in numbers:
                    steps = tuple(step for n, step in zip(x.aval.shape, strides, strict=True) if n != 1)
                    found.setdefault(numbers[i], []).append((targets[node][0], start * strides[axis], steps))
                start += x.aval.shape[axis]
        return found


def find(home: dict[Node, Cluster], views: dict[Node, Strided], behind: Collection[Node]) -> Laying:
    """The pieces of all concatenations that can be stored in place."""
    pieces: dict[Node, dict[int, Node]] = {}
    for node in home:
        if node.op is not None and isinstance(tables.lower.get(node.op), Concatenation):
            numbers = {i: views[x].base for i, x in enumerate(node.inputs) if _fits(x, home, views, behind)}
            if numbers:
                pieces[node] = numbers
    return Laying(pieces)


def _fits(x: Node, home: dict[Node, Cluster], views: dict[Node, Strided], behind: Collection[Node]) -> bool:
    view = views[x]
    cluster = home.get(view.base)
    if cluster is None or cluster.form is not Form.MAP or cluster.reduced or cluster.sums or x in behind:
        return False
    shape = essential(x.aval.shape)
    whole = view.is_dense(x.aval.shape) and view.base.aval.size == x.aval.size
    return whole and shape == essential(view.base.aval.shape) == cluster.domain and bool(shape) and _is_row(x)


def _is_row(x: Node) -> bool:
    """Whether its elements lie side by side, enough of them, wherever it is a piece of."""
    return x.aval.shape[-1] >= _SHORTEST
