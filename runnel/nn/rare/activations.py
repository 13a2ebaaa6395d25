"""Less frequent activation functions, with PyTorch's values and derivatives at kinks."""

from __future__ import annotations

import math
from typing import Any

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array
from runnel.tensor import random
from runnel.tensor.tensor import Tensor


def celu(x: Array, alpha: float = 1.0) -> Tensor:
    """Return x where it is positive, and else alpha · (exp(x/alpha) - 1) (J. Barron, 2017)."""
    if alpha == 0:
        raise ZeroDivisionError("[celu] alpha divides x and cannot be 0.")
    is_below = ops.less_equal(x, 0)
    result: Tensor = ops.where(is_below, ops.expm1(ops.where(is_below, x, 0) / alpha) * alpha, x)
    return result


def hardshrink(x: Array, lambd: float = 0.5) -> Array:
    """Return 0 for x in [-lambd, lambd], and else x. NaN stays NaN and has no gradient."""
    is_large = ops.logical_or(ops.less(x, -lambd), ops.greater(x, lambd))
    result: Array = ops.where(is_large, x, ops.where(ops.isnan(x), math.nan, ops.zeros_like(x)))
    return result


def softshrink(x: Array, lambd: float = 0.5) -> Tensor:
    """Shrink x towards 0 by ``lambd``, which must be at least 0; values within ±lambd become 0."""
    if lambd < 0:
        raise ValueError(f"[softshrink] lambd is not negative; received {lambd}.")
    below = ops.where(ops.less(x, -lambd), x + lambd, x * 0)
    result: Tensor = ops.where(ops.greater(x, lambd), x - lambd, below)
    return result


def tanhshrink(x: Array) -> Tensor:
    """Compute x - tanh(x)."""
    result: Tensor = x - ops.tanh(x)
    return result


def softsign(x: Array) -> Tensor:
    """Compute x / (1 + |x|)."""
    result: Tensor = x / (ops.abs(x) + 1)
    return result


def threshold(x: Array, threshold: float, value: float) -> Tensor:
    """Return x where it is greater than ``threshold``, and else ``value``."""
    result: Tensor = ops.where(ops.less_equal(x, threshold), value, x)
    return result


def prelu(x: Array, weight: Array) -> Array:
    """Return x where it is positive, and else weight · x (K. He et al., 2015).

    ``weight`` has one element, or one for each channel of ``x`` (N, C, …).
    """
    if weight.ndim > 1:
        raise ShapeError(f"[prelu] the weight is a number or a vector; received shape {weight.shape}.")
    if weight.size != 1:
        channels = 1 if x.ndim > 1 else 0
        shape = tuple(-1 if axis == channels else 1 for axis in range(x.ndim))
        weight = ops.reshape(weight, shape)
    else:
        weight = ops.reshape(weight, (1,) * x.ndim)
    result: Array = ops.where(ops.greater(x, 0), x, x * weight)
    return result


def rrelu(x: Array, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """Return x where it is positive, and else x times a slope (B. Xu et al., 2015).

    In ``training`` a slope is drawn from [lower, upper) for each element; else it is their mean.
    """
    if lower > upper:
        raise ValueError(f"[rrelu] lower is at most upper; received {lower} and {upper}.")
    if not training:
        middle: Tensor = ops.leaky_relu(x, (lower + upper) / 2)
        return middle
    slopes = ops.uniform(random.next_key(None, x.device), x.shape, x.dtype, lower, upper)
    result: Tensor = ops.where(ops.greater(x, 0), x, x * slopes)
    return result


def softmin(x: Array, dim: int = -1, dtype: Any = None) -> Tensor:
    """Compute softmax(-x) along ``dim``, in ``dtype`` if it is given."""
    result: Tensor = ops.softmax(-x, dim, dtype)
    return result


def gumbel_softmax(logits: Array, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Compute softmax((logits + g)/tau) along ``dim``, with g from the Gumbel distribution (E. Jang et al., 2017).

    With ``hard``, the result is 1 at the largest element and 0 elsewhere, with the gradient of the soft values. ``eps``
    has no effect.
    """
    unit = ops.uniform(random.next_key(None, logits.device), logits.shape, logits.dtype)
    gumbels = -ops.log(-ops.log(ops.clip(unit, 1e-30)))
    soft: Tensor = ops.softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    first = ops.argmax(soft, dim, keepdims=True)
    chosen = ops.cast(ops.equal(ops.iota(soft, soft.shape, dim % soft.ndim), first), soft.dtype)
    return chosen - ops.stop_gradient(soft) + soft


# --- the updating forms -------------------------------------------------------------------------------------------


def celu_(x: Array, alpha: float = 1.0) -> Tensor:
    """Replace the values of ``x`` by ``celu(x)``."""
    return x.update("celu_", lambda value: celu(value, alpha))


def elu_(x: Array, alpha: float = 1.0) -> Tensor:
    """Replace the values of ``x`` by ``elu(x)``."""
    return x.update("elu_", lambda value: ops.elu(value, alpha))


def hardtanh_(x: Array, low: float = -1.0, high: float = 1.0) -> Tensor:
    """Replace the values of ``x`` by ``hardtanh(x)``."""
    return x.update("hardtanh_", lambda value: ops.hardtanh(value, low, high))


def leaky_relu_(x: Array, negative_slope: float = 0.01) -> Tensor:
    """Replace the values of ``x`` by ``leaky_relu(x)``."""
    return x.update("leaky_relu_", lambda value: ops.leaky_relu(value, negative_slope))


def relu_(x: Array) -> Tensor:
    """Replace the values of ``x`` by ``relu(x)``."""
    return x.update("relu_", ops.relu)


def rrelu_(x: Array, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """Replace the values of ``x`` by ``rrelu(x)``."""
    return x.update("rrelu_", lambda value: rrelu(value, lower, upper, training))


def selu_(x: Array) -> Tensor:
    """Replace the values of ``x`` by ``selu(x)``."""
    return x.update("selu_", ops.selu)


def threshold_(x: Array, threshold: float, value: float) -> Tensor:
    """Replace the values of ``x`` by ``threshold(x)``: ``value`` where it is not greater."""
    return x.update("threshold_", lambda x: ops.where(ops.less_equal(x, threshold), value, x))
