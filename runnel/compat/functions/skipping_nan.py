"""NumPy's reductions that skip NaN, percentiles, and weighted means."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, Axis
from runnel.ops.conversion import cast
from runnel.ops.elementwise.arithmetic import divide, multiply, subtract
from runnel.ops.elementwise.comparison import equal, isnan, logical_not, where
from runnel.ops.elementwise.exponential import sqrt, square
from runnel.ops.linear_algebra.products import nanmean
from runnel.ops.reductions.cumulative import cumprod, cumsum
from runnel.ops.reductions.primitives import all, argmax, max as greatest, min as least, prod, sum
from runnel.ops.reductions.statistics import mean
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.views import reshape
from runnel.ops.sorting.order import nanquantile, quantile


def nanmax(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the largest of the numbers over ``axis``, ignoring NaN; NaN where there are no numbers."""
    if not x.dtype.is_float:
        return greatest(x, axis, keepdims)
    missing = isnan(x)
    found = greatest(where(missing, -math.inf, x), axis, keepdims)
    return where(all(missing, axis, keepdims), math.nan, found)


def nanmin(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the smallest of the numbers over ``axis``, ignoring NaN; NaN where there are no numbers."""
    if not x.dtype.is_float:
        return least(x, axis, keepdims)
    missing = isnan(x)
    found = least(where(missing, math.inf, x), axis, keepdims)
    return where(all(missing, axis, keepdims), math.nan, found)


def nanargmax(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the position of the first largest number along ``axis`` (None: in ``x`` flattened), 0 where there are
    no numbers."""
    return argmax(equal(x, nanmax(x, axis, True)), axis, keepdims)


def nanargmin(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the position of the first smallest number along ``axis`` (None: in ``x`` flattened), 0 where there are
    no numbers."""
    return argmax(equal(x, nanmin(x, axis, True)), axis, keepdims)


def nanprod(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the product over ``axis``, ignoring NaN."""
    return prod(where(isnan(x), 1, x), axis, keepdims)


def nancumsum(x: Array, axis: int | None = None) -> Array:
    """Apply :func:`cumsum` with 0 for NaN."""
    return cumsum(where(isnan(x), 0, x), axis)


def nancumprod(x: Array, axis: int | None = None) -> Array:
    """Apply :func:`cumprod` with 1 for NaN."""
    return cumprod(where(isnan(x), 1, x), axis)


def nanvar(x: Array, axis: Axis = None, keepdims: bool = False, correction: float = 0) -> Array:
    """Return the variance of the n numbers over ``axis``, with divisor n - ``correction``, ignoring NaN; NaN where
    there are no numbers."""
    missing = isnan(x)
    apart = where(missing, 0, subtract(x, nanmean(x, axis, True)))
    squares = sum(square(apart), axis, keepdims)
    count = sum(logical_not(missing), axis, keepdims)
    return where(equal(count, 0), math.nan, divide(squares, subtract(cast(count, squares.dtype), correction)))


def nanstd(x: Array, axis: Axis = None, keepdims: bool = False, correction: float = 0) -> Array:
    """Return the square root of :func:`nanvar`."""
    return sqrt(nanvar(x, axis, keepdims, correction))


def percentile(
    x: Array, q: float | Array | Sequence[float], axis: int | None = None, keepdims: bool = False,
    interpolation: str = "linear",
) -> Array:  # fmt: skip
    """Apply :func:`quantile` with ``q`` in percent."""
    return quantile(x, _hundredth(q), axis, keepdims, interpolation)


def nanpercentile(
    x: Array, q: float | Array | Sequence[float], axis: int | None = None, keepdims: bool = False,
    interpolation: str = "linear",
) -> Array:  # fmt: skip
    """Apply :func:`nanquantile` with ``q`` in percent."""
    return nanquantile(x, _hundredth(q), axis, keepdims, interpolation)


def _hundredth(q: float | Array | Sequence[float]) -> float | Array | list[float]:
    return [each / 100 for each in q] if isinstance(q, (list, tuple)) else q / 100  # type: ignore[operator]


def ptp(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the largest element over ``axis`` minus the smallest."""
    return subtract(greatest(x, axis, keepdims), least(x, axis, keepdims))


def average(x: Array, axis: int | None = None, weights: Array | None = None, keepdims: bool = False) -> Array:
    """Return the mean over ``axis``; with ``weights``, of the shape of ``x`` or along ``axis``, Σ w·x / Σ w."""
    if weights is None:
        return mean(x, axis, keepdims)
    if weights.shape != x.shape:
        if axis is None or weights.shape != (x.shape[axis],):
            raise ShapeError(
                f"[average] weights have the shape {x.shape}, or are a vector along the axis; received {weights.shape}."
            )
        weights = reshape(weights, tuple(-1 if a == axis % x.ndim else 1 for a in range(x.ndim)))
    weights = broadcast_to(weights, x.shape)
    return divide(sum(multiply(x, weights), axis, keepdims), sum(weights, axis, keepdims))
