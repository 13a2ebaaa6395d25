"""Dense and bilinear layers, and layers that return or flatten their input."""

from __future__ import annotations

import math
from typing import Any

from runnel import ops
from runnel.core.dtypes import Dtype
from runnel.core.errors import ShapeError
from runnel.nn import init
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.ops.arguments import Array
from runnel.tensor.creation import zeros
from runnel.tensor.tensor import Tensor


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

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, dtype: Dtype = None) -> None:
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

    def forward(self, x: Array) -> Any:
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

    def forward(self, x: Array) -> Any:
        return ops.flatten(x, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"{self.start_dim}, {self.end_dim}"


def bilinear(input1: Array, input2: Array, weight: Array, bias: Array | None = None) -> Tensor:
    """Compute x1ᵀ · weight[k] · x2 + bias[k] for each k.

    Inputs are (…, in1) and (…, in2), the weight is (out, in1, in2), and the result (…, out).
    """
    if (
        weight.ndim != 3
        or input1.shape[:-1] != input2.shape[:-1]
        or (input1.shape[-1:], input2.shape[-1:]) != (weight.shape[1:2], weight.shape[2:])
    ):
        raise ShapeError(
            f"[bilinear] inputs and weight must have shapes (…, in1), (…, in2) and (out, in1, in2); got "
            f"{input1.shape}, {input2.shape} and {weight.shape}."
        )
    out, first, second = weight.shape
    rows = ops.reshape(ops.matmul(input1, ops.reshape(ops.moveaxis(weight, 0, 1), (first, out * second))),
                       (*input1.shape[:-1], out, second))  # fmt: skip
    products = ops.sum(rows * ops.expand_dims(input2, -2), -1)
    result: Tensor = products if bias is None else products + bias
    return result


def conv_tbc(x: Array, weight: Array, bias: Array, pad: int = 0) -> Tensor:
    """Convolve (T, N, in) with a weight (kernel, in, out) along the first axis; return (T', N, out)."""
    if x.ndim != 3 or weight.ndim != 3:
        raise ShapeError(
            f"[conv_tbc] x and weight must have shapes (T, N, in) and (kernel, in, out); got {x.shape} and "
            f"{weight.shape}."
        )
    channels_first = ops.conv(ops.permute(x, (1, 2, 0)), ops.permute(weight, (2, 1, 0)), bias, padding=pad)
    result: Tensor = ops.permute(channels_first, (2, 0, 1))
    return result


class Bilinear(Module):
    """Compute x1ᵀ · weight[k] · x2 + bias[k] for each output feature k.

    ``weight`` has shape (out_features, in1_features, in2_features). Weight and bias start uniform in ±1/√in1_features,
    as in PyTorch.

    Args:
        in1_features: the size of the last axis of the first input.
        in2_features: the size of the last axis of the second input.
        out_features: the size of the last axis of the output.
        bias: whether to add a bias.
        dtype: the dtype of the Parameters; float32 by default.
    """

    bias: Parameter | None

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, *, dtype: Dtype = None
    ) -> None:
        if in1_features < 1:
            raise ValueError(f"[Bilinear] in1_features must be positive; got {in1_features}.")
        kind = parameter_dtype(dtype)
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(zeros((out_features, in1_features, in2_features), kind))
        self.register_parameter("bias", Parameter(zeros((out_features,), kind)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Array, input2: Array) -> Any:
        return bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        text = f"{self.in1_features}, {self.in2_features}, {self.out_features}"
        return text + ("" if self.bias is not None else ", bias=False")
