"""Arrays with some elements replaced: the functional form of ``x[key] = value``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.core.avals import Shape
from runnel.core.dispatch import TensorLike, apply
from runnel.core.dtypes import bool_, int64
from runnel.core.errors import ArgumentError, ShapeError
from runnel.core.lengths import is_static
from runnel.core.tables import write_back
from runnel.ops.arguments import Array, Operand
from runnel.ops.conversion import cast
from runnel.ops.creation_like import iota
from runnel.ops.elementwise.arithmetic import add, remainder
from runnel.ops.elementwise.comparison import equal, greater_equal, less, logical_and, where
from runnel.ops.indexing.gather import scatter_add
from runnel.ops.indexing.items import (
    Selection,
    Window,
    as_items,
    cut,
    first_axis,
    full_items,
    is_array,
    is_mask,
    merged,
    merged_indices,
    merged_order,
    require_fitting_mask,
    selection,
    window,
)
from runnel.ops.indexing.row_writes import write_rows_p
from runnel.ops.promotion import lifted
from runnel.ops.shapes.broadcasting import broadcast_p, broadcast_to
from runnel.ops.shapes.padding import embedded_in_zeros
from runnel.ops.shapes.pieces import slice_p
from runnel.ops.shapes.views import inverse_order, moveaxis, permute, reshape


def put(x: Array, key: Any, value: Operand) -> Array:
    """Return ``x`` with ``value``, broadcast and converted to the dtype of ``x``, at ``x[key]``.

    Args:
        x: the array.
        key: as in ``x[key]``. Where an element is named several times, the last value counts, as in NumPy. Beyond
            NumPy, a mask may be one that broadcasts to the shape of ``x``.
        value: what the elements there become. With a mask as the key also an array of the shape of ``x``, which gives
            the elements where the mask is True. In a compiled function, where a mask's values are not known, the value
            is one or the other: something that needs no count of them.
    """
    items = as_items(key)
    replaced = _assign_masked(x, items, value)
    if replaced is not None:
        return replaced
    items = full_items(x.shape, items)
    if any(map(is_array, items)):
        return _assign_selected(x, selection(x.shape, items), value)
    part = window(x.shape, items)
    new: Array = _fitted(x, value, part.shape)
    return _assign_window(x, part, new)


def add_at(x: Array, key: Any, value: Operand) -> Array:
    """Return ``x`` with ``value`` added at ``x[key]``. If an element is named several times, everything is added."""
    if x.dtype is bool_:  # or
        return cast(add_at(cast(x, int64), key, value), bool_)
    items = full_items(x.shape, as_items(key))
    if not any(map(is_array, items)):
        part = window(x.shape, items)
        return put(x, key, add(cut(x, part), _fitted(x, value, part.shape)))
    selected = selection(x.shape, items)
    lines, new = _operands(x, selected, value)
    flat = merged_indices(x, selected)
    if 0 in lines.shape or 0 in new.shape:
        return x
    first = first_axis(selected)
    summed = scatter_add(reshape(flat, (flat.size,)), moveaxis(new, first, 0), lines.shape[first])
    return _assign_lines(x, selected, add(lines, moveaxis(summed, 0, first)))


# --- windows ------------------------------------------------------------------------------------------------------


def _assign_window(x: Array, part: Window, new: Array) -> Array:
    """Return ``x`` with ``new``, which broadcasts to the shape of the window, in the window."""
    if part.is_whole(x):
        return reshape(broadcast_to(new, part.shape), x.shape)
    if 0 in part.sizes:
        return x
    if new.size == 1:
        return where(_inside(x, part), reshape(new, (1,) * x.ndim), x)
    piece = reshape(broadcast_to(new, part.shape), part.sizes)
    padded = embedded_in_zeros(piece, x.shape, part.starts, part.sizes, part.steps)
    return where(_inside(x, part), padded, x)


@write_back.rule(slice_p)
def _slice_written(x: Array, new: Array, *, starts: Shape, sizes: Shape, steps: Shape) -> Array:
    return _assign_window(x, Window(starts, sizes, steps, sizes), new)


@write_back.rule(broadcast_p)
def _broadcast_written(x: Array, new: Array, *, shape: Shape) -> Array:
    raise ArgumentError(
        f"[setitem] a write to an expanded tensor must not reach an element several times; got shape {x.shape} "
        f"expanded to {shape}. Write to a copy (x.clone())."
    )


def _inside(x: Array, part: Window) -> Array:
    """True where the window is: what it leaves out along each axis, put together by broadcasting."""
    result = None
    for axis, (n, start, size, step) in enumerate(zip(x.shape, part.starts, part.sizes, part.steps, strict=True)):
        if size == n:
            continue
        if not is_static((n, start, size)):
            place = add(iota(x, (*(1,) * axis, n, *(1,) * (x.ndim - axis - 1)), axis), -start)
            here = logical_and(greater_equal(place, 0), less(place, size * step))
            here = here if step == 1 else logical_and(here, equal(remainder(place, step), 0))
            result = here if result is None else logical_and(result, here)
            continue
        along = np.zeros((1,) * axis + (n,) + (1,) * (x.ndim - axis - 1), bool)
        along.reshape(-1)[start + step * np.arange(size)] = True
        here = x.lift(along, bool_)
        result = here if result is None else logical_and(result, here)
    return x.lift(np.ones((1,) * x.ndim, bool), bool_) if result is None else result


# --- arrays of integers -------------------------------------------------------------------------------------------


def _assign_selected(x: Array, selected: Selection, value: Operand) -> Array:
    lines, new = _operands(x, selected, value)
    flat = merged_indices(x, selected)
    if 0 in lines.shape or 0 in new.shape:
        return x
    rows = reshape(flat, (flat.size,))
    return _assign_lines(x, selected, apply(write_rows_p, lines, rows, new, axis=first_axis(selected)))


def _operands(x: Array, selected: Selection, value: Operand) -> tuple[Array, Array]:
    """Return the window with the chosen axes merged, and its new elements in the same order of axes, with the axes of
    the indices merged."""
    target = selected.result_shape
    new = broadcast_to(_fitted(x, value, target), target)
    first, place, count = first_axis(selected), selected.place, len(selected.shape)
    order = list(range(new.ndim))
    block = order[place : place + count]
    del order[place : place + count]
    moved = permute(new, [*order[:first], *block, *order[first:]])
    rows = math.prod(selected.shape)
    return (
        merged(cut(x, selected.part), selected),
        reshape(moved, (*moved.shape[:first], rows, *moved.shape[first + count :])),
    )


def _assign_lines(x: Array, selected: Selection, lines: Array) -> Array:
    """Return ``x`` with the window whose merged form is ``lines``."""
    order = merged_order(selected)
    shape = tuple(selected.part.shape[axis] for axis in order)
    return _assign_window(x, selected.part, permute(reshape(lines, shape), inverse_order(order)))


# --- masks --------------------------------------------------------------------------------------------------------


def _assign_masked(x: Array, items: Sequence[Any], value: Operand) -> Array | None:
    """Return the assignment as an elementwise choice between ``x`` and the value; None if the value depends on the
    number of elements that a mask chooses."""
    masks = [k for k in items if is_mask(k)]
    if len(masks) != 1 or any(is_array(k) or isinstance(k, int) for k in items if k is not masks[0]):
        return None
    (mask,) = masks
    shape = _shape_of(value)
    is_alone = len(items) == 1
    if is_alone and 0 in mask.shape:
        require_fitting_mask(mask, 0, x.shape)
        return x
    if is_alone and mask.shape != x.shape[: mask.ndim]:
        _require_fit(mask.shape, x.shape)
        return where(lifted(x, mask, bool_, x.ndim), _fitted(x, value, x.shape), x)
    if is_alone and shape == mask.shape == x.shape:
        return where(lifted(x, mask, bool_, x.ndim), _fitted(x, value, x.shape), x)
    full = full_items(x.shape, items)
    at = next(i for i, k in enumerate(full) if is_mask(k))
    axis = sum(k is not None for k in full[:at])
    require_fitting_mask(mask, axis, x.shape)
    part = window(x.shape, [*full[:at], *[slice(None)] * mask.ndim, *full[at + 1 :]])
    after = len(full) - at - 1
    if len(shape) > after and shape[len(shape) - after - 1] != 1:
        return None
    target = (*part.shape[:at], 1, *part.shape[at + mask.ndim :])
    new = _fitted(x, value, target)
    new = reshape(new, (*new.shape[:at], *[1] * mask.ndim, *new.shape[at + 1 :]))
    truths = reshape(lifted(x, mask, bool_, 0), (*[1] * at, *mask.shape, *[1] * after))
    return _assign_window(x, part, where(truths, new, cut(x, part)))


# --- values -------------------------------------------------------------------------------------------------------


def _shape_of(value: Operand) -> Shape:
    if isinstance(value, TensorLike):
        return value.shape
    return () if isinstance(value, (bool, int, float)) else np.shape(value)


def _fitted(x: Array, value: Operand, target: Shape) -> Array:
    """Convert ``value`` to the kind and dtype of ``x``, with as many axes as ``target``, to which it broadcasts."""
    _require_fit(_shape_of(value), target)
    own = lifted(x, value, x.dtype, len(target))
    return reshape(own, own.shape[own.ndim - len(target) :])


def _require_fit(shape: Shape, target: Shape) -> None:
    """ShapeError unless ``shape``, axes of size 1 in front left out, broadcasts to ``target``."""
    inner = shape[max(len(shape) - len(target), 0) :]
    outer = shape[: len(shape) - len(inner)]
    fits = all(n in (1, m) for n, m in zip(reversed(inner), reversed(target), strict=False))
    if not fits or any(n != 1 for n in outer):
        raise ShapeError(f"[setitem] a value of shape {shape} does not broadcast to the shape {target} of what is set.")
