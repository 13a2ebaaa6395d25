"""Functions that return a copy of their first operand with parts moved, mixed or replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.core.avals import Shape
from runnel.core.composed import composed
from runnel.core.dispatch import RunTimeNumber, TensorLike
from runnel.core.dtypes import bool_, float64, int64
from runnel.core.errors import ArgumentError, DTypeError, ShapeError
from runnel.ops.arguments import Array, Operand, normalize_axis, require_same_dtype
from runnel.ops.conversion import cast
from runnel.ops.creation_like import zeros_like
from runnel.ops.elementwise.arithmetic import (
    abs,
    add,
    add_p,
    divide,
    floor_divide,
    floor_divide_p,
    multiply,
    remainder,
    subtract,
    trunc,
)
from runnel.ops.elementwise.comparison import less, logical_and, logical_xor, where
from runnel.ops.indexing.assignment import add_at, put
from runnel.ops.indexing.gather import from_the_front, require_in_range, scatter_add
from runnel.ops.indexing.items import is_mask
from runnel.ops.promotion import common_dtype, lifted, meet
from runnel.ops.reductions.statistics import clip
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.views import moveaxis, of_axisless, reshape


def add_scaled(x: Array, other: Operand, *, alpha: float | Array = 1) -> Array:
    """Return x + alpha · other."""
    return add(x, _times(other, alpha))


def subtract_scaled(x: Array, other: Operand, *, alpha: float | Array = 1) -> Array:
    """Return x - alpha · other."""
    return subtract(x, _times(other, alpha))


def _times(other: Operand, alpha: Any) -> Operand:
    if isinstance(alpha, int) and alpha == 1:
        return other
    numbers = isinstance(other, int | float) and isinstance(alpha, int | float)
    scaled: Operand = other * alpha if numbers else multiply(other, alpha)
    return scaled


def divide_rounded(x: Array, other: Operand, *, rounding_mode: str | None = None) -> Array:
    """Return x / other, rounded down ("floor"), toward 0 ("trunc"), or not rounded (None)."""
    if rounding_mode not in (None, "floor", "trunc"):
        raise ValueError(f"[div] rounding_mode must be None, 'floor' or 'trunc'; got {rounding_mode!r}.")
    if rounding_mode == "floor":
        return floor_divide(x, other)
    return divide(x, other) if rounding_mode is None else _trunc_divide(x, other)


def _trunc_divide(x: Operand, y: Operand) -> Array:
    """Return x / y rounded toward 0, in the dtype of the operands; an integer by 0 is 0."""
    a, b = meet(floor_divide_p, x, y)
    if not a.dtype.is_integer:
        return trunc(divide(a, b))
    crosses = logical_and(logical_xor(less(a, 0), less(b, 0)), remainder(a, b))
    return add(floor_divide(a, b), crosses)


def clamp(x: Array, min: Operand | None = None, max: Operand | None = None) -> Array:
    """Limit ``x`` to [min, max] like :func:`runnel.clip`. ArgumentError if both bounds are None."""
    if min is None and max is None:
        raise ArgumentError("[clamp] min or max must be given; got None for both.")
    return clip(x, min, max)


def clamp_min(x: Array, min: Operand) -> Array:
    """Replace elements below ``min`` by ``min``."""
    return clip(x, min, None)


def clamp_max(x: Array, max: Operand) -> Array:
    """Replace elements above ``max`` by ``max``."""
    return clip(x, None, max)


def copied(x: Array, source: Operand) -> Array:
    """Return ``source``, broadcast to the shape of ``x`` and converted to its dtype."""
    return put(x, ..., source)


def zeroed(x: Array) -> Array:
    """Return zeros like ``x``."""
    return zeros_like(x)


def filled(x: Array, value: float | Array) -> Array:
    """Return ``value``, one number, at each position of ``x``."""
    if isinstance(value, (bool, int, float)):
        return put(x, ..., value)
    if value.size != 1:
        raise ShapeError(f"[fill_] the value must be one number; got shape {value.shape}.")
    return put(x, ..., value.reshape(()))


@composed
def lerp(x: Array, end: Operand, weight: Operand) -> Array:
    """Return x + weight · (end - x), computed from ``x`` for |weight| < ½ and from ``end`` otherwise."""
    way = subtract(end, x)
    number: Any = weight.item() if isinstance(weight, np.generic) else weight
    rest: Any
    if isinstance(number, RunTimeNumber):
        share = number.as_array(float64, 0)
        rest = 1 - number  # type: ignore[operator]  # it is a number of Python's, too
    elif isinstance(number, (int, float)):
        is_near: Any = -0.5 < number < 0.5
        return add(x, multiply(way, number)) if is_near else subtract(end, multiply(way, 1 - number))
    else:
        share = number if isinstance(number, TensorLike) else lifted(x, number, x.dtype, 0)
        rest = subtract(1, share)
    is_near = less(abs(share), 0.5)
    return where(is_near, add(x, multiply(way, number)), subtract(end, multiply(way, rest)))


@composed
def addcmul(x: Array, a: Operand, b: Operand, *, value: Operand = 1) -> Array:
    """Return x + (value · a) · b, in the dtype of the result."""
    x, a, b = _together(x, a, b)
    return add(x, multiply(_scaled(a, value), b))


@composed
def addcdiv(x: Array, a: Operand, b: Operand, *, value: Operand = 1) -> Array:
    """Return x + (value · a) / b, in the dtype of the result."""
    x, a, b = _together(x, a, b)
    return add(x, divide(_scaled(a, value), b))


def _together(x: Array, a: Operand, b: Operand) -> tuple[Array, Operand, Operand]:
    """Promote operands that are arrays of different floating dtypes to one dtype."""
    arrays = [y for y in (x, a, b) if isinstance(y, TensorLike)]
    if len({y.dtype for y in arrays}) == 1 or not any(y.dtype.is_inexact for y in arrays):
        return x, a, b
    dtype = common_dtype(add_p, tuple(arrays))
    x, a, b = (cast(y, dtype) if isinstance(y, TensorLike) else y for y in (x, a, b))
    return x, a, b


def _scaled(x: Array, factor: Operand) -> Array:
    if isinstance(factor, RunTimeNumber) and isinstance(x, TensorLike) and x.dtype.is_inexact:
        return multiply(x, factor)  # 1 · x has the bits of x
    return x if isinstance(factor, (int, float)) and factor == 1 else multiply(x, factor)


@composed
def masked_fill(x: Array, mask: Array, value: Operand) -> Array:
    """Return ``x`` with ``value``, a number or an array of one element, where the bool array ``mask`` is True. ``mask``
    broadcasts to the shape of ``x``."""
    if not is_mask(mask):
        raise DTypeError(f"[masked_fill] the mask must be bool; got {getattr(mask, 'dtype', type(mask).__name__)}.")
    if getattr(value, "size", 1) != 1:
        raise ShapeError(f"[masked_fill] the value must be one number; got shape {getattr(value, 'shape', ())}.")
    filling = reshape(lifted(x, value, x.dtype, 0), ())
    return where(lifted(x, mask, bool_, 0), filling, x)


def _rows(name: str, x: Array, dim: int, index: Array) -> tuple[int, Any]:
    """Return the axis ``dim``, and the key of the rows at ``index`` along it."""
    axis = normalize_axis(name, dim, x.ndim)
    if index.ndim > 1:
        raise ShapeError(f"[{name}] the index must be a vector; got shape {index.shape}.")
    return axis, (*[slice(None)] * axis, reshape(index, (index.size,)))


@of_axisless
def index_fill(x: Array, dim: int, index: Array, value: Operand) -> Array:
    """Write ``value``, one number, to the rows at ``index`` along the axis ``dim``."""
    return put(x, _rows("index_fill", x, dim, index)[1], value)


@of_axisless
def index_copy(x: Array, dim: int, index: Array, source: Array) -> Array:
    """Return ``x`` with row ``index[i]`` along the axis ``dim`` replaced by row i of ``source``. The last row counts if
    an index is repeated."""
    require_same_dtype("index_copy", x, source)
    return put(x, _rows("index_copy", x, dim, index)[1], source)


def index_put(x: Array, indices: Sequence[Array], values: Operand, accumulate: bool = False) -> Array:
    """Write ``values`` at ``x[indices]``, a tuple of arrays, or with ``accumulate`` add them."""
    if isinstance(values, TensorLike):
        require_same_dtype("index_put", x, values)
    return (add_at if accumulate else put)(x, tuple(indices), values)


@composed
@of_axisless
def index_add(x: Array, dim: int, index: Array, source: Array, *, alpha: Operand = 1) -> Array:
    """Add alpha times row i of ``source`` to row ``index[i]`` along the axis ``dim``."""
    require_same_dtype("index_add", x, source)
    if x.dtype is bool_:  # or
        return cast(index_add(cast(x, int64), dim, index, cast(source, int64), alpha=alpha), bool_)
    axis, _ = _rows("index_add", x, dim, index)
    shape: Shape = (*x.shape[:axis], index.size, *x.shape[axis + 1 :])
    if source.shape != shape and (source.ndim or x.ndim > 1):
        raise ShapeError(f"[index_add] a source of shape {shape} is needed, a row for each index; got {source.shape}.")
    rows = broadcast_to(moveaxis(broadcast_to(_scaled(source, alpha), shape), axis, 0), (index.size, *_rest(x, axis)))
    require_in_range("index_add", index, axis, x.shape)
    positions = from_the_front(reshape(index, (index.size,)), x.shape[axis])
    summed = scatter_add(positions, cast(rows, x.dtype), x.shape[axis])
    return add(x, moveaxis(summed, 0, axis))


def _rest(x: Array, axis: int) -> Shape:
    shape: Shape = x.shape
    return shape[:axis] + shape[axis + 1 :]
