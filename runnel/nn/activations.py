"""Activations that few programs call, with PyTorch's values and derivatives at kinks, and all activation layers."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from runnel import ops
from runnel.core.dtypes import Dtype
from runnel.core.errors import ShapeError
from runnel.core.public import in_place, public
from runnel.nn import functions, init
from runnel.nn.layer import Layer, layer
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.ops.arguments import Array
from runnel.tensor import random
from runnel.tensor.creation import zeros
from runnel.tensor.tensor import Tensor


def celu(x: Array, alpha: float = 1.0) -> Tensor:
    """Return x where it is positive, and else alpha · (exp(x/alpha) - 1) (J. Barron, 2017)."""
    if alpha == 0:
        raise ZeroDivisionError("[celu] alpha must not be 0, since x is divided by it.")
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
        raise ValueError(f"[softshrink] lambd must not be negative; got {lambd}.")
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
        raise ShapeError(f"[prelu] weight must be a number or a vector; got shape {weight.shape}.")
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

    In training mode, a slope is drawn from [lower, upper) for each element; otherwise it is their mean.
    """
    if lower > upper:
        raise ValueError(f"[rrelu] lower must be at most upper; got {lower} and {upper}.")
    if not training:
        middle: Tensor = ops.leaky_relu(x, (lower + upper) / 2)
        return middle
    slopes = ops.uniform(random.next_key(None, x.device), x.shape, x.dtype, lower, upper)
    result: Tensor = ops.where(ops.greater(x, 0), x, x * slopes)
    return result


def softmin(x: Array, dim: int = -1, dtype: Dtype = None) -> Tensor:
    """Compute softmax(-x) along ``dim``, in ``dtype`` if it is given."""
    result: Tensor = ops.softmax(-x, dim, dtype)
    return result


def softmax2d(x: Array) -> Tensor:
    """Compute softmax over the channels of (N, C, H, W) or (C, H, W)."""
    if x.ndim not in (3, 4):
        raise ShapeError(f"[Softmax2d] x must have axes (N, C, H, W) or (C, H, W); got shape {x.shape}.")
    result: Tensor = ops.softmax(x, -3)
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


# In place -------------------------------------------------------------------------------------------------------------


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the form of ``function`` that replaces the values of its argument."""
    name, checked = f"{function.__name__}_", public(function)

    def update(x: Array, *args: Any, **kwargs: Any) -> Tensor:
        return x.update(name, lambda value: checked(value, *args, **kwargs))

    update.__name__ = update.__qualname__ = name
    update.__doc__ = f"Replace the values of ``x`` by ``{function.__name__}(x)``."
    update.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return update


relu_, elu_, selu_, celu_ = _in_place(ops.relu), _in_place(ops.elu), _in_place(ops.selu), _in_place(celu)
hardtanh_, leaky_relu_ = _in_place(ops.hardtanh), _in_place(ops.leaky_relu)
rrelu_, threshold_ = _in_place(rrelu), _in_place(threshold)


# Layers ---------------------------------------------------------------------------------------------------------------

_SOFTMAX = """
Example:
    >>> nn.Softmax()(rn.zeros(4))
    Tensor([0.25, 0.25, 0.25, 0.25], dtype=float32)
"""

ReLU = layer("ReLU", ops.relu, "inplace=False")
LeakyReLU = layer("LeakyReLU", ops.leaky_relu, "negative_slope, inplace=False")
RReLU = layer("RReLU", rrelu, "lower, upper, inplace=False")
ELU = layer("ELU", ops.elu, "alpha, inplace=False")
CELU = layer("CELU", celu, "alpha, inplace=False")
SELU = layer("SELU", ops.selu, "inplace=False")
GELU = layer("GELU", ops.gelu)
SiLU = layer("SiLU", ops.silu, "inplace=False")
Mish = layer("Mish", ops.mish, "inplace=False")
GLU = layer("GLU", functions.glu)
Sigmoid = layer("Sigmoid", ops.sigmoid)
LogSigmoid = layer("LogSigmoid", ops.log_sigmoid)
Hardsigmoid = layer("Hardsigmoid", ops.hardsigmoid, "inplace=False")
Hardswish = layer("Hardswish", ops.hardswish, "inplace=False")
Tanh = layer("Tanh", ops.tanh)
Softplus = layer("Softplus", functions.softplus)
Softsign = layer("Softsign", softsign)
Softmax = layer("Softmax", functions.softmax, "dim", doc=_SOFTMAX)
Softmax2d = layer("Softmax2d", softmax2d)
LogSoftmax = layer("LogSoftmax", functions.log_softmax, "dim")
Softmin = layer("Softmin", softmin, "dim")
Hardshrink = layer("Hardshrink", hardshrink)
Softshrink = layer("Softshrink", softshrink)
Tanhshrink = layer("Tanhshrink", tanhshrink)
Threshold = layer("Threshold", threshold, "threshold, value, inplace=False")


class Hardtanh(Layer):
    """Clamp x to [min_val, max_val]; no gradient passes at the bounds.

    With ``inplace`` the input gets the values of the result.
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        if min_val > max_val:
            raise ValueError(f"[Hardtanh] min_val must be at most max_val; got {min_val} and {max_val}.")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, x: Array) -> Any:
        if self.inplace:
            return in_place("Hardtanh", ops.hardtanh, x, self.min_val, self.max_val)
        return ops.hardtanh(x, self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


class ReLU6(Hardtanh):
    """Clamp x to [0, 6]; no gradient passes at the bounds. With ``inplace`` the input gets the result's values."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return ""


class PReLU(Module):
    """Return x where it is positive, and else weight · x, with trained weights (K. He et al., 2015).

    Args:
        num_parameters: 1, or the number of channels of the input ``(N, C, ...)`` for a weight for each.
        init: the initial value of the weights.
        dtype: the dtype of the Parameters; float32 by default.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, dtype: Dtype = None) -> None:
        self.init = init
        self.weight = Parameter(zeros((num_parameters,), parameter_dtype(dtype)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all weights to their initial value."""
        init.constant_(self.weight, self.init)

    def forward(self, x: Array) -> Any:
        return prelu(x, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.weight.size}"
