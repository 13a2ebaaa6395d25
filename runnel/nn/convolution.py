"""Convolution layers over one, two and three spatial axes, and their transposes, with PyTorch's names and defaults."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.nn import functional, init
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.ops.padding import MODES
from runnel.ops.spatial import padding_pairs, per_axis
from runnel.tensor.creation import zeros

Size = int | Sequence[int]


class Convolution(Module):
    """What all of them share: a weight and a bias, uniform in ±1/√(channels of a group · kernel elements)."""

    spatial: ClassVar[int] = 0
    function: ClassVar[Callable[..., Any]]
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size,
        padding: str | Size,
        dilation: Size,
        groups: int,
        bias: bool,
        padding_mode: str,
        dtype: Any,
        *,
        transposed: bool = False,
    ) -> None:
        name = type(self).__name__
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ShapeError(
                f"[{name}] in_channels={in_channels} and out_channels={out_channels} must both be multiples of "
                f"groups={groups}."
            )
        if padding_mode not in MODES:
            raise ValueError(f"[{name}] padding_mode is one of {', '.join(MODES)}; received {padding_mode!r}.")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = per_axis(name, "kernel_size", kernel_size, self.spatial)
        self.stride = per_axis(name, "stride", stride, self.spatial)
        self.dilation = per_axis(name, "dilation", dilation, self.spatial)
        self.padding = padding if isinstance(padding, str) else per_axis(name, "padding", padding, self.spatial)
        self.groups = groups
        self.padding_mode = padding_mode
        kind = parameter_dtype(dtype)
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self.weight = Parameter(zeros((first, second // groups, *self.kernel_size), kind))
        self.register_parameter("bias", Parameter(zeros((out_channels,), kind)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        fan_in = math.prod(self.weight.shape[1:])
        bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        entries = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        ones, nothing = (1,) * self.spatial, (0,) * self.spatial
        optional = {
            "padding": (self.padding, nothing),
            "dilation": (self.dilation, ones),
            "groups": (self.groups, 1),
            "bias": (self.bias is not None, True),
            "padding_mode": (self.padding_mode, "zeros"),
        }
        return ", ".join(entries + [f"{name}={value!r}" for name, (value, usual) in optional.items() if value != usual])


class _Forward(Convolution):
    """The convolutions."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: str | Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, dtype
        )

    def forward(self, x: Any) -> Any:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            name = type(self).__name__
            pairs = padding_pairs(name, padding, self.kernel_size, self.stride, self.dilation)
            x = ops.pad(x, ((0, 0),) * (x.ndim - self.spatial) + pairs, mode=self.padding_mode)
            padding = 0
        return type(self).function(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Forward):
    """A convolution of (N, in_channels, L) with a weight of shape (out_channels, in_channels / groups, kernel)."""

    spatial = 1
    function = staticmethod(functional.conv1d)


class Conv2d(_Forward):
    """A convolution of (N, in_channels, H, W) with a weight of shape (out_channels, in_channels / groups, *kernel).

    Weight and bias start uniform in ±1/√fan_in, as in PyTorch. ``padding`` may be "same" or "valid"; ``padding_mode``
    says what is around the input: zeros, reflect, replicate or circular.
    """

    spatial = 2
    function = staticmethod(functional.conv2d)


class Conv3d(_Forward):
    """A convolution of (N, in_channels, D, H, W) with a weight (out_channels, in_channels / groups, *kernel)."""

    spatial = 3
    function = staticmethod(functional.conv3d)


class _Transposed(Convolution):
    """The transposes: each maps what the convolution with the same arguments makes back to the shape it came from."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        dtype: Any = None,
    ) -> None:
        name = type(self).__name__
        if padding_mode != "zeros":
            raise ValueError(f"[{name}] only padding_mode='zeros' has a transpose; received {padding_mode!r}.")
        self.output_padding = per_axis(name, "output_padding", output_padding, self.spatial)
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, dtype,
            transposed=True,
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        arguments = (self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        return type(self).function(x, self.weight, self.bias, *arguments)


class ConvTranspose1d(_Transposed):
    """The transposed convolution of (N, in_channels, L); the weight is (in_channels, out_channels / groups, kernel)."""

    spatial = 1
    function = staticmethod(functional.conv_transpose1d)


class ConvTranspose2d(_Transposed):
    """The transposed convolution of (N, in_channels, H, W); weight (in_channels, out_channels / groups, *kernel)."""

    spatial = 2
    function = staticmethod(functional.conv_transpose2d)


class ConvTranspose3d(_Transposed):
    """The transposed convolution of (N, in_channels, D, H, W); weight (in_channels, out_channels / groups, *kernel)."""

    spatial = 3
    function = staticmethod(functional.conv_transpose3d)
