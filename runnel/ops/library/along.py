"""Selection along an axis with PyTorch's shapes, which broadcast."""

from __future__ import annotations

from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, broadcast_shapes, normalize_axis
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.indexing import take_along_axis
from runnel.ops.views import reshape


def take_along_dim(x: Array, indices: Array, axis: int | None = None) -> Array:
    """For each place, the element of ``x`` at ``indices`` along ``axis``; shapes broadcast in the other axes. Without
    ``axis``, of all elements in a row."""
    if axis is None:
        return take_along_axis(reshape(x, (x.size,)), reshape(indices, (indices.size,)), 0)
    if indices.ndim != x.ndim:
        raise ShapeError(
            f"[take_along_dim] indices of shape {indices.shape} and an array of shape {x.shape} have as many axes; "
            "reshape the indices."
        )
    place = normalize_axis("take_along_dim", axis, x.ndim)
    others = broadcast_shapes("take_along_dim", *(_with(s, place, 1) for s in (x.shape, indices.shape)))
    wide = broadcast_to(x, _with(others, place, x.shape[place]))
    return take_along_axis(wide, broadcast_to(indices, _with(others, place, indices.shape[place])), place)


def _with(shape: tuple[int, ...], place: int, size: int) -> tuple[int, ...]:
    """A shape with another size at one axis."""
    return (*shape[:place], size, *shape[place + 1 :])
