"""Results whose shape depends on values: nonzero and unique elements, counts of labels, histograms.

How many there are depends on values, which must be known: a compiled function takes arrays that it does not compute.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import bool_, float32, float64, from_numpy, int64
from runnel.core.errors import DTypeError, ShapeError, TracedValueError
from runnel.core.surface import offered
from runnel.ops.arguments import Array, Axis, as_sizes, normalize_axis
from runnel.ops.arithmetic import divide, floor, minimum, multiply, subtract
from runnel.ops.broadcasting import broadcast_arrays
from runnel.ops.comparison import equal, greater_equal, less_equal, not_equal
from runnel.ops.conversion import cast
from runnel.ops.creation_like import full_like, ones_like
from runnel.ops.indexing import scatter_add
from runnel.ops.items import getitem
from runnel.ops.library.order import searchsorted
from runnel.ops.logic import logical_and, where
from runnel.ops.reductions import sum
from runnel.ops.views import reshape


def known(name: str, x: Array) -> np.ndarray[Any, Any]:
    """The values of ``x`` for NumPy."""
    values = x.known()
    if values is None:
        raise TracedValueError(
            f"[{name}] the shape of the result depends on the values of an array of shape {x.shape}, which exist only "
            "when the program runs; compute it outside of the compiled function."
        )
    array: np.ndarray[Any, Any] = values if values.dtype.kind in "biufc" else values.astype(np.float32)
    return array


@offered("rn", "Tensor")
def count_nonzero(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements over ``axis`` are not 0: int64."""
    return sum(not_equal(x, 0), axis, keepdims)


@offered("rn")
def nonzero(x: Array, as_tuple: bool = True) -> Any:
    """The int64 positions of the elements that are not 0, in order: a vector for each axis, as in the Array API; as
    the rows of one matrix unless ``as_tuple``."""
    if x.ndim == 0 and as_tuple:
        raise ShapeError("[nonzero] an array without axes has no positions; use reshape(x, (1,)).")
    positions = np.nonzero(np.atleast_1d(known("nonzero", x)))
    if as_tuple:
        return tuple(x.lift(along_axis, int64) for along_axis in positions)
    return x.lift(np.stack(positions, 1)[:, : x.ndim], int64)


@offered("rn", "Tensor")
def argwhere(x: Array) -> Array:
    """The int64 positions of the elements that are not 0, as rows."""
    return nonzero(x, as_tuple=False)


@offered("rn")
def flatnonzero(x: Array) -> Array:
    """The int64 positions of the elements that are not 0 in ``x`` flattened."""
    return nonzero(reshape(x, (x.size,)))[0]


@offered("rn", "Tensor")
def masked_select(x: Array, mask: Array) -> Array:
    """The elements of ``x`` where ``mask`` holds, as a vector; the two broadcast."""
    if mask.dtype is not bool_:
        raise DTypeError(f"[masked_select] the mask is bool; received {mask.dtype.name}.")
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


@offered("rn")
def unique_all(x: Array) -> UniqueAll:
    """The unique elements in ascending order, the first position of each in ``x`` flattened, for each element of ``x``
    the number of its value, and how often each occurs. NaNs are all different."""
    values = known("unique", x)
    elements, first, inverse, counts = np.unique(values, True, True, True, equal_nan=False)
    lifted = (x.lift(y, int64) for y in (first, inverse.reshape(x.shape), counts))
    return UniqueAll(_like(x, elements), *lifted)


def _like(x: Array, values: Any) -> Array:
    return cast(x.lift(values, from_numpy(values.dtype)), x.dtype)


@offered("rn")
def unique_counts(x: Array) -> UniqueCounts:
    """The unique elements in ascending order, and how often each occurs. NaNs are all different."""
    parts = unique_all(x)
    return UniqueCounts(parts.values, parts.counts)


@offered("rn")
def unique_inverse(x: Array) -> UniqueInverse:
    """The unique elements in ascending order, and for each element of ``x`` the number of its value."""
    parts = unique_all(x)
    return UniqueInverse(parts.values, parts.inverse_indices)


@offered("rn")
def unique_values(x: Array) -> Array:
    """The unique elements in ascending order. NaNs are all different."""
    return unique_all(x).values


@offered("rn", "Tensor")
def unique(
    x: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None
) -> Any:
    """The unique elements in ascending order (whatever ``sorted`` says), or along ``axis`` the unique slices; with
    them, as asked for, for each element the number of its value, and how often each occurs."""
    place = None if axis is None else normalize_axis("unique", axis, x.ndim)
    elements, inverse, counts = np.unique(known("unique", x), False, True, True, place, equal_nan=False)
    inverse = inverse.reshape(x.shape if place is None else x.shape[place])
    return _chosen(x, elements, (inverse, return_inverse), (counts, return_counts))


@offered("rn", "Tensor")
def unique_consecutive(
    x: Array, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None
) -> Any:
    """``x``, flattened or along ``axis``, without elements (slices) that are equal to the one before; with them, as
    asked for, for each element the number of its value, and how long each run is."""
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


@offered("rn", "Tensor")
def bincount(x: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    """How often each of the labels 0, 1, … occurs in the vector ``x``, or the sums of their ``weights``, in float64
    unless these are floats; at least ``minlength`` of them. AxisError for a negative label."""
    if x.ndim != 1 or not x.dtype.is_integer:
        raise ShapeError(f"[bincount] takes a vector of integers; received shape {x.shape} of {x.dtype.name}.")
    greatest = int(known("bincount", x).astype(np.int64).max(initial=-1)) + 1
    rows = max(greatest, operator.index(minlength))
    if weights is None:
        return scatter_add(x, full_like(x, 1, dtype=int64), rows) if rows else full_like(x, 0, (0,), int64)
    if weights.shape != x.shape:
        raise ShapeError(f"[bincount] {x.size} labels need as many weights; received shape {weights.shape}.")
    return scatter_add(x, weights if weights.dtype.is_float else cast(weights, float64), rows)


class Histogram(NamedTuple):
    """The counts (or densities) of bins, and the edges between them."""

    hist: Array
    bin_edges: Array


@offered("rn", "Tensor")
def histc(x: Array, bins: int = 100, min: float = 0, max: float = 0) -> Array:
    """How many elements lie in each of ``bins`` equal parts of [min, max], by default from the smallest element to the
    greatest; others count nowhere. In the dtype of ``x``."""
    values = reshape(x, (x.size,))
    low, high = _range("histc", values, None if min == max == 0 else (min, max))
    wide = cast(values, float32) if not x.dtype.is_float or x.dtype.itemsize < 4 else values
    place = floor(multiply(divide(subtract(wide, low), high - low), bins))
    inside = logical_and(greater_equal(wide, low), less_equal(wide, high))
    label = cast(minimum(where(inside, place, bins), where(equal(wide, high), bins - 1, bins)), int64)
    return cast(_without_last(scatter_add(label, ones_like(wide), bins + 1)), x.dtype)


def _without_last(x: Array) -> Array:
    return getitem(x, slice(None, -1))


def _range(name: str, x: Array, limits: Sequence[float] | None) -> tuple[float, float]:
    if limits is None:
        values = known(name, x)
        low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    else:
        low, high = map(float, limits)
    if not -np.inf < low <= high < np.inf:
        raise ValueError(f"[{name}] bins lie between finite numbers in order; received {low} and {high}.")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


@offered("rn", "Tensor")
def histogram(
    x: Array,
    bins: Array | int = 10,
    range: Sequence[float] | None = None,
    weight: Array | None = None,
    density: bool = False,
) -> Histogram:
    """How many elements (or how much ``weight``) lie in each bin: a named tuple (hist, bin_edges), both floats. Bins
    are equal parts of ``range``, by default from the smallest element to the greatest, or lie between given edges; the
    last one contains its upper edge. With ``density`` their sum times the bins' widths is 1."""
    values = reshape(x, (x.size,))
    wide = cast(values, float32) if not x.dtype.is_float or x.dtype.itemsize < 4 else values
    if isinstance(bins, TensorLike):
        edges = cast(bins, wide.dtype)
    else:
        if operator.index(bins) < 1:
            raise ShapeError(f"[histogram] there is at least one bin; received bins={bins}.")
        as_sizes("histogram", (bins,))
        edges = x.lift(np.linspace(*_range("histogram", wide, range), bins + 1).astype(wide.dtype.numpy), wide.dtype)
    if edges.ndim != 1 or edges.size < 2:
        raise ShapeError(f"[histogram] edges are a vector of two at least; received shape {edges.shape}.")
    count = edges.size - 1
    place = subtract(searchsorted(edges, wide, "right"), 1)
    inside = logical_and(greater_equal(wide, getitem(edges, 0)), less_equal(wide, getitem(edges, -1)))
    label = where(inside, minimum(place, count - 1), count)
    share = ones_like(wide) if weight is None else cast(reshape(weight, (weight.size,)), wide.dtype)
    hist = _without_last(scatter_add(label, share, count + 1))
    if density:
        hist = divide(divide(hist, sum(hist)), subtract(getitem(edges, slice(1, None)), _without_last(edges)))
    return Histogram(hist, edges)
