"""The gradient of an array that was read in slices, accumulated from the gradients of the slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from runnel.core.avals import Shape
from runnel.ops.arguments import Array
from runnel.ops.creation_like import full_like
from runnel.ops.elementwise.arithmetic import add
from runnel.ops.shapes.padding import embedded_in_zeros
from runnel.ops.shapes.pieces import concat_same


class SliceGradient(NamedTuple):
    """The cotangent ``g`` of the slice from ``start`` on, along ``axis`` alone."""

    g: Array
    axis: int
    start: int

    @staticmethod
    def of(g: Array, x: Array, *, starts: Shape, sizes: Shape, steps: Shape) -> SliceGradient | None:
        """Return the gradient of a slice of ``x``; None if it cuts several axes or skips elements."""
        cut = [axis for axis, (size, n) in enumerate(zip(sizes, x.shape, strict=True)) if size != n]
        if len(cut) != 1 or any(step != 1 for step in steps) or 0 in sizes:
            return None
        return SliceGradient(g, cut[0], starts[cut[0]])

    @property
    def end(self) -> int:
        size: int = self.g.shape[self.axis]
        return self.start + size


def assembled(pieces: Sequence[SliceGradient], shape: Shape) -> Array:
    """Sum the ``pieces``, each placed into zeros of ``shape``. Adjacent pieces along one axis are joined, not added."""
    rows: dict[int, list[SliceGradient]] = {}
    total: Array = None
    for piece in sorted(pieces, key=lambda p: (p.axis, p.start)):
        row = rows.setdefault(piece.axis, [])
        if row and row[-1].end > piece.start:
            total = _plus(total, _alone(piece, shape))
        else:
            row.append(piece)
    for row in rows.values():
        total = _plus(total, _joined(row, shape))
    return total


def _plus(total: Array | None, g: Array) -> Array:
    return g if total is None else add(total, g)


def _alone(piece: SliceGradient, shape: Shape) -> Array:
    starts = tuple(piece.start if axis == piece.axis else 0 for axis in range(len(shape)))
    return embedded_in_zeros(piece.g, shape, starts, piece.g.shape, (1,) * len(shape))


def _joined(row: Sequence[SliceGradient], shape: Shape) -> Array:
    """Join pieces in order, with zeros between them."""
    if len(row) == 1:
        return _alone(row[0], shape)
    axis, at = row[0].axis, 0
    parts: list[Array] = []
    for piece in row:
        parts += [*_gap(piece.g, axis, piece.start - at, shape), piece.g]
        at = piece.end
    return concat_same([*parts, *_gap(row[-1].g, axis, shape[axis] - at, shape)], axis)


def _gap(like: Array, axis: int, size: int, shape: Shape) -> list[Array]:
    return [full_like(like, 0, (*shape[:axis], size, *shape[axis + 1 :]))] if size else []
