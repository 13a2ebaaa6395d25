"""Reads by key: ``x[key]``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runnel.core.avals import Shape
from runnel.core.composed import composed
from runnel.core.dispatch import TensorLike, apply, required
from runnel.core.dtypes import DType, bool_, from_numpy, int64
from runnel.core.errors import AxisError, DTypeError
from runnel.core.lengths import Length, span
from runnel.core.viewing import viewing
from runnel.ops.arguments import Array, broadcast_shapes
from runnel.ops.elementwise.arithmetic import add, multiply
from runnel.ops.indexing.gather import from_the_front, labels_below, take_p
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.pieces import slice_p
from runnel.ops.shapes.views import permute, reshape


class Window(NamedTuple):
    """The part of an array that slices and integers name: a slice of it, and the shape the key gives to that."""

    starts: Shape
    sizes: Shape
    steps: Shape
    shape: Shape

    def is_whole(self, x: Array) -> bool:
        return self.sizes == x.shape and all(step == 1 for step in self.steps)


class Chosen(NamedTuple):
    """Integers that choose along ``axis`` of a window, which is ``source`` of the array (None: a new axis)."""

    indices: Any
    axis: int
    source: int | None


class Selection(NamedTuple):
    """Elements of a window, chosen by arrays that meet in ``shape``; their axes begin at ``place`` of the result."""

    part: Window
    chosen: tuple[Chosen, ...]
    shape: Shape
    place: int

    @property
    def axes(self) -> Shape:
        return tuple(c.axis for c in self.chosen)

    @property
    def result_shape(self) -> Shape:
        rest = [n for axis, n in enumerate(self.part.shape) if axis not in self.axes]
        return (*rest[: self.place], *self.shape, *rest[self.place :])


_AS_THEY_ARE = frozenset({int, Length, slice, type(None), type(...)})


def as_items(key: Any) -> list[Any]:
    """Return the entries of a key, with sequences as NumPy arrays and bools as masks without axes."""
    return [_item(k) for k in (key if isinstance(key, tuple) else (key,))]


def _item(k: Any) -> Any:
    if type(k) in _AS_THEY_ARE or isinstance(k, (TensorLike, np.ndarray)):
        return k
    if isinstance(k, (bool, np.bool_)):
        return np.asarray(k)
    if hasattr(k, "__index__"):
        return k.__index__()
    if isinstance(k, Sequence) and not isinstance(k, (str, bytes)):
        return _as_array(k)
    if hasattr(k, "__array__"):
        return np.asarray(k)
    raise AxisError(
        f"[getitem] takes integers, slices, ..., None and arrays of integers or truths; got {type(k).__name__}."
    )


def _as_array(k: Sequence[Any]) -> np.ndarray:
    traced = (
        "[getitem] a list of traced tensors is no key: their values exist only when the program runs; stack() them."
    )
    entries = [required(x, traced) if isinstance(x, TensorLike) else x for x in k]
    return np.asarray(entries, None if entries else np.int64)


def is_array(k: Any) -> bool:
    return isinstance(k, (TensorLike, np.ndarray))


def dtype_of(k: Any) -> DType:
    return k.dtype if isinstance(k, TensorLike) else from_numpy(k.dtype)


def is_mask(k: Any) -> bool:
    return is_array(k) and dtype_of(k) is bool_


def full_items(shape: Shape, items: Sequence[Any]) -> list[Any]:
    """Return the entries with the ellipsis written out, so that every axis has one. A mask counts for all its axes."""
    used = 0
    dots: list[int] = []
    for i, k in enumerate(items):
        if k is ...:
            dots.append(i)
        elif k is not None:
            used += _count_of_axes(k) if is_array(k) else 1
    if used > len(shape) or len(dots) > 1:
        raise AxisError(f"[getitem] {used} indices and {len(dots)} ellipses do not fit an array of shape {shape}.")
    at = dots[0] if dots else len(items)
    return [*items[:at], *[slice(None)] * (len(shape) - used), *items[at + 1 :]]


def _count_of_axes(k: Any) -> int:
    """Return the number of axes that an array indexes as an entry of a key."""
    dtype = dtype_of(k)
    if dtype is bool_:
        count: int = k.ndim
        return count
    if not dtype.is_integer:
        raise DTypeError(
            f"[getitem] an array of indices must hold integers or truths; got {dtype.name}. Cast it first."
        )
    return 1


def window(shape: Shape, items: Sequence[Any]) -> Window:
    """Return the window that integers, slices and None name, one for each axis of ``shape``."""
    starts: list[int] = []
    sizes: list[int] = []
    steps: list[int] = []
    result: list[int] = []
    for k in items:
        if k is None:
            result.append(1)
            continue
        n = shape[len(starts)]
        if isinstance(k, slice):
            start, size, step = span(k, n)
            result.append(size)
        else:
            if not -n <= k < n:
                raise _outside(k, len(starts), shape)
            start, size, step = k + n if k < 0 else k, 1, 1
        starts.append(start if size else 0)
        sizes.append(size)
        steps.append(step if size > 1 else 1)
    return Window(tuple(starts), tuple(sizes), tuple(steps), tuple(result))


def selection(shape: Shape, items: Sequence[Any]) -> Selection:
    """Return the selection that entries with arrays among them name, one for each axis of ``shape``."""
    basic: list[Any] = []
    arrays: list[tuple[Any, int]] = []  # the indices, and the number of the entry of ``basic`` they choose from
    for k in items:
        if is_mask(k):
            axis = sum(b is not None for b in basic)
            for positions in _positions(k, axis, shape):
                arrays.append((positions, len(basic)))
                basic.append(slice(None) if k.ndim else None)
        else:
            if is_array(k):
                arrays.append((k, len(basic)))
                k = slice(None)
            basic.append(k)
    chosen = tuple(
        Chosen(
            indices,
            sum(not isinstance(b, (int, Length)) for b in basic[:at]),
            None if basic[at] is None else sum(b is not None for b in basic[:at]),
        )
        for indices, at in arrays
    )
    places = {at for _, at in arrays}
    kept = [at not in places and not isinstance(b, (int, Length)) for at, b in enumerate(basic)]  # axes without indices
    with_axes = [at for indices, at in arrays if indices.ndim]
    together = with_axes and not any(kept[with_axes[0] : with_axes[-1]])
    place = sum(kept[: with_axes[0]]) if together else 0
    block = broadcast_shapes("getitem", *(c.indices.shape for c in chosen))
    return Selection(window(shape, basic), chosen, block, place)


def _positions(mask: Any, axis: int, shape: Shape) -> tuple[np.ndarray, ...]:
    """Return the positions of a mask's True elements, an array for each axis. A mask without axes indexes a new
    axis."""
    require_fitting_mask(mask, axis, shape)
    counted = (
        "[getitem] how many elements a mask chooses is known only when the program runs; use where(mask, x, y), whose "
        "result has a known shape, or choose outside the compiled function."
    )
    known = required(mask, counted) if isinstance(mask, TensorLike) else mask
    return tuple(np.nonzero(known)) if known.ndim else (np.zeros(int(known), np.int64),)


def require_fitting_mask(mask: Any, axis: int, shape: Shape) -> None:
    """Raise AxisError unless the axes of ``mask`` have the sizes in ``shape`` from ``axis`` on, or 0."""
    sizes = shape[axis : axis + mask.ndim]
    if len(sizes) < mask.ndim or any(n not in (0, size) for n, size in zip(mask.shape, sizes, strict=True)):
        raise AxisError(
            f"[getitem] a mask of shape {mask.shape} does not fit the axes from {axis} on of an array of shape {shape}."
        )


def _outside(index: int, axis: int | None, shape: Shape) -> AxisError:
    return AxisError(f"[getitem] index {index} lies outside axis {axis} of shape {shape}.")


def flat_indices(shape: Shape, selected: Selection) -> np.ndarray | None:
    """Return the positions of the chosen elements along the merged chosen axes, in row-major order; None if they are
    known only when the program runs. Raise AxisError for an index outside its axis."""
    each = [c.indices.known() if isinstance(c.indices, TensorLike) else c.indices for c in selected.chosen]
    if any(known is None for known in each):  # before a length becomes an int
        return None
    flat = np.zeros(selected.shape, np.int64)
    for c, known, stride in zip(selected.chosen, each, strides(selected), strict=True):
        n = selected.part.shape[c.axis]
        wide = known.astype(np.int64)  # n need not fit a narrow type
        wrong = wide[(wide < -n) | (wide >= n)]
        if wrong.size:
            raise _outside(wrong[0], c.source, shape)
        flat += np.where(wide < 0, wide + n, wide) * stride
    return flat


def strides(selected: Selection) -> list[int]:
    """Return the distance of adjacent elements of each chosen axis in the merged axis."""
    sizes = [selected.part.shape[axis] for axis in selected.axes]
    return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]


@viewing
def getitem(x: Array, key: Any) -> Array:
    """Return ``x[key]`` as in PyTorch, for integers, slices, ``...``, None, arrays of integers, and masks.

    Integers, slices, ``...`` and None return a view. Arrays of integers, including tensors, choose elements. They
    broadcast, and their axes are at the first array's position, or in front if slices or None separate them. Integers
    and arrays without axes are applied first: ``x[0, :, [1, 2]]`` is ``x[0][:, [1, 2]]``. (NumPy puts the axis of the
    list in front.) Elements chosen several times add up in the gradient. A mask chooses elements where it is True.
    Their number must be known, so a compiled function takes only masks that it does not compute. Raise AxisError for an
    index outside its axis.
    """
    if isinstance(key, TensorLike) and key.dtype is bool_ and key.ndim and key.shape == x.shape[: key.ndim]:
        elements = _known_elements(x, key)
        if elements is not None:
            return elements
    if isinstance(key, TensorLike) or (isinstance(key, tuple) and any(isinstance(k, TensorLike) for k in key)):
        return chosen(x, key)
    return _at(x, key)


@composed
def chosen(x: Array, key: Any) -> Array:
    """Return ``x[key]`` for a key with tensors."""
    return _at(x, key)


def _at(x: Array, key: Any) -> Array:
    rows = _known_rows(x, key)
    if rows is not None:
        return rows
    items = full_items(x.shape, as_items(key))
    if any(map(is_array, items)):
        return _selected(x, selection(x.shape, items))
    return cut(x, window(x.shape, items))


def _known_rows(x: Array, key: Any) -> Array | None:
    """Return the rows at known indices, of which a key without other entries is made; None for other keys. Minibatches
    are taken so, and the general way takes five times as long."""
    if not (isinstance(key, TensorLike) and x.ndim and key.dtype.is_integer):
        return None
    known = key.known()
    if known is None or not known.size:
        return None
    n, lowest, greatest = x.shape[0], int(known.min()), int(known.max())
    if lowest < -n or greatest >= n:
        return None  # the general way names the index
    rows: Array = apply(take_p, x, key if lowest >= 0 else from_the_front(key, n), axis=0)
    return rows


def _known_elements(x: Array, mask: Array) -> Array | None:
    """Return the elements that a mask of the first axes chooses; None if its values are not known."""
    elements: Array | None = x.elements_at(mask)
    known = mask.known() if elements is None else None
    if known is None:
        return elements
    lines = x if mask.ndim == 1 else reshape(x, (known.size, *x.shape[mask.ndim :]))
    elements = apply(take_p, lines, x.lift(np.flatnonzero(known), int64), axis=0)
    return elements


def cut(x: Array, part: Window) -> Array:
    """Return a window of ``x`` as a view."""
    if part.is_whole(x):
        return x.alias() if part.shape == x.shape else reshape(x, part.shape)
    attrs = {"starts": part.starts, "sizes": part.sizes, "steps": part.steps}
    view: Array = x.apply_view(slice_p, attrs, part.shape)
    return view


def _selected(x: Array, selected: Selection) -> Array:
    lines = merged(cut(x, selected.part), selected)
    first, count = first_axis(selected), len(selected.shape)
    gathered = apply(take_p, lines, merged_indices(x, selected), axis=first)
    order = list(range(gathered.ndim))
    block = order[first : first + count]
    del order[first : first + count]
    return permute(gathered, [*order[: selected.place], *block, *order[selected.place :]])


def first_axis(selected: Selection) -> int:
    """Return the position of the merged axis: at the first chosen axis, or 0 if the chosen axes are apart."""
    axes = selected.axes
    return axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0


def merged_order(selected: Selection) -> list[int]:
    """Return the order of a window's axes in which the chosen axes are adjacent."""
    axes, first = selected.axes, first_axis(selected)
    rest = [axis for axis in range(len(selected.part.shape)) if axis not in axes]
    return [*rest[:first], *axes, *rest[first:]]


def merged(part: Array, selected: Selection) -> Array:
    """Return a window with the chosen axes merged."""
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
