"""The dense layer, and layers that return or reshape their input."""

from __future__ import annotations

import math
from typing import Any

from runnel import ops
from runnel.nn import init
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.ops.arguments import Array
from runnel.tensor.creation import zeros


class Linear(Module):
    """Apply a linear transformation: x · weightᵀ + bias.

    ``weight`` has shape (out_features, in_features). Weight and bias start uniform in ±1/√in_features, as in PyTorch.

    Args:
        in_features: the size of the last axis of the input.
        out_features: the size of the last axis of the output.
        bias: whether to add a bias.
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        input ``(..., in_features)``; output ``(..., out_features)``.

    Example:
        >>> nn.Linear(20, 30)(rn.ones((128, 20))).shape
        (128, 30)
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

    def forward(self, x: Array) -> Any:
        return ops.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}" + ("" if self.bias is not None else ", bias=False")


class Identity(Module):
    """Return the input. The constructor accepts and ignores any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        return x


class Flatten(Module):
    """Merge the axes from ``start_dim`` to ``end_dim`` into one; by default all but the first.

    Args:
        start_dim: the first axis to merge.
        end_dim: the last axis to merge.

    Example:
        >>> nn.Flatten()(rn.ones((32, 3, 8, 8))).shape
        (32, 192)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, x: Any) -> Any:
        return ops.flatten(x, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"{self.start_dim}, {self.end_dim}"
