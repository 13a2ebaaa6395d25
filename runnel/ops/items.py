"""Reads by key: ``x[key]``."""

from __future__ import annotations

import math
from typing import Any

from runnel.core.dispatch import TensorLike, apply
from runnel.core.dtypes import int64
from runnel.core.errors import AxisError
from runnel.ops.arguments import Array
from runnel.ops.arithmetic import add, multiply
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.indexing import from_the_front, labels_below, take_p
from runnel.ops.keys import Selection, Window, as_items, flat_indices, full_items, is_array, selection, strides, window
from runnel.ops.pieces import slice_p
from runnel.ops.views import permute, reshape


def getitem(x: Array, key: Any) -> Array:
    """``x[key]`` as in NumPy, for integers, slices, ``...``, None, arrays of integers, and masks.

    Integers, slices, ``...`` and None give a view. Arrays of integers, tensors among them, choose elements: they
    broadcast, and their axes stand where the first of them does, or in front if slices or None separate them. Elements
    chosen several times add up in the gradient. A mask chooses where it is True; how many that are must be known, so a
    compiled function takes masks that it does not compute. AxisError for an index outside.
    """
    items = full_items(x.shape, as_items(key))
    if any(map(is_array, items)):
        return _selected(x, selection(x.shape, items))
    return cut(x, window(x.shape, items))


def cut(x: Array, part: Window) -> Array:
    """A window of ``x``, as a view."""
    inner = x if part.is_whole(x) else apply(slice_p, x, starts=part.starts, sizes=part.sizes, steps=part.steps)
    result = reshape(inner, part.shape)
    return result.handle() if result is x else result


def _selected(x: Array, selected: Selection) -> Array:
    lines = merged(cut(x, selected.part), selected)
    first, count = first_axis(selected), len(selected.shape)
    gathered = apply(take_p, lines, merged_indices(x, selected), axis=first)
    order = list(range(gathered.ndim))
    block = order[first : first + count]
    del order[first : first + count]
    return permute(gathered, [*order[: selected.place], *block, *order[selected.place :]])


def first_axis(selected: Selection) -> int:
    """Where the merged axis of chosen elements stands: at the first of its axes, or in front if they lie apart."""
    axes = selected.axes
    return axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0


def merged_order(selected: Selection) -> list[int]:
    """The order of a window's axes in which the chosen ones follow one another."""
    axes, first = selected.axes, first_axis(selected)
    rest = [axis for axis in range(len(selected.part.shape)) if axis not in axes]
    return [*rest[:first], *axes, *rest[first:]]


def merged(part: Array, selected: Selection) -> Array:
    """A window with the chosen axes as one."""
    moved = permute(part, merged_order(selected))
    first, after = first_axis(selected), first_axis(selected) + len(selected.axes)
    shape: Any = moved.shape
    count: int = math.prod(shape[first:after])
    return reshape(moved, (*shape[:first], count, *shape[after:]))


def merged_indices(x: Array, selected: Selection) -> Array:
    """Positions along the merged axis."""
    sizes: list[int] = [selected.part.shape[axis] for axis in selected.axes]
    if 0 in sizes and 0 not in selected.shape:
        raise AxisError(f"[getitem] there is nothing to choose from along an empty axis of shape {x.shape}.")
    known = flat_indices(x.shape, selected)
    if known is not None:
        only = selected.chosen[0].indices
        is_in_range = (
            len(selected.chosen) == 1 and isinstance(only, TensorLike) and known.size and only.known().min() >= 0
        )
        return only if is_in_range else x.lift(known, int64)
    flat: Array = None
    for c, n, stride in zip(selected.chosen, sizes, strides(selected), strict=True):
        indices = c.indices if isinstance(c.indices, TensorLike) else x.lift(c.indices.astype("int64"), int64)
        inside = from_the_front(indices, n)
        if len(sizes) > 1:
            inside = multiply(labels_below(inside, n), stride)
        flat = inside if flat is None else add(flat, inside)
    return broadcast_to(flat, selected.shape)
