"""NumPy's functions that take elements out of arrays and put others in, and operations on sets of elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import int64
from runnel.core.errors import AxisError, ShapeError
from runnel.ops.arguments import Array, Operand, normalize_axis
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.conversion import cast
from runnel.ops.indexing import take
from runnel.ops.library.order import isin
from runnel.ops.library.sets import known, masked_select, unique
from runnel.ops.pieces import concat
from runnel.ops.views import moveaxis, reshape


def _flat(x: Array) -> Array:
    return reshape(x, (x.size,))


def _lifted(x: Array, values: Operand) -> Array:
    """``values`` as a tensor of the dtype of ``x``."""
    return cast(values if isinstance(values, TensorLike) else x.lift(np.asarray(values), x.dtype), x.dtype)


def _places(name: str, obj: Array | int | Sequence[int], n: int, end: int) -> np.ndarray:
    """Places from 0 to ``end`` - 1 along an axis of ``n`` elements; those below 0 count from its end."""
    given = known(name, obj) if isinstance(obj, TensorLike) else np.asarray(obj)
    if given.dtype.kind == "b":
        given = np.flatnonzero(given)
    if given.ndim > 1 or (given.size and given.dtype.kind not in "iu"):
        raise ShapeError(f"[{name}] places are an int, or a vector of them; received {obj!r}.")
    places = given.reshape(-1).astype(np.int64)
    if ((places < -n) | (places >= end)).any():
        raise AxisError(f"[{name}] the places {places.tolist()} lie outside of an axis of {n} elements.")
    return np.where(places < 0, places + n, places)


def append(x: Array, values: Array, axis: int | None = None) -> Array:
    """``x`` and ``values`` one after the other along ``axis`` (None: both flattened)."""
    return concat([_flat(x), _flat(values)]) if axis is None else concat([x, values], axis)


def delete(x: Array, obj: Array | int | Sequence[int], axis: int | None = None) -> Array:
    """``x`` without the slices at the places ``obj`` along ``axis`` (None: of ``x`` flattened). The places are known: a
    compiled function takes those that it does not compute."""
    if axis is None:
        x, axis = _flat(x), 0
    place = normalize_axis("delete", axis, x.ndim)
    n = x.shape[place]
    kept = np.setdiff1d(np.arange(n), _places("delete", obj, n, n))
    return take(x, x.lift(kept, int64), place)


def insert(x: Array, obj: Array | int | Sequence[int], values: Operand, axis: int | None = None) -> Array:
    """``x`` with ``values`` before the slices at the places ``obj`` along ``axis`` (None: of ``x`` flattened). Values
    broadcast to the slices. The places are known, as in :func:`delete`."""
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
    """The slices of ``x`` along ``axis`` (None: of ``x`` flattened) where the vector ``condition`` holds, which must be
    known."""
    if axis is None:
        x, axis = _flat(x), 0
    place = normalize_axis("compress", axis, x.ndim)
    if condition.ndim != 1 or condition.size > x.shape[place]:
        raise ShapeError(f"[compress] the condition is a vector of at most {x.shape[place]}; got {condition.shape}.")
    return take(x, x.lift(np.flatnonzero(known("compress", condition)), int64), place)


def extract(condition: Array, x: Array) -> Array:
    """The elements of ``x`` where ``condition`` is not 0, as a vector."""
    return masked_select(x, cast(condition, "bool"))


# --- sets ---------------------------------------------------------------------------------------------------------


def union1d(x: Array, y: Array) -> Array:
    """The unique elements of both, in ascending order."""
    values: Array = unique(concat([_flat(x), _flat(y)]))
    return values


def intersect1d(x: Array, y: Array) -> Array:
    """The unique elements that stand in both, in ascending order."""
    own = unique(x)
    return masked_select(own, isin(own, y))


def setdiff1d(x: Array, y: Array) -> Array:
    """The unique elements of ``x`` that do not stand in ``y``, in ascending order."""
    own = unique(x)
    return masked_select(own, isin(own, y, invert=True))


def setxor1d(x: Array, y: Array) -> Array:
    """The unique elements that stand in one of both, in ascending order."""
    return union1d(setdiff1d(x, y), setdiff1d(y, x))


def rollaxis(x: Array, axis: int, start: int = 0) -> Array:
    """``x`` with ``axis`` moved before the axis ``start``."""
    place = normalize_axis("rollaxis", axis, x.ndim)
    before = start + x.ndim if start < 0 else start
    if not 0 <= before <= x.ndim:
        raise AxisError(f"[rollaxis] start={start} is no place among {x.ndim} axes.")
    return moveaxis(x, place, before - (place < before))
