"""Means, variances, norms, normalisation and log-sum-exp: compositions, which the compiler fuses."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence

from runnel.core.dtypes import float32
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, Axis, Operand, as_shape, normalize_axes
from runnel.ops.arithmetic import abs, add, divide, multiply, subtract
from runnel.ops.comparison import equal, greater, less, not_equal
from runnel.ops.conversion import cast, stop_gradient
from runnel.ops.logic import isfinite, where
from runnel.ops.reductions import finished, max, min, sum
from runnel.ops.transcendental import exp, log, pow, rsqrt, sqrt, square


def mean(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The mean over ``axis``; of integers, in float32."""
    floats = x if x.dtype.is_float else cast(x, float32)
    axes = normalize_axes("mean", axis, x.ndim)
    return divide(sum(floats, axes, keepdims), math.prod(x.shape[a] for a in axes))


def var(x: Array, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> Array:
    """The mean square distance from the mean, over n - ``correction`` (1 for the unbiased estimate)."""
    axes = normalize_axes("var", axis, x.ndim)
    total = sum(square(subtract(x, mean(x, axes, keepdims=True))), axes, keepdims)
    return divide(total, builtins.max(math.prod(x.shape[a] for a in axes) - correction, 0))


def std(x: Array, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> Array:
    """The square root of :func:`var`, with its arguments: over n - ``correction``, 0 by default as in the Array API."""
    return sqrt(var(x, axis, correction, keepdims))


def logsumexp(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """log Σ exp(x) over ``axis``, computed beside the greatest element so that nothing overflows."""
    axes = normalize_axes("logsumexp", axis, x.ndim)
    greatest = stop_gradient(max(x, axes, keepdims=True))
    shift = where(isfinite(greatest), greatest, 0)
    kept = add(log(sum(exp(subtract(x, shift)), axes, keepdims=True)), shift)
    return finished(kept, axes, keepdims)


def norm(x: Array, axis: Axis = None, ord: float = 2, keepdims: bool = False) -> Array:
    """The vector norm over ``axis`` of any order (0 counts what is not 0, ±inf are extremes); derivative 0 at 0."""
    if ord == 0:
        return sum(not_equal(x, 0), axis, keepdims, dtype=x.dtype)
    size = abs(x)
    if ord == 1:
        return sum(size, axis, keepdims)
    if math.isinf(ord):
        return max(size, axis, keepdims) if ord > 0 else min(size, axis, keepdims)
    if ord == 2:
        total = sum(square(x), axis, keepdims)
        return where(equal(total, 0), 0, sqrt(where(equal(total, 0), 1, total)))
    total = sum(pow(size, float(ord)), axis, keepdims)
    return where(equal(total, 0), 0, pow(where(equal(total, 0), 1, total), 1 / ord))


def layer_norm(
    x: Array,
    normalized_shape: int | Sequence[int],
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    """``x`` with mean 0 and variance 1 over its last axes, which have ``normalized_shape``; then scaled and shifted."""
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


def rms_norm(x: Array, weight: Array | None = None, eps: float = 1e-6) -> Array:
    """``x`` divided by its root mean square over the last axis, then scaled."""
    wide = cast(x, float32) if x.dtype.itemsize == 2 else x
    result = multiply(wide, rsqrt(add(mean(square(wide), -1, keepdims=True), eps)))
    return cast(result if weight is None else multiply(result, weight), x.dtype)


def clip(x: Array, low: Operand | None = None, high: Operand | None = None) -> Array:
    """``x`` kept within [low, high]; the gradient passes inside and at the bounds. NaN stays; low > high gives high."""
    if low is not None:
        x = where(less(x, low), low, x)
    if high is not None:
        x = where(greater(x, high), high, x)
    return x
