"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.nn import functions
from runnel.nn.module import Module


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
