"""Functions that give an array like their first operand, with parts of it moved, mixed or replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.core.avals import Shape
from runnel.core.dtypes import bool_
from runnel.core.errors import DTypeError, ShapeError
from runnel.ops.arguments import Array, Operand, normalize_axis
from runnel.ops.arithmetic import add, divide, multiply, subtract
from runnel.ops.assignment import put, put_added
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.conversion import cast
from runnel.ops.indexing import from_the_front, require_in_range, scatter_add
from runnel.ops.keys import is_mask
from runnel.ops.logic import where
from runnel.ops.promotion import lifted
from runnel.ops.views import moveaxis, reshape


def lerp(x: Array, end: Operand, weight: Operand) -> Array:
    """x + weight · (end - x)."""
    return add(x, multiply(weight, subtract(end, x)))


def addcmul(x: Array, a: Operand, b: Operand, *, value: Operand = 1) -> Array:
    """x + value · a · b."""
    return add(x, _scaled(multiply(a, b), value))


def addcdiv(x: Array, a: Operand, b: Operand, *, value: Operand = 1) -> Array:
    """x + value · a / b."""
    return add(x, _scaled(divide(a, b), value))


def _scaled(x: Array, factor: Operand) -> Array:
    return x if isinstance(factor, (int, float)) and factor == 1 else multiply(x, factor)


def masked_fill(x: Array, mask: Array, value: Operand) -> Array:
    """``x`` with ``value``, a number or an array of one element, where the bool array ``mask`` is True. ``mask``
    broadcasts to the shape of ``x``."""
    if not is_mask(mask):
        raise DTypeError(f"[masked_fill] the mask is bool; received {getattr(mask, 'dtype', type(mask).__name__)}.")
    if getattr(value, "size", 1) != 1:
        raise ShapeError(f"[masked_fill] the value is one number; received shape {getattr(value, 'shape', ())}.")
    filling = reshape(lifted(x, value, x.dtype, 0), ())
    return where(lifted(x, mask, bool_, 0), filling, x)


def _rows(name: str, x: Array, dim: int, index: Array) -> tuple[int, Any]:
    """The axis ``dim``, and the key that names the rows at ``index`` along it."""
    axis = normalize_axis(name, dim, x.ndim)
    if index.ndim > 1:
        raise ShapeError(f"[{name}] the index is a vector; received shape {index.shape}.")
    return axis, (*[slice(None)] * axis, reshape(index, (index.size,)))


def index_fill(x: Array, dim: int, index: Array, value: Operand) -> Array:
    """``x`` with ``value``, one number, in the rows at ``index`` along the axis ``dim``."""
    return put(x, _rows("index_fill", x, dim, index)[1], value)


def index_copy(x: Array, dim: int, index: Array, source: Array) -> Array:
    """``x`` with row i of ``source`` in place of row ``index[i]`` along the axis ``dim``; the last one counts where
    an index stands twice."""
    return put(x, _rows("index_copy", x, dim, index)[1], source)


def index_put(x: Array, indices: Sequence[Array], values: Operand, accumulate: bool = False) -> Array:
    """``x`` with ``values`` at ``x[indices]``, a tuple of arrays; with ``accumulate``, added to what is there."""
    return (put_added if accumulate else put)(x, tuple(indices), values)


def index_add_along(x: Array, dim: int, index: Array, source: Array, *, alpha: Operand = 1) -> Array:
    """``x`` with alpha times row i of ``source`` added to row ``index[i]`` along the axis ``dim``."""
    axis, _ = _rows("index_add", x, dim, index)
    shape: Shape = (*x.shape[:axis], index.size, *x.shape[axis + 1 :])
    rows = broadcast_to(moveaxis(broadcast_to(_scaled(source, alpha), shape), axis, 0), (index.size, *_rest(x, axis)))
    require_in_range("index_add", index, axis, x.shape)
    wanted = from_the_front(reshape(index, (index.size,)), x.shape[axis])
    summed = scatter_add(wanted, cast(rows, x.dtype), x.shape[axis])
    return add(x, moveaxis(summed, 0, axis))


def _rest(x: Array, axis: int) -> Shape:
    shape: Shape = x.shape
    return shape[:axis] + shape[axis + 1 :]
