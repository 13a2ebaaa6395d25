"""Means, variances, norms, normalization and log-sum-exp, as compositions that the compiler fuses."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

from runnel.core.arrays import short_repr
from runnel.core.composed import composed
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import DType, Dtype, as_dtype, float32, float64, real_of
from runnel.core.errors import ArgumentError, ShapeError
from runnel.core.lengths import as_number, largest
from runnel.ops.arguments import Array, Axis, Operand, as_shape, as_sizes, normalize_axes, normalize_axis
from runnel.ops.conversion import cast, stop_gradient
from runnel.ops.creation_like import full_like
from runnel.ops.elementwise.arithmetic import abs, add, divide, multiply, subtract
from runnel.ops.elementwise.comparison import equal, greater, isfinite, less, logical_or, not_equal, where
from runnel.ops.elementwise.complex_parts import conj, real
from runnel.ops.elementwise.exponential import exp, log, pow, rsqrt, sqrt, square
from runnel.ops.reductions.primitives import accumulated, finished, max, min, sum
from runnel.ops.shapes.broadcasting import unbroadcast


def wide_dtype(x: Array) -> DType:
    """Return the dtype in which statistics of ``x`` are computed: float32 for integers and half precision."""
    return x.dtype if x.dtype.is_inexact and x.dtype.itemsize > 2 else float32


def rounded_as(statistic: Array, x: Array) -> Array:
    """Convert a statistic to the dtype of ``x``, if that is a float."""
    return cast(statistic, x.dtype) if x.dtype.is_float and statistic.dtype is not x.dtype else statistic


@composed
def mean(x: Array, axis: Axis = None, keepdims: bool = False, dtype: Dtype = None) -> Array:
    """Return the mean over ``axis``, in ``dtype`` if it is given; integers have a float32 mean.

    Half precision is rounded once at the end, here and in the other statistics."""
    axes = normalize_axes("mean", axis, x.ndim)
    x = x if dtype is None else cast(x, as_dtype(dtype))
    total = sum(x, axes, keepdims, dtype=wide_dtype(x))
    return rounded_as(divide(total, as_number(math.prod(x.shape[a] for a in axes))), x)


@composed
def var(x: Array, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> Array:
    """Return the mean squared distance from the mean, with divisor n - ``correction`` (1 for the unbiased estimate)."""
    axes = normalize_axes("var", axis, x.ndim)
    wide = cast(x, wide_dtype(x))
    distance = subtract(wide, mean(wide, axes, keepdims=True))
    total = sum(real(multiply(conj(distance), distance)), axes, keepdims)
    if isinstance(correction, float) and correction.is_integer():
        correction = int(correction)  # lengths are whole
    return rounded_as(divide(total, as_number(largest([math.prod(x.shape[a] for a in axes) - correction, 0]))), x)


@composed
def std(x: Array, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> Array:
    """Return the square root of :func:`var`, with the same arguments and derivative 0 at 0.

    The divisor is n - ``correction``, with 0 by default as in the Array API."""
    square_of_it = var(cast(x, wide_dtype(x)), axis, correction, keepdims)
    is_zero = equal(square_of_it, 0)
    return rounded_as(where(is_zero, 0, sqrt(where(is_zero, 1, square_of_it))), x)


@composed
def logsumexp(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return log Σ exp(x) over ``axis``, without overflow."""
    axes = normalize_axes("logsumexp", axis, x.ndim)
    wide = cast(x, wide_dtype(x))
    if 0 in [x.shape[a] for a in axes]:
        return rounded_as(log(sum(exp(wide), axes, keepdims)), x)
    greatest = stop_gradient(max(real(wide), axes, keepdims=True))
    shift = where(isfinite(greatest), greatest, 0)
    result = add(log(sum(exp(subtract(wide, shift)), axes, keepdims=True)), shift)
    return rounded_as(finished(result, axes, keepdims), x)


@composed
def norm(x: Array, ord: float | str = 2, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the vector norm over ``axis`` of any order, with derivative 0 at 0.

    Order 0 counts non-zero elements, ±inf are extremes, and "fro" is 2."""
    if isinstance(ord, str) and ord == "fro":
        ord = 2
    if isinstance(ord, bool) or not isinstance(ord, numbers.Real) or math.isnan(ord):
        raise ArgumentError(f"[norm] ord must be a number or 'fro'; got {short_repr(ord)}.")
    if ord == 0:
        return sum(not_equal(x, 0), axis, keepdims, dtype=real_of(x.dtype))
    size = abs(x)
    if ord == 1:
        return sum(size, axis, keepdims)
    if math.isinf(ord):
        return max(size, axis, keepdims) if ord > 0 else min(size, axis, keepdims)
    wide = cast(size, wide_dtype(x)) if x.dtype.is_float else size
    if ord == 2:
        total = sum(square(wide), axis, keepdims)
        return rounded_as(where(equal(total, 0), 0, sqrt(where(equal(total, 0), 1, total))), x)
    if ord < 1:  # the derivative at 0 is 0, and not infinite
        is_zero = equal(wide, 0)
        terms = where(is_zero, 0.0 if ord > 0 else math.inf, pow(where(is_zero, 1, wide), float(ord)))
    else:
        terms = pow(wide, float(ord))
    total = sum(terms, axis, keepdims)
    return rounded_as(where(equal(total, 0), 0, pow(where(equal(total, 0), 1, total), 1 / ord)), x)


@composed
def layer_norm(
    x: Array,
    normalized_shape: int | Sequence[int],
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    """Normalize the last axes, of shape ``normalized_shape``, to mean 0 and variance 1; then scale and shift.

    ShapeError if the last axes have another shape."""
    shape = as_shape("layer_norm", normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ShapeError(f"[layer_norm] the last axes of shape {x.shape} are not the normalized shape {shape}.")
    wide = cast(x, float32) if x.dtype.itemsize == 2 else x
    axes = tuple(range(-len(shape), 0))
    centred = subtract(wide, mean(wide, axes, keepdims=True))
    result = multiply(centred, rsqrt(add(mean(square(centred), axes, keepdims=True), eps)))
    if weight is not None:
        result = multiply(result, weight)
    if bias is not None:
        result = add(result, bias)
    return cast(result, x.dtype)


@composed
def rms_norm(x: Array, weight: Array | None = None, eps: float = 1e-6) -> Array:
    """Divide ``x`` by its root mean square over the last axis, then scale."""
    wide = cast(x, float32) if x.dtype.itemsize == 2 else x
    result = multiply(wide, rsqrt(add(mean(square(wide), -1, keepdims=True), eps)))
    return cast(result if weight is None else multiply(result, weight), x.dtype)


@composed
def clip(x: Array, min: Operand | None = None, max: Operand | None = None) -> Array:
    """Limit ``x`` to [min, max]; the gradient passes inside and at the bounds.

    NaN stays NaN, and so does a NaN bound; min > max returns max."""
    if min is not None:
        x = where(_or_nan(less(x, min), min), min, x)
    if max is not None:
        x = where(_or_nan(greater(x, max), max), max, x)
    return x


def _or_nan(beyond: Array, bound: Operand) -> Array:
    """Return ``beyond``, and True where the bound is NaN."""
    if type(bound) is float:
        return full_like(beyond, True) if math.isnan(bound) else beyond
    if isinstance(bound, float):  # of a compiled function's argument, known when it runs
        bound = full_like(beyond, bound, dtype=float64)
    if not isinstance(bound, TensorLike) or not bound.dtype.is_float:
        return beyond
    return logical_or(beyond, not_equal(bound, bound))


_EPSILON = 1e-7  # of PyTorch's: so the norm stays just below the greatest


def renorm(x: Array, p: float, axis: int, maxnorm: float) -> Array:
    """Scale each slice along ``axis`` whose norm of order ``p`` exceeds ``maxnorm`` down to that norm."""
    place = normalize_axis("renorm", axis, x.ndim)
    others = tuple(a for a in range(x.ndim) if a != place)
    wide = cast(x, wide_dtype(x))
    size = norm(wide, p, others, keepdims=True)
    is_long = greater(size, maxnorm)
    scale = where(is_long, divide(maxnorm, add(where(is_long, size, 1), _EPSILON)), 1)
    return cast(multiply(wide, scale), x.dtype)


def sum_to_size(x: Array, *size: Any) -> Array:
    """Sum ``x`` over the axes that broadcasting from ``size`` repeats."""
    shape = as_sizes("sum_to_size", size[0] if len(size) == 1 else size)
    leading = x.ndim - len(shape)
    if leading < 0 or any(n not in (1, m) for n, m in zip(shape, x.shape[leading:], strict=True)):
        raise ShapeError(f"[sum_to_size] shape {shape} does not broadcast to {x.shape}.")
    return unbroadcast(x if x.dtype.is_inexact else cast(x, accumulated(x.dtype)), shape)
