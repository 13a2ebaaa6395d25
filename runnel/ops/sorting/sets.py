"""Results whose shape depends on values: nonzero and unique elements, counts of labels.

The values must be known: a compiled function takes arrays that it does not compute.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from runnel.core.dispatch import required
from runnel.core.dtypes import bool_, float64, from_numpy, int32, int64
from runnel.core.errors import DTypeError, ShapeError
from runnel.ops.arguments import Array, Axis, as_sizes, normalize_axis
from runnel.ops.conversion import cast
from runnel.ops.creation_like import full_like, iota
from runnel.ops.elementwise.arithmetic import floor_divide, remainder
from runnel.ops.elementwise.comparison import less, not_equal, where
from runnel.ops.indexing.gather import scatter_add
from runnel.ops.indexing.items import getitem
from runnel.ops.reductions.primitives import sum
from runnel.ops.shapes.broadcasting import broadcast_arrays
from runnel.ops.shapes.padding import pad
from runnel.ops.shapes.pieces import narrow, stack
from runnel.ops.shapes.views import reshape
from runnel.ops.sorting.sort import argsort


def known(name: str, x: Array) -> np.ndarray[Any, Any]:
    """Return the values of ``x`` for NumPy; an error if they exist only when a program runs."""
    values = required(
        x,
        f"[{name}] the shape of the result depends on the values of an array of shape {x.shape}, which exist only "
        "when the program runs; compute it outside the compiled function.",
    )
    array: np.ndarray[Any, Any] = values if values.dtype.kind in "biufc" else values.astype(np.float32)
    return array


def count_nonzero(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Count the elements over ``axis`` that are not 0, as int64."""
    return sum(not_equal(x, 0), axis, keepdims)


def nonzero(x: Array, as_tuple: bool = True) -> Any:
    """Return the int64 positions of the elements that are not 0, in order.

    With ``as_tuple``, a vector for each axis, as in the Array API; otherwise the rows of one matrix."""
    if x.ndim == 0 and as_tuple:
        raise ShapeError("[nonzero] an array without axes has no positions; use reshape(x, (1,)).")
    positions = np.nonzero(np.atleast_1d(known("nonzero", x)))
    if as_tuple:
        return tuple(x.lift(along_axis, int64) for along_axis in positions)
    return x.lift(np.stack(positions, 1)[:, : x.ndim], int64)


def nonzero_static(x: Array, *, size: int, fill_value: int = -1) -> Array:
    """Return the first ``size`` positions of :func:`argwhere`, padded with rows of ``fill_value``.

    The shape does not depend on values, so compiled functions can use it."""
    (count,) = as_sizes("nonzero_static", (size,))
    flat = reshape(cast(not_equal(x, 0), int32), (x.size,))
    if count > x.size:
        flat = pad(flat, ((0, count - x.size),))
    order = narrow(argsort(flat, 0, descending=True, stable=True), 0, 0, count)
    is_there = less(iota(x, (count,), 0), sum(flat))
    columns = []
    for n in reversed(x.shape):
        columns.append(where(is_there, remainder(order, max(n, 1)), fill_value))
        order = floor_divide(order, max(n, 1))
    return stack(columns[::-1], 1) if columns else full_like(x, 0, (count, 0), int64)


def argwhere(x: Array) -> Array:
    """Return the int64 positions of the elements that are not 0, as rows."""
    return nonzero(x, as_tuple=False)


def flatnonzero(x: Array) -> Array:
    """Return the int64 positions of the elements that are not 0 in ``x`` flattened."""
    return nonzero(reshape(x, (x.size,)))[0]


def masked_select(x: Array, mask: Array) -> Array:
    """Return the elements of ``x`` where ``mask`` holds, as a vector; the two broadcast."""
    if mask.dtype is not bool_:
        raise DTypeError(f"[masked_select] the mask must be bool; got {mask.dtype.name}.")
    return getitem(*broadcast_arrays(x, mask))


# --- unique elements ----------------------------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """Unique elements, where the first of each is, which of them each element is, and how often each occurs."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """Unique elements, and how often each occurs."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Unique elements, and which of them each element is."""

    values: Array
    inverse_indices: Array


def unique_all(x: Array) -> UniqueAll:
    """Return the unique elements in ascending order, their first positions, inverse positions, and counts.

    NaNs are all different."""
    values = known("unique", x)
    elements, first, inverse, counts = np.unique(values, True, True, True, equal_nan=False)
    lifted = (x.lift(y, int64) for y in (first, inverse.reshape(x.shape), counts))
    return UniqueAll(_like(x, elements), *lifted)


def _like(x: Array, values: Any) -> Array:
    return cast(x.lift(values, from_numpy(values.dtype)), x.dtype)


def unique_counts(x: Array) -> UniqueCounts:
    """Return the unique elements in ascending order, and their counts. NaNs are all different."""
    parts = unique_all(x)
    return UniqueCounts(parts.values, parts.counts)


def unique_inverse(x: Array) -> UniqueInverse:
    """Return the unique elements in ascending order, and for each element of ``x`` the number of its value."""
    parts = unique_all(x)
    return UniqueInverse(parts.values, parts.inverse_indices)


def unique_values(x: Array) -> Array:
    """Return the unique elements in ascending order. NaNs are all different."""
    return unique_all(x).values


def unique(
    x: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None
) -> Any:
    """Return the unique elements in ascending order (whatever ``sorted`` says), or along ``axis`` the unique slices.

    On request, also the number of each element's value, and the counts."""
    place = None if axis is None else normalize_axis("unique", axis, x.ndim)
    elements, inverse, counts = np.unique(known("unique", x), False, True, True, place, equal_nan=False)
    inverse = inverse.reshape(x.shape if place is None else x.shape[place])
    return _chosen(x, elements, (inverse, return_inverse), (counts, return_counts))


def unique_consecutive(
    x: Array, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None
) -> Any:
    """Remove elements (along ``axis``: slices) that equal the one before.

    On request, also the number of each element's value, and the length of each run."""
    values = known("unique_consecutive", x)
    place = None if axis is None else normalize_axis("unique_consecutive", axis, x.ndim)
    lines = values.reshape(-1) if place is None else np.moveaxis(values, place, 0)
    rows = lines.reshape(len(lines), math.prod(lines.shape[1:]))
    begins = np.ones(len(rows), bool)
    begins[1:] = (rows[1:] != rows[:-1]).any(1)
    starts, inverse = np.flatnonzero(begins), np.cumsum(begins) - 1
    counts = np.diff(np.append(starts, len(rows)))
    elements = values.reshape(-1)[starts] if place is None else np.take(values, starts, place)
    inverse = inverse.reshape(x.shape) if place is None else inverse
    return _chosen(x, elements, (inverse, return_inverse), (counts, return_counts))


def _chosen(x: Array, elements: Any, *others: tuple[Any, bool]) -> Any:
    requested = [x.lift(y.astype(np.int64), int64) for y, is_requested in others if is_requested]
    values = _like(x, elements)
    return (values, *requested) if requested else values


# --- counts -------------------------------------------------------------------------------------------------------


def bincount(x: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    """Count the labels 0, 1, … in the vector ``x``, or sum their ``weights``; at least ``minlength`` results.

    Sums are float64 unless the weights are floats. AxisError for a negative label."""
    if x.ndim != 1 or not x.dtype.is_integer:
        raise ShapeError(f"[bincount] x must be a vector of integers; got shape {x.shape} of {x.dtype.name}.")
    greatest = int(known("bincount", x).astype(np.int64).max(initial=-1)) + 1
    rows = max(greatest, operator.index(minlength))
    if weights is None:
        return scatter_add(x, full_like(x, 1, dtype=int64), rows) if rows else full_like(x, 0, (0,), int64)
    if weights.shape != x.shape:
        raise ShapeError(f"[bincount] {x.size} labels must have as many weights; got shape {weights.shape}.")
    return scatter_add(x, weights if weights.dtype.is_float else cast(weights, float64), rows)
