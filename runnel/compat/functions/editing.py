"""NumPy's functions that remove elements from arrays and insert others, and operations on sets of elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import int64
from runnel.core.errors import AxisError, ShapeError
from runnel.ops.arguments import Array, Operand, normalize_axis
from runnel.ops.conversion import cast
from runnel.ops.indexing.gather import take
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.pieces import concat
from runnel.ops.shapes.views import moveaxis, reshape
from runnel.ops.sorting.order import isin
from runnel.ops.sorting.sets import known, masked_select, unique


def _flat(x: Array) -> Array:
    return reshape(x, (x.size,))


def _lifted(x: Array, values: Operand) -> Array:
    """Convert ``values`` to a tensor of the dtype of ``x``."""
    return cast(values if isinstance(values, TensorLike) else x.lift(np.asarray(values), x.dtype), x.dtype)


def _places(name: str, obj: Array | int | Sequence[int], n: int, end: int) -> np.ndarray:
    """Return positions from 0 to ``end`` - 1 along an axis of ``n`` elements; negative ones count from its end."""
    given = known(name, obj) if isinstance(obj, TensorLike) else np.asarray(obj)
    if given.dtype.kind == "b":
        given = np.flatnonzero(given)
    if given.ndim > 1 or (given.size and given.dtype.kind not in "iu"):
        raise ShapeError(f"[{name}] positions must be an int or a vector of ints; got {obj!r}.")
    places = given.reshape(-1).astype(np.int64)
    if ((places < -n) | (places >= end)).any():
        raise AxisError(f"[{name}] positions {places.tolist()} are out of range for an axis of {n} elements.")
    return np.where(places < 0, places + n, places)


def append(x: Array, values: Array, axis: int | None = None) -> Array:
    """Join ``x`` and ``values`` along ``axis`` (None: both flattened)."""
    return concat([_flat(x), _flat(values)]) if axis is None else concat([x, values], axis)


def delete(x: Array, obj: Array | int | Sequence[int], axis: int | None = None) -> Array:
    """Remove the slices at the positions ``obj`` along ``axis`` (None: of ``x`` flattened).

    The positions must be known: a compiled function takes those that it does not compute."""
    if axis is None:
        x, axis = _flat(x), 0
    place = normalize_axis("delete", axis, x.ndim)
    n = x.shape[place]
    kept = np.setdiff1d(np.arange(n), _places("delete", obj, n, n))
    return take(x, x.lift(kept, int64), place)


def insert(x: Array, obj: Array | int | Sequence[int], values: Operand, axis: int | None = None) -> Array:
    """Insert ``values``, which broadcast to the slices, before the positions ``obj`` along ``axis`` (None: of ``x``
    flattened).

    The positions must be known, as in :func:`delete`."""
    if axis is None:
        x, axis = _flat(x), 0
    place = normalize_axis("insert", axis, x.ndim)
    n = x.shape[place]
    places = _places("insert", obj, n, n + 1)
    is_single = np.ndim(obj) == 0 if not isinstance(obj, TensorLike) else obj.ndim == 0
    new = _lifted(x, values)
    if is_single and new.ndim and new.ndim == x.ndim:  # one place, several slices
        places = np.repeat(places, new.shape[place])
    elif is_single and new.ndim == x.ndim - 1:
        new = reshape(new, (*new.shape[:place], 1, *new.shape[place:]))
    shape = (*x.shape[:place], len(places), *x.shape[place + 1 :])
    both = concat([x, broadcast_to(new, shape)], place)
    order = np.argsort(np.concatenate([np.arange(n) + 0.5, places]), kind="stable")
    return take(both, x.lift(order, int64), place)


def compress(condition: Array, x: Array, axis: int | None = None) -> Array:
    """Return the slices of ``x`` along ``axis`` (None: of ``x`` flattened) where the vector ``condition`` holds,
    which must be known."""
    if axis is None:
        x, axis = _flat(x), 0
    place = normalize_axis("compress", axis, x.ndim)
    if condition.ndim != 1 or condition.size > x.shape[place]:
        raise ShapeError(f"[compress] the condition is a vector of at most {x.shape[place]}; got {condition.shape}.")
    return take(x, x.lift(np.flatnonzero(known("compress", condition)), int64), place)


def extract(condition: Array, x: Array) -> Array:
    """Return the elements of ``x`` where ``condition`` is not 0, as a vector."""
    return masked_select(x, cast(condition, "bool"))


# --- sets ---------------------------------------------------------------------------------------------------------


def union1d(x: Array, y: Array) -> Array:
    """Return the unique elements of both, in ascending order."""
    values: Array = unique(concat([_flat(x), _flat(y)]))
    return values


def intersect1d(x: Array, y: Array) -> Array:
    """Return the unique elements that both contain, in ascending order."""
    own = unique(x)
    return masked_select(own, isin(own, y))


def setdiff1d(x: Array, y: Array) -> Array:
    """Return the unique elements of ``x`` that ``y`` does not contain, in ascending order."""
    own = unique(x)
    return masked_select(own, isin(own, y, invert=True))


def setxor1d(x: Array, y: Array) -> Array:
    """Return the unique elements that exactly one of the two contains, in ascending order."""
    return union1d(setdiff1d(x, y), setdiff1d(y, x))


def rollaxis(x: Array, axis: int, start: int = 0) -> Array:
    """Move ``axis`` before the axis ``start``."""
    place = normalize_axis("rollaxis", axis, x.ndim)
    before = start + x.ndim if start < 0 else start
    if not 0 <= before <= x.ndim:
        raise AxisError(f"[rollaxis] start={start} is no place among {x.ndim} axes.")
    return moveaxis(x, place, before - (place < before))
