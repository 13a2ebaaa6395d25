"""The activation functions beside the frequent ones as modules."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.nn import functional, init
from runnel.nn.activations import Plain, Softmax, Updating
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.nn.rare import activations
from runnel.tensor.creation import zeros


class CELU(Updating):
    """x where positive, else alpha · (exp(x/alpha) - 1). ``inplace`` is accepted and changes nothing."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, x: Any) -> Any:
        return activations.celu(x, self.alpha)

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
        return activations.hardshrink(x, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """x brought nearer to 0 by ``lambd``; 0 where |x| is less than that."""

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, x: Any) -> Any:
        return activations.softshrink(x, self.lambd)

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
        return activations.prelu(x, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.weight.size}"


class RReLU(Updating):
    """x where positive, else x times a slope, drawn from [lower, upper) for each element in training mode."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, x: Any) -> Any:
        return activations.rrelu(x, self.lower, self.upper, self.training)

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
        return activations.softmin(x, self.dim)


class Softsign(Plain):
    """x / (1 + |x|)."""

    def forward(self, x: Any) -> Any:
        return activations.softsign(x)


class Tanhshrink(Plain):
    """x - tanh(x)."""

    def forward(self, x: Any) -> Any:
        return activations.tanhshrink(x)


class Threshold(Updating):
    """x where it is greater than ``threshold``, else ``value``. ``inplace`` is accepted and changes nothing."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, x: Any) -> Any:
        return activations.threshold(x, self.threshold, self.value)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}"
