"""Activation functions as modules."""

from __future__ import annotations

import math
from typing import Any

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.nn import functional, functions, init
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.ops.arguments import Array
from runnel.tensor import random
from runnel.tensor.creation import zeros
from runnel.tensor.tensor import Tensor


class Plain(Module):
    """An activation without options."""

    def __init__(self) -> None:
        super().__init__()


class Updating(Module):
    """The base of activations with ``inplace``, which has no effect: tensors are values, and the compiler decides what
    is computed in place."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


class ReLU(Updating):
    """Compute max(x, 0). ``inplace`` has no effect."""

    def forward(self, x: Any) -> Any:
        return ops.relu(x)


class SiLU(Updating):
    """Compute x · sigmoid(x). ``inplace`` has no effect."""

    def forward(self, x: Any) -> Any:
        return ops.silu(x)


class Tanh(Plain):
    """Compute tanh(x)."""

    def forward(self, x: Any) -> Any:
        return ops.tanh(x)


class Sigmoid(Plain):
    """Compute 1 / (1 + exp(-x))."""

    def forward(self, x: Any) -> Any:
        return ops.sigmoid(x)


class GELU(Module):
    """Compute x · Φ(x), with Φ the cumulative distribution function of the normal distribution.

    Args:
        approximate: "none", or "tanh" for the approximation x · (1 + tanh(√(2/π)·(x + 0.044715·x³)))/2.
    """

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Any) -> Any:
        return ops.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        return "" if self.approximate == "none" else f"approximate={self.approximate!r}"


class Softmax(Module):
    """Compute exp(x) divided by its sum along ``dim``, so that the sums are 1.

    Example:
        >>> nn.Softmax()(rn.zeros(4))
        Tensor([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Any) -> Any:
        return ops.softmax(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """Compute log(softmax(x)) along ``dim``."""

    def forward(self, x: Any) -> Any:
        return ops.log_softmax(x, self.dim)


class LeakyReLU(Updating):
    """Return x where it is positive, and else negative_slope · x. ``inplace`` has no effect."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, x: Any) -> Any:
        return ops.leaky_relu(x, self.negative_slope)

    def extra_repr(self) -> str:
        return f"{self.negative_slope}"


class ELU(Updating):
    """Return x where it is positive, and else alpha · (exp(x) - 1). ``inplace`` has no effect."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, x: Any) -> Any:
        return ops.elu(x, self.alpha)

    def extra_repr(self) -> str:
        return f"{self.alpha}"


class Softplus(Module):
    """Compute log(1 + exp(beta·x)) / beta, or x where beta·x is greater than ``threshold``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta = beta
        self.threshold = threshold

    def forward(self, x: Any) -> Any:
        return functions.softplus(x, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


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


class CELU(Updating):
    """x where positive, else alpha · (exp(x/alpha) - 1). ``inplace`` is accepted and changes nothing."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, x: Any) -> Any:
        return celu(x, self.alpha)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"


class GLU(Module):
    """The first half of x along ``dim`` times the sigmoid of the second."""

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Any) -> Any:
        return functional.glu(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Hardshrink(Module):
    """0 within [-lambd, lambd], else x."""

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, x: Any) -> Any:
        return hardshrink(x, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """x brought nearer to 0 by ``lambd``; 0 where |x| is less than that."""

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, x: Any) -> Any:
        return softshrink(x, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Hardsigmoid(Updating):
    """(x + 3) / 6 kept within [0, 1]. ``inplace`` is accepted and changes nothing."""

    def forward(self, x: Any) -> Any:
        return ops.hardsigmoid(x)


class Hardswish(Updating):
    """x · hardsigmoid(x). ``inplace`` is accepted and changes nothing."""

    def forward(self, x: Any) -> Any:
        return ops.hardswish(x)


class Hardtanh(Updating):
    """x kept within [min_val, max_val]; no gradient passes at the bounds."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        if min_val > max_val:
            raise ValueError(f"[Hardtanh] min_val is at most max_val; received {min_val} and {max_val}.")
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, x: Any) -> Any:
        return ops.hardtanh(x, self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


class ReLU6(Hardtanh):
    """x kept within [0, 6]. ``inplace`` is accepted and changes nothing."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class LogSigmoid(Plain):
    """log(sigmoid(x))."""

    def forward(self, x: Any) -> Any:
        return ops.log_sigmoid(x)


class Mish(Updating):
    """x · tanh(softplus(x)). ``inplace`` is accepted and changes nothing."""

    def forward(self, x: Any) -> Any:
        return ops.mish(x)


class PReLU(Module):
    """x where positive, else weight · x: one weight, or one for each channel (K. He et al., 2015)."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = None) -> None:
        self.init = init
        self.weight = Parameter(zeros((num_parameters,), parameter_dtype(dtype)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All weights as they began."""
        init.constant_(self.weight, self.init)

    def forward(self, x: Any) -> Any:
        return prelu(x, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.weight.size}"


class RReLU(Updating):
    """x where positive, else x times a slope, drawn from [lower, upper) for each element in training mode."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, x: Any) -> Any:
        return rrelu(x, self.lower, self.upper, self.training)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}"


class SELU(Updating):
    """elu scaled so that activations keep mean 0 and variance 1. ``inplace`` is accepted and changes nothing."""

    def forward(self, x: Any) -> Any:
        return ops.selu(x)


class Softmax2d(Plain):
    """softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, x: Any) -> Any:
        if x.ndim not in (3, 4):
            raise ShapeError(f"[Softmax2d] an input has axes (N, C, H, W) or (C, H, W); received shape {x.shape}.")
        return ops.softmax(x, -3)


class Softmin(Softmax):
    """softmax(-x) along ``dim``."""

    def forward(self, x: Any) -> Any:
        return softmin(x, self.dim)


class Softsign(Plain):
    """x / (1 + |x|)."""

    def forward(self, x: Any) -> Any:
        return softsign(x)


class Tanhshrink(Plain):
    """x - tanh(x)."""

    def forward(self, x: Any) -> Any:
        return tanhshrink(x)


class Threshold(Updating):
    """x where it is greater than ``threshold``, else ``value``. ``inplace`` is accepted and changes nothing."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, x: Any) -> Any:
        return threshold(x, self.threshold, self.value)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}"
