"""Concatenations and padded arrays without copies: a kernel that makes a part of one stores it where it belongs.

That holds for values of map kernels without reductions and of products with what follows them, whose elements lie side
by side in the larger array, enough of them; other parts are copied.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from runnel.compiler.fusion.clusters import Cluster, Form, essential, is_batched
from runnel.compiler.fusion.strided import Strided, reshaped_strides
from runnel.compiler.kernels.contraction import matrices
from runnel.compiler.kernels.copies.alone import Lie
from runnel.compiler.kernels.places import Place
from runnel.core import tables
from runnel.core.avals import Shape, row_major
from runnel.graph.node import Value
from runnel.loops.rules import Concatenation, Padding

_SHORTEST: Final = 16  # elements side by side that are worth storing apart from the others
_LARGEST: Final = np.iinfo(np.int32).max  # elements that a list of offsets can tell apart


@dataclass(frozen=True, slots=True)
class Piece:
    """``base``, the node that is stored, lies in a larger array from element ``offset`` on, with ``strides``."""

    base: Value
    offset: int
    strides: Shape

    def lie(self, place: Place) -> Lie:
        """The same over the axes that are not 1."""
        steps = zip(self.base.aval.shape, self.strides, strict=True)
        return place, self.offset, tuple(step for n, step in steps if n != 1)


@dataclass(frozen=True, slots=True)
class Laying:
    """``pieces`` are, for each concatenation and padded array, those of its inputs, by their numbers, that are stored
    in place by their makers."""

    pieces: dict[Value, dict[int, Piece]] = field(default_factory=dict)

    def spares(self, node: Value, x: Value) -> bool:
        """Whether ``node`` has no need to read its input ``x``."""
        return node in self.pieces and all(i in self.pieces[node] for i, y in enumerate(node.inputs) if y is x)

    def lies(self, targets: dict[Value, list[Place]]) -> dict[Value, list[Lie]]:
        """Where each stored node lies in larger ones, with strides over its axes that are not 1."""
        found: dict[Value, list[Lie]] = {}
        for node, pieces in self.pieces.items():
            for piece in pieces.values():
                found.setdefault(piece.base, []).append(piece.lie(targets[node][0]))
        return found


def find(home: dict[Value, Cluster], views: dict[Value, Strided], behind: Collection[Value]) -> Laying:
    """All that can be stored in place."""
    pieces: dict[Value, dict[int, Piece]] = {}
    for node in home:
        for number, (offset, strides) in _parts(node).items():
            x = node.inputs[number]
            piece = None if x in behind else _piece(x, views[x], offset, strides)
            if piece is not None and _fits(piece, home.get(piece.base), node.aval.size):
                pieces.setdefault(node, {})[number] = piece
    return Laying(pieces)


def _parts(node: Value) -> dict[int, tuple[int, Shape]]:
    """Where the inputs of a node lie in it, as offset and strides: those which it only takes in."""
    rule = tables.lower.get(node.op) if node.op is not None else None
    strides = row_major(node.aval.shape)
    if isinstance(rule, Concatenation):
        axis = node.attrs["axis"]
        starts = np.cumsum([0, *(x.aval.shape[axis] for x in node.inputs)]).tolist()
        return {i: (starts[i] * strides[axis], strides) for i in range(len(node.inputs))}
    if isinstance(rule, Padding):
        widths = node.attrs["widths"]
        if all(step == 1 or n == 1 for n, (_, _, step) in zip(node.inputs[0].aval.shape, widths, strict=True)):
            return {0: (sum(low * step for (low, _, _), step in zip(widths, strides, strict=True)), strides)}
    return {}


def _piece(x: Value, view: Strided, offset: int, strides: Shape) -> Piece | None:
    """``x``, which lies so in a larger array, as its base: where ``x`` is all of that, in order."""
    if not view.is_dense(x.aval.shape) or view.base.aval.size != x.aval.size or not x.aval.size:
        return None
    found = reshaped_strides(x.aval.shape, strides, view.base.aval.shape)
    return None if found is None else Piece(view.base, offset, found)


def _fits(piece: Piece, cluster: Cluster | None, size: int) -> bool:
    """Whether ``cluster`` can store the piece into an array of ``size``."""
    shape = essential(piece.base.aval.shape)
    if cluster is None or cluster.sums or cluster.reduced or shape != cluster.domain or not shape:
        return False
    if cluster.form is Form.MAP:
        return _run(piece) >= _SHORTEST
    if cluster.form is not Form.CONTRACTION or is_batched(cluster.product) or size > _LARGEST:
        return False
    steps = tuple(s for n, s in zip(piece.base.aval.shape, piece.strides, strict=True) if n != 1)
    found = matrices.point_rows(cluster.product, steps)
    return found is not None and found.column == 1


def _run(piece: Piece) -> int:
    """How many elements lie side by side."""
    run = 1
    for n, step in zip(reversed(piece.base.aval.shape), reversed(piece.strides), strict=True):
        if n != 1 and step != run:
            break
        run *= n
    return run
