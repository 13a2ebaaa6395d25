"""Convolution layers over one, two and three spatial axes, and their transposes, with PyTorch's names and defaults."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from runnel import ops
from runnel.core.dtypes import Dtype
from runnel.core.errors import ShapeError
from runnel.nn import functional, init
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.nn.windows import Size
from runnel.ops.arguments import Array
from runnel.ops.convolution.windows import padding_pairs, per_axis
from runnel.ops.shapes.padding import MODES
from runnel.tensor.creation import zeros


class Convolution(Module):
    """The base of all convolution layers: weight and bias, uniform in ±1/√(channels of a group · kernel elements)."""

    spatial: ClassVar[int] = 0
    transposed: ClassVar[bool] = False
    function: ClassVar[Callable[..., Any]]
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: str | Size | Sequence[tuple[int, int]] = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        dtype: Dtype = None,
    ) -> None:
        name = type(self).__name__
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ShapeError(
                f"[{name}] in_channels={in_channels} and out_channels={out_channels} must both be multiples of "
                f"groups={groups}."
            )
        if padding_mode not in MODES:
            raise ValueError(f"[{name}] padding_mode must be one of {', '.join(MODES)}; got {padding_mode!r}.")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = per_axis(name, "kernel_size", kernel_size, self.spatial)
        self.stride = per_axis(name, "stride", stride, self.spatial)
        self.dilation = per_axis(name, "dilation", dilation, self.spatial)
        amounts: Any = padding
        self.padding = padding if isinstance(padding, str) else per_axis(name, "padding", amounts, self.spatial)
        self.groups = groups
        self.padding_mode = padding_mode
        kind = parameter_dtype(dtype)
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
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

    def forward(self, x: Array) -> Any:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            name = type(self).__name__
            pairs = padding_pairs(name, padding, self.kernel_size, self.stride, self.dilation)
            x = ops.pad(x, ((0, 0),) * (x.ndim - self.spatial) + pairs, mode=self.padding_mode)
            padding = 0
        return type(self).function(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

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


class Conv1d(Convolution):
    """Apply a 1-D convolution to a batch of sequences.

    ``weight`` has shape (out_channels, in_channels / groups, kernel_size). It takes the arguments of :class:`Conv2d`,
    with one number instead of two.

    Shape:
        input ``(N, in_channels, L)``; output ``(N, out_channels, L_out)``.

    Example:
        >>> nn.Conv1d(16, 32, 3, padding=1)(rn.ones((8, 16, 50))).shape
        (8, 32, 50)
    """

    spatial = 1
    function = staticmethod(functional.conv1d)


class Conv2d(Convolution):
    """Apply a 2-D convolution to a batch of images.

    ``weight`` has shape (out_channels, in_channels / groups, *kernel_size). Weight and bias start uniform in
    ±1/√fan_in, as in PyTorch.

    Args:
        in_channels: number of input channels.
        out_channels: number of output channels.
        kernel_size: an int or ``(height, width)``; so may be stride, padding and dilation.
        stride: the step of the kernel.
        padding: how many elements to add on each side, "same" for an output of the input's size, or "valid" for none.
        dilation: the distance of kernel elements in the input.
        groups: number of groups of channels that are convolved separately; divides both numbers of channels.
        bias: whether to add a bias.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        input ``(N, in_channels, H, W)``; output ``(N, out_channels, H_out, W_out)``.

    Example:
        >>> nn.Conv2d(3, 16, 3, padding=1)(rn.ones((8, 3, 32, 32))).shape
        (8, 16, 32, 32)
    """

    spatial = 2
    function = staticmethod(functional.conv2d)


class Conv3d(Convolution):
    """Apply a 3-D convolution to a batch of volumes.

    ``weight`` has shape (out_channels, in_channels / groups, *kernel_size). It takes the arguments of :class:`Conv2d`,
    with three numbers instead of two.

    Shape:
        input ``(N, in_channels, D, H, W)``; output ``(N, out_channels, D_out, H_out, W_out)``.
    """

    spatial = 3
    function = staticmethod(functional.conv3d)


class _Transposed(Convolution):
    """The base of the transposed convolutions, which map the output shape of a convolution to its input shape."""

    transposed = True

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
        *,
        dtype: Dtype = None,
    ) -> None:
        name = type(self).__name__
        if padding_mode != "zeros":
            raise ValueError(f"[{name}] padding_mode must be 'zeros'; got {padding_mode!r}.")
        self.output_padding = per_axis(name, "output_padding", output_padding, self.spatial)
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            dtype=dtype,
        )

    def forward(self, x: Array) -> Any:
        arguments = (self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        return type(self).function(x, self.weight, self.bias, *arguments)


class ConvTranspose1d(_Transposed):
    """Apply a 1-D transposed convolution to a batch of sequences.

    ``weight`` has shape (in_channels, out_channels / groups, kernel_size). It takes the arguments of
    :class:`ConvTranspose2d`, with one number instead of two.

    Shape:
        input ``(N, in_channels, L)``; output ``(N, out_channels, L_out)``.
    """

    spatial = 1
    function = staticmethod(functional.conv_transpose1d)


class ConvTranspose2d(_Transposed):
    """Apply a 2-D transposed convolution to a batch of images.

    ``weight`` has shape (in_channels, out_channels / groups, *kernel_size).

    Args:
        in_channels: number of input channels.
        out_channels: number of output channels.
        kernel_size: an int or ``(height, width)``; so may be stride, padding, output_padding and dilation.
        stride: the step of the kernel in the output.
        padding: how many elements to remove on each side of the output.
        output_padding: how many elements to add at the end of the output, less than the stride or the dilation.
        groups: number of groups of channels that are convolved separately; divides both numbers of channels.
        bias: whether to add a bias.
        dilation: the distance of kernel elements in the output.
        padding_mode: must be "zeros".
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        input ``(N, in_channels, H, W)``; output ``(N, out_channels, H_out, W_out)``.

    Example:
        >>> nn.ConvTranspose2d(16, 3, 2, stride=2)(rn.ones((8, 16, 16, 16))).shape
        (8, 3, 32, 32)
    """

    spatial = 2
    function = staticmethod(functional.conv_transpose2d)


class ConvTranspose3d(_Transposed):
    """Apply a 3-D transposed convolution to a batch of volumes.

    ``weight`` has shape (in_channels, out_channels / groups, *kernel_size). It takes the arguments of
    :class:`ConvTranspose2d`, with three numbers instead of two.

    Shape:
        input ``(N, in_channels, D, H, W)``; output ``(N, out_channels, D_out, H_out, W_out)``.
    """

    spatial = 3
    function = staticmethod(functional.conv_transpose3d)
