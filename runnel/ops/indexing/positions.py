"""Elements by position with PyTorch's shapes: along an axis, in row-major order, and by strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.core.avals import Shape
from runnel.core.dispatch import ViewStep
from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, as_shape, as_sizes, broadcast_shapes, normalize_axis
from runnel.ops.conversion import cast
from runnel.ops.elementwise.arithmetic import floor_divide, remainder
from runnel.ops.indexing.assignment import add_at, put, put as put_at
from runnel.ops.indexing.gather import take, take_along_axis
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.views import reshape


def take_along_dim(x: Array, indices: Array, axis: int | None = None) -> Array:
    """Return the elements at ``indices`` along ``axis``; shapes broadcast in the other axes.

    Without ``axis``, indexes all elements in row-major order."""
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
    """Return a shape with another size at one axis."""
    return (*shape[:place], size, *shape[place + 1 :])


def put_flat(x: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """Write the elements of ``source`` at the row-major positions ``index``, or with ``accumulate`` add them.

    For a position that occurs several times, the last element counts, or all are added."""
    if index.size != source.size:
        raise ShapeError(f"[put] an index of shape {index.shape} and a source of shape {source.shape} differ in size.")
    flat, numbers, values = reshape(x, (x.size,)), reshape(index, (index.size,)), reshape(source, (source.size,))
    written = (add_at if accumulate else put_at)(flat, (numbers,), values)
    return reshape(written, x.shape)


def unravel_index(indices: Array, shape: int | Sequence[int]) -> tuple[Array, ...]:
    """Return the index along each axis, for positions in row-major order of ``shape``."""
    sizes = as_sizes("unravel_index", shape)
    numbers = cast(indices, int64)
    below = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    return tuple(remainder(floor_divide(numbers, max(b, 1)), max(n, 1)) for b, n in zip(below, sizes, strict=True))


def as_strided(x: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Array:
    """Return result[i, j, …] = the element at row-major position storage_offset + i·stride[0] + j·stride[1] + … of
    ``x``.

    The result, a view, has the shape ``size``. An element may occur several times; its gradient is the sum. Positions
    count the elements of ``x`` in row-major order, however they lie in memory. ShapeError for a position outside
    ``x``.
    """
    numbers = _numbers("as_strided", x, size, stride, storage_offset)

    def look(x: Array) -> Array:
        return take(reshape(x, (x.size,)), x.lift(numbers, int64), 0)

    def put(x: Array, new: Array) -> Array:
        return as_strided_scatter(x, new, size, stride, storage_offset)

    view: Array = x.view_by(ViewStep(look, put, lambda shape, strides: (numbers.shape, tuple(stride))))
    return view


def as_strided_scatter(
    x: Array, src: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Array:
    """Replace the elements that :func:`as_strided` selects, each once, by ``src``."""
    numbers = _numbers("as_strided_scatter", x, size, stride, storage_offset)
    if src.shape != numbers.shape:
        raise ShapeError(f"[as_strided_scatter] a source of shape {src.shape} does not fit size {numbers.shape}.")
    if len(np.unique(numbers)) != numbers.size:
        raise ShapeError(f"[as_strided_scatter] strides {tuple(stride)} of size {numbers.shape} name an element twice.")
    written = put(reshape(x, (x.size,)), (x.lift(numbers.ravel(), int64),), reshape(src, (src.size,)))
    return reshape(written, x.shape)


def _numbers(name: str, x: Array, size: Any, stride: Any, offset: int | None) -> np.ndarray[Any, Any]:
    """Return the row-major position of each element."""
    shape: Shape = as_sizes(name, size)
    steps = as_shape(name, stride)
    if len(shape) != len(steps) or min(steps, default=0) < 0:
        raise ShapeError(f"[{name}] size {shape} must have a stride from 0 up for each axis; got {steps}.")
    first = 0 if offset is None else int(offset)
    last = first + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    if 0 not in shape and not 0 <= first <= last < x.size:
        raise ShapeError(
            f"[{name}] size {shape} with strides {steps} from element {first} on reaches element {last}; shape "
            f"{x.shape} has {x.size}."
        )
    numbers = np.full(shape, first, np.int64)
    for axis, (n, step) in enumerate(zip(shape, steps, strict=True)):
        numbers += (np.arange(n) * step).reshape(n, *(1,) * (len(shape) - axis - 1))
    return numbers
