"""Activation functions: compositions of primitives, with PyTorch's values at kinks (``relu`` is in arithmetic.py)."""

from __future__ import annotations

import math

from runnel.core.composed import composed
from runnel.core.dtypes import Dtype, as_dtype
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast, stop_gradient
from runnel.ops.elementwise.arithmetic import abs, add, divide, maximum, multiply, negative, relu, subtract
from runnel.ops.elementwise.comparison import greater, greater_equal, isnan, less_equal, where
from runnel.ops.elementwise.exponential import erf, exp, expm1, log, log1p, pow, sigmoid, tanh
from runnel.ops.reductions.primitives import max, sum


@composed
def leaky_relu(x: Array, negative_slope: float = 0.01) -> Array:
    """Return x where it is positive, negative_slope · x elsewhere."""
    return where(greater(x, 0), x, multiply(x, negative_slope))


@composed
def elu(x: Array, alpha: float = 1.0) -> Array:
    """Return x where it is positive, alpha · (exp(x) - 1) elsewhere."""
    below = less_equal(x, 0)  # at 0, where the derivative is alpha, too; NaN is above
    return where(below, multiply(expm1(where(below, x, 0)), alpha), x)


@composed
def selu(x: Array) -> Array:
    """Return elu scaled so that activations keep mean 0 and variance 1.

    Constants: G. Klambauer et al., "Self-normalizing neural networks", 2017."""
    return multiply(elu(x, 1.6732632423543772), 1.0507009873554805)


@composed
def gelu(x: Array, approximate: str = "none") -> Array:
    """Return x · Φ(x), or with ``approximate="tanh"`` its approximation.

    D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016."""
    if approximate == "none":
        return multiply(multiply(x, 0.5), add(erf(multiply(x, math.sqrt(0.5))), 1))
    if approximate == "tanh":
        inner = multiply(add(x, multiply(pow(x, 3), 0.044715)), math.sqrt(2 / math.pi))
        return multiply(multiply(x, 0.5), add(tanh(inner), 1))
    raise ValueError(f"[gelu] approximate is 'none' or 'tanh', got {approximate!r}.")


@composed
def silu(x: Array) -> Array:
    """Return x · sigmoid(x), also called swish."""
    return multiply(x, sigmoid(x))


@composed
def softplus(x: Array, beta: float = 1.0) -> Array:
    """Return log(1 + exp(beta·x)) / beta, without overflow."""
    scaled = x if beta == 1 else multiply(x, beta)
    result = add(maximum(scaled, 0), log1p(exp(negative(abs(scaled)))))
    return result if beta == 1 else divide(result, beta)


@composed
def log_sigmoid(x: Array) -> Array:
    """Return log(sigmoid(x)), without underflow."""
    return negative(softplus(negative(x)))


@composed
def mish(x: Array) -> Array:
    """Return x · tanh(softplus(x))."""
    return multiply(x, tanh(softplus(x)))


@composed
def hardtanh(x: Array, low: float = -1.0, high: float = 1.0) -> Array:
    """Limit x to [low, high].

    Unlike ``clip``, no gradient passes at the bounds or at NaN. Integers stay integers."""
    if low > high:
        raise ValueError(f"[hardtanh] the lower bound must not be above the upper one; got {low} and {high}.")
    if x.dtype.is_integer:
        low, high = int(low), int(high)
    else:
        x = where(isnan(x), math.nan, x)
    return where(less_equal(x, low), low, where(greater_equal(x, high), high, x))


@composed
def relu6(x: Array) -> Array:
    """Limit x to [0, 6]; no gradient passes at the bounds or at NaN."""
    if x.dtype.is_integer:
        return hardtanh(x, 0, 6)
    above = relu(where(isnan(x), math.nan, x))
    return where(greater_equal(above, 6), 6, above)


@composed
def hardsigmoid(x: Array) -> Array:
    """Return (x + 3) / 6 limited to [0, 1]."""
    return divide(relu6(add(x, 3)), 6)


@composed
def hardswish(x: Array) -> Array:
    """Return x · hardsigmoid(x)."""
    return multiply(x, hardsigmoid(x))


def shifted(x: Array, axis: int) -> Array:
    """Subtract the largest element along ``axis``, which does not change softmax and prevents overflow."""
    if 0 in x.shape:
        return x  # nothing can overflow, and there need not be a greatest element
    return subtract(x, stop_gradient(max(x, axis, keepdims=True)))


@composed
def softmax(x: Array, axis: int = -1, dtype: Dtype = None) -> Array:
    """Return exp(x) divided by its sum along ``axis``; computed in ``dtype`` if it is given."""
    if dtype is not None:
        x = cast(x, as_dtype(dtype))
    powers = exp(shifted(x, axis))
    return divide(powers, sum(powers, axis, keepdims=True))


@composed
def log_softmax(x: Array, axis: int = -1, dtype: Dtype = None) -> Array:
    """Return log(softmax(x)) along ``axis``, without cancellation; computed in ``dtype`` if it is given."""
    if dtype is not None:
        x = cast(x, as_dtype(dtype))
    below = shifted(x, axis)
    return subtract(below, log(sum(exp(below), axis, keepdims=True)))


@composed
def glu(x: Array, gate: Array) -> Array:
    """Return x · sigmoid(gate), the gated linear unit."""
    return multiply(x, sigmoid(gate))
