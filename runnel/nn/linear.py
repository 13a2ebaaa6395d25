"""The dense layer, and layers that only pass on or reshape."""

from __future__ import annotations

import math
from typing import Any

from runnel import ops
from runnel.nn import init
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.tensor.creation import zeros


class Linear(Module):
    """x · weightᵀ + bias, with a weight of shape (out_features, in_features).

    Weight and bias start uniform in ±1/√in_features, as in PyTorch.
    """

    bias: Parameter | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = None) -> None:
        kind = parameter_dtype(dtype)
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(zeros((out_features, in_features), kind))
        self.register_parameter("bias", Parameter(zeros((out_features,), kind)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Any) -> Any:
        return ops.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}" + ("" if self.bias is not None else ", bias=False")


class Identity(Module):
    """x itself; takes any arguments when made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        return x


class Flatten(Module):
    """The axes from ``start_dim`` to ``end_dim`` merged into one; by default all but the batch."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, x: Any) -> Any:
        return ops.flatten(x, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"{self.start_dim}, {self.end_dim}"
