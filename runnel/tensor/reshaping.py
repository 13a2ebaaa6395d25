"""PyTorch's methods that give a tensor another shape, or other elements, in place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.core.errors import DTypeError, ShapeError
from runnel.ops.arguments import Array, Axis, as_sizes, gathered
from runnel.ops.indexing import positions
from runnel.ops.shapes.padding import pad
from runnel.ops.shapes.pieces import narrow
from runnel.ops.shapes.views import expand_dims, reshape, transpose
from runnel.ops.sorting.sets import known
from runnel.tensor.handle import Handle
from runnel.tensor.queries import t
from runnel.tensor.torch_methods import squeeze
from runnel.tensor.views import memory_order


def t_(x: Array) -> Array:
    """Transpose the matrix ``x``; returns it."""
    return x.reshape_in_place("t_", t)


def transpose_(x: Array, dim0: int, dim1: int) -> Array:
    """Exchange two axes of ``x``; returns it."""
    return x.reshape_in_place("transpose_", lambda value: transpose(value, dim0, dim1))


def squeeze_(x: Array, axis: Axis = None) -> Array:
    """Remove the axes of size 1 among ``axis`` (None: all) from ``x``; returns it."""
    return x.reshape_in_place("squeeze_", lambda value: squeeze(value, axis))


def unsqueeze_(x: Array, axis: int) -> Array:
    """Give ``x`` another axis of size 1; returns it."""
    return x.reshape_in_place("unsqueeze_", lambda value: expand_dims(value, axis))


def as_strided(x: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Array:
    """Return the view of shape ``size`` whose elements lie ``stride`` apart in the memory of ``x``, from its start on.

    An element may occur several times; its gradient is the sum. ShapeError for a position outside ``x``, and if the
    elements of ``x`` do not fill its memory.
    """
    order = memory_order(x)
    if order is None:
        raise ShapeError(
            f"[as_strided] the elements of x must fill its memory; got a view of shape {x.shape} with strides "
            f"{x.stride()}. Use x.contiguous() first."
        )
    if storage_offset and isinstance(x, Handle) and x._view is not None and x._view.base.size != x.size:
        raise ShapeError(
            f"[as_strided] storage_offset must be None or 0 for a part of another tensor; got {storage_offset}. Use "
            "as_strided of the whole tensor."
        )
    dense = x if order == tuple(range(x.ndim)) else x.permute(order)
    return positions.as_strided(dense, size, stride, storage_offset)


def as_strided_(x: Array, size: Any, stride: Any, storage_offset: int = 0) -> Array:
    """Give ``x`` the value of ``as_strided`` of it; returns it."""
    return x.reshape_in_place("as_strided_", lambda value: positions.as_strided(value, size, stride, storage_offset))


def resize_(x: Array, *sizes: Any) -> Array:
    """Give ``x`` another shape: its elements in order, as many as fit, and zeros behind them; returns it."""
    shape = as_sizes("resize_", gathered(sizes))

    def change(value: Array) -> Array:
        flat, count = reshape(value, (value.size,)), math.prod(shape)
        held = narrow(flat, 0, 0, count) if count <= value.size else pad(flat, ((0, count - value.size),))
        return reshape(held, shape)

    return x.reshape_in_place("resize_", change)


def resize_as_(x: Array, other: Array) -> Array:
    """Apply :func:`resize_` with the shape of ``other``."""
    return resize_(x, *other.shape)


def set_(x: Array, source: Array) -> Array:
    """Give ``x`` the value of ``source``, which has the same dtype; later changes of either are not seen by the
    other."""
    if source.dtype is not x.dtype:
        raise DTypeError(f"[set_] the values must be {x.dtype.name}; got {source.dtype.name}.")
    return x.reshape_in_place("set_", lambda value: source.handle())


# --- element by element, in Python --------------------------------------------------------------------------------


def _each(name: str, x: Array, others: tuple[Array, ...], function: Callable[..., Any]) -> Array:
    for other in others:
        if other.shape != x.shape:
            raise ShapeError(f"[{name}] the tensors must have the same shape; got {x.shape} and {other.shape}.")
    columns = [known(name, one).ravel().tolist() for one in (x, *others)]
    values = np.array([function(*row) for row in zip(*columns, strict=True)], x.dtype.numpy).reshape(x.shape)
    return x.update(name, lambda value: value.lift(values, x.dtype))


def apply_(x: Array, function: Callable[[Any], Any]) -> Array:
    """Give each element the value of the Python ``function`` of it, one after the other; returns ``x``. Slow, and not
    in compiled functions."""
    return _each("apply_", x, (), function)


def map_(x: Array, other: Array, function: Callable[[Any, Any], Any]) -> Array:
    """Set each element to the value of the Python ``function`` of it and the element of ``other`` at its place;
    returns ``x``."""
    return _each("map_", x, (other,), function)


def map2_(x: Array, first: Array, second: Array, function: Callable[[Any, Any, Any], Any]) -> Array:
    """Apply :func:`map_` with two other arrays."""
    return _each("map2_", x, (first, second), function)
