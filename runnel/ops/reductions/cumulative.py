"""Cumulative sums, products, extremes and log-sums along an axis; differences; the trapezoidal rule.

A running combination takes about log n steps instead of n (W. Hillis, G. Steele, "Data parallel algorithms", 1986),
in blocks of 128 whose totals are combined in the same way. Its sums have the error bound of pairwise summation, its
order depends only on the shape, and the steps have gradients of any order.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from runnel.core.composed import composed
from runnel.core.dtypes import Dtype, as_dtype, float32, int64
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, normalize_axis
from runnel.ops.conversion import cast
from runnel.ops.creation_like import full_like, iota
from runnel.ops.elementwise.arithmetic import add, divide, multiply, subtract
from runnel.ops.elementwise.comparison import (
    greater_equal,
    isnan,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    where,
)
from runnel.ops.elementwise.numbers import logaddexp
from runnel.ops.indexing.gather import take_along_axis
from runnel.ops.reductions.primitives import accumulated, sum
from runnel.ops.reductions.statistics import rounded_as, wide_dtype
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.pieces import concat, concat_same, narrow
from runnel.ops.shapes.views import expand_dims, moveaxis, reshape

_BLOCK = 128

Rows = tuple[Array, ...]  # arrays of one shape, combined together
Combine = Callable[[Rows, Rows], Rows]


def running(rows: Rows, combine: Combine, identity: Sequence[Any]) -> Rows:
    """Combine each element along the last axis with all elements before it."""
    n = rows[0].shape[-1]
    if n <= _BLOCK:
        return _in_steps(rows, combine)
    blocks = -(-n // _BLOCK)
    lead = rows[0].shape[:-1]
    padded = [_lengthened(x, blocks * _BLOCK - n, value) for x, value in zip(rows, identity, strict=True)]
    inside = _in_steps(tuple(reshape(x, (*lead, blocks, _BLOCK)) for x in padded), combine)
    totals = running(tuple(reshape(narrow(x, -1, _BLOCK - 1, 1), (*lead, blocks)) for x in inside), combine, identity)
    shape = (*lead, blocks - 1, _BLOCK)
    before = tuple(broadcast_to(expand_dims(narrow(x, -1, 0, blocks - 1), -1), shape) for x in totals)
    later = combine(before, tuple(narrow(x, -2, 1, blocks - 1) for x in inside))
    whole = (concat([narrow(x, -2, 0, 1), y], -2) for x, y in zip(inside, later, strict=True))
    return tuple(narrow(reshape(x, (*lead, blocks * _BLOCK)), -1, 0, n) for x in whole)


def _lengthened(x: Array, by: int, value: Any) -> Array:
    return concat([x, full_like(x, value, (*x.shape[:-1], by))], -1) if by else x


def _in_steps(rows: Rows, combine: Combine) -> Rows:
    n, by = rows[0].shape[-1], 1
    while by < n:
        ahead = combine(tuple(narrow(x, -1, 0, n - by) for x in rows), tuple(narrow(x, -1, by, n - by) for x in rows))
        rows = tuple(concat([narrow(x, -1, 0, by), y], -1) for x, y in zip(rows, ahead, strict=True))
        by *= 2
    return rows


def _along(name: str, x: Array, axis: int | None, combine: Combine, identity: Any) -> Array:
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    if x.ndim == 0:
        normalize_axis(name, axis, 1)
        return x.handle()
    place = normalize_axis(name, axis, x.ndim)
    return moveaxis(running((moveaxis(x, place, -1),), combine, (identity,))[0], -1, place)


def _accumulating(name: str, x: Array, axis: int | None, dtype: Any, function: Any, identity: int) -> Array:
    """Accumulate in the dtypes of ``sum``: integers in 64 bits, half precision in float32, rounded once."""
    wide = accumulated(x.dtype)
    result = x.dtype if x.dtype.is_inexact else wide
    if dtype is not None:
        result = as_dtype(dtype)
        wide = accumulated(result)
    partial_results = _along(name, cast(x, wide), axis, lambda a, b: (function(a[0], b[0]),), identity)
    return cast(partial_results, result)


@composed
def cumsum(x: Array, axis: int | None = None, dtype: Dtype = None) -> Array:
    """Return the running sums along ``axis`` (None: of ``x`` flattened), in the dtypes of ``sum``."""
    return _accumulating("cumsum", x, axis, dtype, add, 0)


@composed
def cumprod(x: Array, axis: int | None = None, dtype: Dtype = None) -> Array:
    """Return the running products along ``axis`` (None: of ``x`` flattened), in the dtypes of ``sum``.

    The gradient is correct at zeros."""
    return _accumulating("cumprod", x, axis, dtype, multiply, 1)


def cumulative_sum(x: Array, axis: int | None = None, dtype: Dtype = None, include_initial: bool = False) -> Array:
    """Return :func:`cumsum` as in the Array API.

    ``axis`` is required unless ``x`` is a vector; ``include_initial`` puts a 0 first."""
    return _standard("cumulative_sum", cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(x: Array, axis: int | None = None, dtype: Dtype = None, include_initial: bool = False) -> Array:
    """Return :func:`cumprod` as in the Array API.

    ``axis`` is required unless ``x`` is a vector; ``include_initial`` puts a 1 first."""
    return _standard("cumulative_prod", cumprod, x, axis, dtype, 1 if include_initial else None)


def _standard(name: str, function: Any, x: Array, axis: int | None, dtype: Any, first: int | None) -> Array:
    if axis is None and x.ndim != 1:
        raise ShapeError(f"[{name}] needs an axis for an array of shape {x.shape}.")
    place = normalize_axis(name, 0 if axis is None else axis, max(x.ndim, 1))
    scanned = function(x, place, dtype)
    if first is None:
        return scanned
    return concat_same(
        [full_like(scanned, first, (*scanned.shape[:place], 1, *scanned.shape[place + 1 :])), scanned], place
    )


@composed
def logcumsumexp(x: Array, axis: int = -1) -> Array:
    """Return the logarithm of the running sums of exp(x) along ``axis``, without overflow."""
    wide = cast(x, wide_dtype(x))
    return rounded_as(_along("logcumsumexp", wide, axis, lambda a, b: (logaddexp(a[0], b[0]),), -math.inf), x)


class Extremes(NamedTuple):
    """The greatest (or smallest) elements so far and their positions along the axis."""

    values: Array
    indices: Array


@composed
def cummax(x: Array, axis: int = -1) -> Extremes:
    """Return the running maximum along ``axis`` and its int64 position, the last of equal ones: (values, indices).

    NaN counts as the largest."""
    return _extremes("cummax", x, axis, greater_equal)


@composed
def cummin(x: Array, axis: int = -1) -> Extremes:
    """Return the running minimum along ``axis`` and its int64 position, the last of equal ones: (values, indices).

    NaN counts as the smallest."""
    return _extremes("cummin", x, axis, less_equal)


def _extremes(name: str, x: Array, axis: int, beats: Any) -> Extremes:
    if x.ndim == 0:
        normalize_axis(name, axis, 1)
        return Extremes(x.handle(), full_like(x, 0, dtype=int64))
    place = normalize_axis(name, axis, x.ndim)
    if not x.size:
        return Extremes(x.handle(), full_like(x, 0, dtype=int64))

    def combine(old: Rows, new: Rows) -> Rows:
        wins = beats(new[0], old[0])
        if x.dtype.is_float:
            wins = logical_or(isnan(new[0]), logical_and(wins, logical_not(isnan(old[0]))))
        return where(wins, new[0], old[0]), where(wins, new[1], old[1])

    rows = moveaxis(x, place, -1)
    _, indices = running((rows, iota(rows, rows.shape, -1)), combine, (0, 0))
    positions = moveaxis(indices, -1, place)
    return Extremes(take_along_axis(x, positions, place), positions)


def diff(x: Array, n: int = 1, axis: int = -1, prepend: Array | None = None, append: Array | None = None) -> Array:
    """Return the differences of adjacent elements along ``axis``, ``n`` times, after adding ``prepend`` and ``append``.

    For bools, whether adjacent elements differ."""
    place, times = normalize_axis("diff", axis, x.ndim), operator.index(n)
    if times < 0:
        raise ShapeError(f"[diff] n must not be negative; got {n}.")
    if times == 0:
        return x.handle()
    x = concat([y for y in (prepend, x, append) if y is not None], place)
    for _ in range(min(times, x.shape[place])):
        m = max(x.shape[place] - 1, 0)
        x = (not_equal if x.dtype.kind == "bool" else subtract)(
            narrow(x, place, x.shape[place] - m, m), narrow(x, place, 0, m)
        )
    return x


def _trapezoids(y: Array, x: Array | None, dx: Any, axis: int) -> Array:
    place = normalize_axis("trapezoid", axis, y.ndim)
    if not y.dtype.is_inexact:
        y = cast(y, float32)
    m = max(y.shape[place] - 1, 0)
    pair = add(narrow(y, place, y.shape[place] - m, m), narrow(y, place, 0, m))
    if x is None:
        return multiply(divide(pair, 2), dx)
    if x.ndim == 1:
        width = reshape(diff(x), tuple(-1 if a == place else 1 for a in range(y.ndim)))
    else:
        width = diff(x, axis=place - y.ndim)
    return multiply(divide(pair, 2), width)


def trapezoid(y: Array, x: Array | None = None, dx: float | Array = 1.0, axis: int = -1) -> Array:
    """Integrate ``y`` along ``axis`` by the trapezoidal rule, at the points ``x`` or with spacing ``dx``."""
    return sum(_trapezoids(y, x, dx, axis), axis)


def cumulative_trapezoid(y: Array, x: Array | None = None, dx: float | Array = 1.0, axis: int = -1) -> Array:
    """Return the running integral of ``y`` along ``axis`` by the trapezoidal rule, one element shorter than ``y``."""
    return cumsum(_trapezoids(y, x, dx, axis), axis)
