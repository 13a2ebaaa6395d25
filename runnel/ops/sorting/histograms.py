"""Histograms: the number of elements in each bin, along one axis or several."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runnel.core.arrays import short_repr
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import float32, int64
from runnel.core.errors import ArgumentError, ShapeError
from runnel.ops.arguments import Array, as_sizes
from runnel.ops.conversion import cast
from runnel.ops.creation_like import ones_like
from runnel.ops.elementwise.arithmetic import add, divide, floor, minimum, multiply, subtract
from runnel.ops.elementwise.comparison import equal, greater_equal, less_equal, logical_and, where
from runnel.ops.indexing.gather import scatter_add
from runnel.ops.indexing.items import getitem
from runnel.ops.reductions.primitives import sum
from runnel.ops.shapes.pieces import stack
from runnel.ops.shapes.views import reshape
from runnel.ops.sorting.order import searchsorted
from runnel.ops.sorting.sets import known


class Histogram(NamedTuple):
    """The counts (or densities) of bins, and the edges between them."""

    hist: Array
    bin_edges: Array


def histc(x: Array, bins: int = 100, min: float = 0, max: float = 0) -> Array:
    """Count the elements in each of ``bins`` equal parts of [min, max], in the dtype of ``x``.

    By default, from the smallest element to the largest. Elements outside are not counted."""
    values = reshape(x, (x.size,))
    low, high = _range("histc", values, None if min == max == 0 else (min, max))
    wide = _wide(values)
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
        raise ValueError(f"[{name}] bins must lie between finite numbers in order; got {low} and {high}.")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _wide(x: Array) -> Array:
    return cast(x, float32) if not x.dtype.is_float or x.dtype.itemsize < 4 else x


def _edges(name: str, x: Array, bins: Array | int, limits: Sequence[float] | None) -> Array:
    """Return the edges of ``bins`` equal parts, or the given ones."""
    if isinstance(bins, TensorLike):
        edges = cast(bins, x.dtype)
    else:
        if not hasattr(type(bins), "__index__") or np.ndim(bins):
            raise ArgumentError(f"[{name}] bins must be an int, or a tensor of edges; got {short_repr(bins)}.")
        if operator.index(bins) < 1:
            raise ShapeError(f"[{name}] there must be at least one bin; got bins={bins}.")
        as_sizes(name, (bins,))
        edges = x.lift(np.linspace(*_range(name, x, limits), bins + 1).astype(x.dtype.numpy), x.dtype)
    if edges.ndim != 1 or edges.size < 2:
        raise ShapeError(f"[{name}] edges must be a vector of two at least; got shape {edges.shape}.")
    return edges


def _places(x: Array, edges: Array) -> tuple[Array, Array]:
    """Return the bin of each element, and whether it has one."""
    place = subtract(searchsorted(edges, x, "right"), 1)
    inside = logical_and(greater_equal(x, getitem(edges, 0)), less_equal(x, getitem(edges, -1)))
    return minimum(place, edges.size - 2), inside


def _counts(label: Array, wide: Array, weight: Array | None, count: int) -> Array:
    """Sum the weights in each of ``count`` bins; label ``count`` belongs to none."""
    share = ones_like(label, dtype=wide.dtype) if weight is None else cast(reshape(weight, (weight.size,)), wide.dtype)
    return _without_last(scatter_add(label, share, count + 1))


def _widths(edges: Array) -> Array:
    return subtract(getitem(edges, slice(1, None)), _without_last(edges))


class HistogramDD(NamedTuple):
    """The counts (or densities) of bins, and the edges between them along each axis."""

    hist: Array
    bin_edges: tuple[Array, ...]


def histogramdd(
    x: Array,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weight: Array | None = None,
    density: bool = False,
) -> HistogramDD:
    """Count the points ``x`` (…, d), or sum their ``weight``, in each box: a named tuple (hist, bin_edges).

    ``hist`` has d axes, and ``bin_edges`` has d vectors.

    Args:
        bins: the number of equal parts along each axis, one number or d of them; or d vectors of edges.
        range: the least and the greatest number along each axis: d pairs, or 2·d numbers in a row. By default the
            limits of the points.
        density: divide by the number of points and by the boxes' volumes.
    """
    if x.ndim < 1 or not x.shape[-1]:
        raise ShapeError(f"[histogramdd] points must have an axis of coordinates; got shape {x.shape}.")
    dimensions = x.shape[-1]
    points = _wide(reshape(x, (x.size // dimensions, dimensions)))
    parts = list(bins) if isinstance(bins, Sequence) else [bins] * dimensions
    limits: list[Any] = [None] * dimensions if range is None else list(range)
    if len(limits) == 2 * dimensions and not isinstance(limits[0], Sequence):
        limits = list(zip(limits[::2], limits[1::2], strict=True))
    if len(parts) != dimensions or len(limits) != dimensions:
        raise ShapeError(
            f"[histogramdd] points of {dimensions} coordinates must have as many numbers of bins, and of limits; got "
            f"{len(parts)} and {len(limits)}."
        )
    coordinates = [getitem(points, (slice(None), axis)) for axis in builtins.range(dimensions)]
    edges = [_edges("histogramdd", x, *given) for x, *given in zip(coordinates, parts, limits, strict=True)]
    label, inside = _places(coordinates[0], edges[0])
    count = edges[0].size - 1
    for coordinate, own in zip(coordinates[1:], edges[1:], strict=True):
        place, is_in = _places(coordinate, own)
        label, inside = add(multiply(label, own.size - 1), place), logical_and(inside, is_in)
        count *= own.size - 1
    hist = _counts(where(inside, label, count), points, weight, count)
    hist = reshape(hist, tuple(own.size - 1 for own in edges))
    if density:
        hist = divide(hist, sum(hist))
        for axis, own in enumerate(edges):
            hist = divide(hist, reshape(_widths(own), (-1,) + (1,) * (dimensions - 1 - axis)))
    return HistogramDD(hist, tuple(edges))


def histogram2d(
    x: Array,
    y: Array,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    density: bool = False,
    weights: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Apply :func:`histogramdd` to points with coordinates ``x`` and ``y``; return the counts and the edges along
    both."""
    vectors = [reshape(one, (one.size,)) for one in (x, y)]
    is_edges = isinstance(bins, TensorLike)
    hist, edges = histogramdd(stack(vectors, 1), (bins, bins) if is_edges else bins, range, weights, density)
    return hist, *edges


def histogram(
    x: Array,
    bins: Array | int = 10,
    range: Sequence[float] | None = None,
    weight: Array | None = None,
    density: bool = False,
) -> Histogram:
    """Count the elements, or sum their ``weight``, in each bin: a named tuple (hist, bin_edges) of floats.

    Bins are equal parts of ``range``, by default from the smallest element to the largest, or lie between given
    edges. The last bin includes its upper edge. ``density`` normalizes so that the sum times the widths is 1."""
    wide = _wide(reshape(x, (x.size,)))
    edges = _edges("histogram", wide, bins, range)
    place, inside = _places(wide, edges)
    count = edges.size - 1
    hist = _counts(where(inside, place, count), wide, weight, count)
    if density:
        hist = divide(divide(hist, sum(hist)), _widths(edges))
    return Histogram(hist, edges)
