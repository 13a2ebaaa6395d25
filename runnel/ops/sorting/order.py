"""Order statistics: medians, quantiles, modes, and binary search.

Every sort is stable, and NaN counts as larger than every number. A median or quantile is NaN if there is a NaN among
the elements, as in NumPy and PyTorch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.core.dispatch import TensorLike, apply
from runnel.core.dtypes import bool_, int32, int64
from runnel.core.errors import DTypeError, ShapeError
from runnel.core.lengths import Length
from runnel.ops.arguments import Array, Operand, normalize_axis
from runnel.ops.conversion import cast, stop_gradient
from runnel.ops.creation_like import full_like, iota
from runnel.ops.elementwise.arithmetic import (
    add,
    add_p,
    ceil,
    divide,
    floor,
    floor_divide,
    maximum,
    minimum,
    multiply,
    round,
    subtract,
)
from runnel.ops.elementwise.comparison import (
    equal,
    greater,
    greater_equal,
    isfinite,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    where,
)
from runnel.ops.indexing.gather import take_along_axis, take_p
from runnel.ops.promotion import alike
from runnel.ops.reductions.cumulative import cummax
from runnel.ops.reductions.primitives import argmax, max, min, sum
from runnel.ops.reductions.statistics import rounded_as, wide_dtype
from runnel.ops.requirement import requiring
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.pieces import concat_same, narrow
from runnel.ops.shapes.views import expand_dims, moveaxis, reshape, squeeze
from runnel.ops.sorting.sort import sort, sort_p


class Ranked(NamedTuple):
    """Elements chosen by their rank along an axis, and their positions there."""

    values: Array
    indices: Array


def _sorted_rows(name: str, x: Array, axis: int) -> tuple[Array, Array, int]:
    """Return the elements sorted along the last axis, their positions, and the axis counted from the front."""
    if x.ndim == 0:
        normalize_axis(name, axis, 1)
        x, axis = reshape(x, (1,)), 0
    place = normalize_axis(name, axis, x.ndim)
    if not x.shape[place]:
        raise ShapeError(f"[{name}] axis {axis} of shape {x.shape} holds no element.")
    values, indices = apply(sort_p, moveaxis(x, place, -1), descending=False)
    return values, indices, place


def _ranked(x: Array, rows: tuple[Array, Array, int], rank: Array, keepdims: bool) -> Ranked:
    """Return the elements at ``rank`` (of size 1 along the last axis) of sorted rows."""
    values, indices, place = rows
    ranked = [take_along_axis(y, rank, -1) for y in (values, indices)]
    if x.ndim == 0:
        return Ranked(*(reshape(y, ()) for y in ranked))
    return Ranked(*(moveaxis(y, -1, place) if keepdims else squeeze(y, -1) for y in ranked))


def kthvalue(x: Array, k: int, axis: int = -1, keepdims: bool = False) -> Ranked:
    """Return the ``k``-th smallest element along ``axis``, counted from 1, and its int64 position: (values, indices).

    The first of equal elements come first."""
    rows = _sorted_rows("kthvalue", x, axis)
    n = rows[0].shape[-1]
    if not 1 <= operator.index(k) <= n:
        raise ShapeError(f"[kthvalue] k={k} of the {n} elements along axis {axis} of shape {x.shape}; k counts from 1.")
    rank = full_like(rows[1], operator.index(k) - 1, (*rows[0].shape[:-1], 1), int64)
    return _ranked(x, rows, rank, keepdims)


def median(x: Array, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the middle element, the lower of two for an even number, as in PyTorch.

    Without ``axis``, a number for all of ``x``; along ``axis``, a named tuple (values, indices) with int64
    positions."""
    return _median(
        "median", x, axis, keepdims, lambda n, count: where(greater(count, 0), subtract(n, count), (n - 1) // 2)
    )


def nanmedian(x: Array, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return :func:`median` ignoring NaN; NaN where there are no numbers."""

    def rank(n: int, count: Array) -> Array:
        return maximum(floor_divide(subtract(n - 1, count), 2), 0)

    return _median("nanmedian", x, axis, keepdims, rank)


def _median(name: str, x: Array, axis: int | None, keepdims: bool, rank: Callable[[int, Array], Array]) -> Any:
    if axis is None:
        value = stop_gradient(_median(name, reshape(x, (x.size,)), 0, False, rank).values)
        equals = logical_and(equal(x, value), isfinite(value))  # they share the gradient
        value = add(value, divide(sum(where(equals, subtract(x, value), 0)), maximum(sum(equals), 1)))
        value = cast(value, x.dtype)
        return reshape(value, (1,) * x.ndim) if keepdims else value
    rows = _sorted_rows(name, x, axis)
    is_not = isnan(rows[0]) if x.dtype.is_float else full_like(rows[0], False, dtype=bool_)
    count = sum(is_not, -1, keepdims=True)
    return _ranked(x, rows, rank(rows[0].shape[-1], count), keepdims)


def mode(x: Array, axis: int = -1, keepdims: bool = False) -> Ranked:
    """Return the most frequent element along ``axis``, the smallest of several, and its last int64 position:
    (values, indices)."""
    rows = _sorted_rows("mode", x, axis)
    values = rows[0]
    n = values.shape[-1]
    begins = not_equal(narrow(values, -1, 1, n - 1), narrow(values, -1, 0, n - 1))
    position = iota(values, values.shape, -1)
    first = full_like(begins, True, (*values.shape[:-1], 1))
    starts = where(concat_same([first, begins], values.ndim - 1), position, 0)
    length = subtract(position, cummax(starts, -1).values)
    return _ranked(x, rows, argmax(length, -1, keepdims=True), keepdims)


_INTERPOLATIONS: Final = ("linear", "lower", "higher", "nearest", "midpoint")


def quantile(
    x: Array,
    q: float | Array | Sequence[float],
    axis: int | None = None,
    keepdims: bool = False,
    interpolation: str = "linear",
) -> Array:
    """Return the ``q``-quantiles along ``axis`` (None: of all of ``x``).

    Between two elements, ``interpolation`` selects "linear", "lower", "higher", "nearest" (half to even) or
    "midpoint". Several ``q`` are the first axis of the result."""
    return _quantile("quantile", x, q, axis, keepdims, interpolation, skips=False)


def nanquantile(
    x: Array,
    q: float | Array | Sequence[float],
    axis: int | None = None,
    keepdims: bool = False,
    interpolation: str = "linear",
) -> Array:
    """Return :func:`quantile` ignoring NaN; NaN where there are no numbers."""
    return _quantile("nanquantile", x, q, axis, keepdims, interpolation, skips=True)


def _quantile(
    name: str, x: Array, q: Any, axis: int | None, keepdims: bool, interpolation: str, *, skips: bool
) -> Array:
    if not x.dtype.is_float:
        raise DTypeError(f"[{name}] does not take {x.dtype.name}; cast the array to a float first.")
    if interpolation not in _INTERPOLATIONS:
        raise ValueError(f"[{name}] interpolation must be one of {', '.join(_INTERPOLATIONS)}; got {interpolation!r}.")
    ndim = x.ndim
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    wide = cast(x, wide_dtype(x))
    values, _, place = _sorted_rows(name, wide, axis)
    n = values.shape[-1]
    shares = q if isinstance(q, TensorLike) else x.lift(np.asarray(q, np.float64).astype(wide.dtype.numpy), wide.dtype)
    shares = _required_shares(name, shares)
    counts = sum(isnan(values), -1, keepdims=True)
    last = cast(maximum(subtract(n - 1, counts), 0), wide.dtype) if skips else float(n - 1)
    column = reshape(cast(shares, wide.dtype), (shares.size, *(1,) * values.ndim))
    at = multiply(column, last)  # (q, …, 1)
    low, high = _neighbours(at, interpolation)
    rows = broadcast_to(expand_dims(values, 0), (shares.size, *values.shape))
    shape = (shares.size, *values.shape[:-1], 1)
    below, above = (take_along_axis(rows, minimum(cast(broadcast_to(k, shape), int64), n - 1), -1) for k in (low, high))
    share = {"linear": subtract(at, low), "midpoint": 0.5}.get(interpolation, 0.0)
    quantiles = (
        add(below, multiply(subtract(above, below), share)) if interpolation in ("linear", "midpoint") else below
    )
    is_nan = equal(counts, n) if skips else greater(counts, 0)
    quantiles = where(is_nan, np.nan, quantiles)
    quantiles = moveaxis(quantiles, -1, place + 1) if keepdims else squeeze(quantiles, -1)
    if keepdims and ndim != values.ndim:
        quantiles = reshape(quantiles, (shares.size, *(1,) * ndim))
    return rounded_as(reshape(quantiles, (*shares.shape, *quantiles.shape[1:])), x)


def _required_shares(name: str, shares: Array) -> Array:
    """Return ``shares``, which must be in [0, 1]; a program checks values that are not known yet."""
    if shares.ndim > 1:
        raise ShapeError(f"[{name}] q must be a number or a vector; got shape {shares.shape}.")
    known = shares.known()
    if known is None:
        inside = logical_and(greater_equal(shares, 0), less_equal(shares, 1))
        return requiring(shares, inside, f"[{name}] q lies in [0, 1]")
    if not ((known >= 0) & (known <= 1)).all():
        raise ValueError(f"[{name}] q must lie in [0, 1]; got {known.tolist()}.")
    return shares


def _neighbours(at: Array, interpolation: str) -> tuple[Array, Array]:
    if interpolation == "nearest":
        return round(at), round(at)
    if interpolation == "higher":
        return ceil(at), ceil(at)
    return floor(at), ceil(at)


class Bounds(NamedTuple):
    """The smallest and the greatest elements."""

    min: Array
    max: Array


def aminmax(x: Array, axis: int | None = None, keepdims: bool = False) -> Bounds:
    """Return the smallest and the largest element over ``axis``: a named tuple (min, max)."""
    return Bounds(min(x, axis, keepdims), max(x, axis, keepdims))


def msort(x: Array) -> Array:
    """Apply :func:`sort` along axis 0."""
    return sort(x, 0)


# --- places among sorted values -----------------------------------------------------------------------------------


def searchsorted(
    sorted_sequence: Array,
    values: Operand,
    side: str = "left",
    sorter: Array | None = None,
    right: bool = False,
    out_int32: bool = False,
) -> Array:
    """Return how many elements of the ascending ``sorted_sequence`` are less than each value, as int64.

    "right" (or ``right=True``) also counts equal elements. A vector serves all values; otherwise, the last axis of
    each is searched in its own row and the other axes must agree. ``sorter`` has the positions that sort the
    sequence. Binary search: one step for each bit of the length."""
    if side not in ("left", "right"):
        raise ValueError(f"[searchsorted] side must be 'left' or 'right'; got {side!r}.")
    sequence, queries = alike(add_p, sorted_sequence, values)
    if sorter is not None:
        sequence = take_along_axis(sequence, sorter, -1)
    n = sequence.shape[-1] if sequence.ndim else 0
    if sequence.ndim != 1 and sequence.shape[:-1] != queries.shape[:-1]:
        raise ShapeError(
            f"[searchsorted] a sequence of shape {sequence.shape} serves values whose other axes are "
            f"{sequence.shape[:-1]}; got shape {queries.shape}."
        )
    rows = sequence.size // n if n and sequence.ndim > 1 else 1
    kind = int32 if out_int32 else int64
    if not n or not queries.size:
        return full_like(queries, 0, dtype=kind)
    positions = _binary_search(
        reshape(sequence, (rows, n)), reshape(queries, (rows, queries.size // rows)), side == "right" or right
    )
    return cast(reshape(positions, queries.shape), kind)


def _steps(n: int | Length) -> int:
    """Return how often n elements are halved; of a length, at least often enough for all lengths up to 2⁸, 2¹⁶, ..."""
    if isinstance(n, int):
        return n.bit_length()
    steps = 8
    while n >= 1 << steps:
        steps *= 2
    return steps


def _binary_search(rows: Array, queries: Array, is_right: bool) -> Array:
    count, n = rows.shape
    flat = reshape(rows, (rows.size,))
    first = multiply(iota(queries, (count, 1), 0), n)
    low, high = full_like(queries, 0, dtype=int64), full_like(queries, n, dtype=int64)
    for _ in range(_steps(n)):
        middle = floor_divide(add(low, high), 2)
        here = apply(take_p, flat, add(first, minimum(middle, n - 1)), axis=0)
        goes_on = (less_equal if is_right else less)(here, queries)
        if rows.dtype.is_float:
            goes_on = logical_or(
                goes_on, isnan(queries) if is_right else logical_and(isnan(queries), logical_not(isnan(here)))
            )
        goes_on = logical_and(goes_on, less(low, high))
        low, high = where(goes_on, add(middle, 1), low), where(goes_on, high, middle)
    return low


def bucketize(x: Operand, boundaries: Array, right: bool = False, out_int32: bool = False) -> Array:
    """Return for each element the number of ascending ``boundaries`` below it, or with ``right`` not above it."""
    if boundaries.ndim != 1:
        raise ShapeError(f"[bucketize] boundaries must be a vector; got shape {boundaries.shape}.")
    return searchsorted(boundaries, x, right=right, out_int32=out_int32)


def isin(x: Operand, test_elements: Operand, assume_unique: bool = False, invert: bool = False) -> Array:
    """Return whether each element is among ``test_elements``, or with ``invert`` is not. NaN equals nothing."""
    own, others = (cast(y, int32) if y.dtype is bool_ else y for y in alike(add_p, x, test_elements))
    others = reshape(others, (others.size,))
    if not others.size or not own.size:
        return full_like(own, invert, dtype=bool_)
    ordered = sort(others)
    at = minimum(searchsorted(ordered, own), others.size - 1)
    is_member = equal(apply(take_p, ordered, at, axis=0), own)
    return logical_not(is_member) if invert else is_member
