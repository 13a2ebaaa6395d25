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
    """An activation that PyTorch also offers in an updating form: ``inplace`` changes nothing here, since tensors are
    values and the compiler decides what is computed in place."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


class ReLU(Updating):
    """max(x, 0). ``inplace`` is accepted and changes nothing."""

    def forward(self, x: Any) -> Any:
        return ops.relu(x)


class SiLU(Updating):
    """x · sigmoid(x). ``inplace`` is accepted and changes nothing."""

    def forward(self, x: Any) -> Any:
        return ops.silu(x)


class Tanh(Plain):
    """tanh(x)."""

    def forward(self, x: Any) -> Any:
        return ops.tanh(x)


class Sigmoid(Plain):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Any) -> Any:
        return ops.sigmoid(x)


class GELU(Module):
    """x · Φ(x), or its tanh form."""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Any) -> Any:
        return ops.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        return "" if self.approximate == "none" else f"approximate={self.approximate!r}"


class Softmax(Module):
    """exp(x) along ``dim``, divided by its sum."""

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Any) -> Any:
        return ops.softmax(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """log(softmax(x)) along ``dim``."""

    def forward(self, x: Any) -> Any:
        return ops.log_softmax(x, self.dim)


class LeakyReLU(Updating):
    """x where positive, else negative_slope · x. ``inplace`` is accepted and changes nothing."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, x: Any) -> Any:
        return ops.leaky_relu(x, self.negative_slope)

    def extra_repr(self) -> str:
        return f"{self.negative_slope}"


class ELU(Updating):
    """x where positive, else alpha · (exp(x) - 1). ``inplace`` is accepted and changes nothing."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, x: Any) -> Any:
        return ops.elu(x, self.alpha)

    def extra_repr(self) -> str:
        return f"{self.alpha}"


class Softplus(Module):
    """log(1 + exp(beta·x)) / beta; x itself where beta·x is greater than ``threshold``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta = beta
        self.threshold = threshold

    def forward(self, x: Any) -> Any:
        return functions.softplus(x, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"
