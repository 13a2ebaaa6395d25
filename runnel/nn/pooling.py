"""Pooling layers over one, two and three spatial axes, with PyTorch's names and defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from runnel.nn import functional
from runnel.nn.module import Module

Size = int | Sequence[int]


class _MaxPool(Module):
    """The base of maximum pooling."""

    function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, x: Any) -> Any:
        arguments = (self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)
        return type(self).function(x, *arguments, self.return_indices)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """Return the maximum of each window of sequences, (N, C, L) → (N, C, L_out).

    It takes the arguments of :class:`MaxPool2d`, with one number instead of two.
    """

    function = staticmethod(functional.max_pool1d)


class MaxPool2d(_MaxPool):
    """Return the maximum of each window of images. The first of equal elements receives the gradient, as in PyTorch.

    Args:
        kernel_size: the size of the window, an int or ``(height, width)``.
        stride: the step of the window; by default ``kernel_size``.
        padding: how many elements, which are never the maximum, to add on each side.
        dilation: the distance of window elements.
        return_indices: also return where the maxima are, as indices into the flattened spatial axes.
        ceil_mode: also use windows at the end that are only partly inside the input.

    Shape:
        input ``(N, C, H, W)``; output ``(N, C, H_out, W_out)``.

    Example:
        >>> nn.MaxPool2d(2)(rn.ones((8, 16, 32, 32))).shape
        (8, 16, 16, 16)
    """

    function = staticmethod(functional.max_pool2d)


class MaxPool3d(_MaxPool):
    """Return the maximum of each window of volumes, (N, C, D, H, W) → (N, C, D_out, H_out, W_out).

    It takes the arguments of :class:`MaxPool2d`, with three numbers instead of two.
    """

    function = staticmethod(functional.max_pool3d)


class _AvgPool(Module):
    """The base of average pooling."""

    function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, x: Any) -> Any:
        arguments = (self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)
        return type(self).function(x, *arguments, self.divisor_override)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """Return the mean of each window of sequences, (N, C, L) → (N, C, L_out).

    It takes the arguments of :class:`AvgPool2d`, with one number instead of two.
    """

    function = staticmethod(functional.avg_pool1d)


class AvgPool2d(_AvgPool):
    """Return the mean of each window of images.

    Args:
        kernel_size: the size of the window, an int or ``(height, width)``.
        stride: the step of the window; by default ``kernel_size``.
        padding: how many zeros to add on each side.
        ceil_mode: also use windows at the end that are only partly inside the input.
        count_include_pad: divide by the number of elements including the padding.
        divisor_override: divide by this number instead.

    Shape:
        input ``(N, C, H, W)``; output ``(N, C, H_out, W_out)``.

    Example:
        >>> nn.AvgPool2d(2)(rn.ones((8, 16, 32, 32))).shape
        (8, 16, 16, 16)
    """

    function = staticmethod(functional.avg_pool2d)


class AvgPool3d(_AvgPool):
    """Return the mean of each window of volumes, (N, C, D, H, W) → (N, C, D_out, H_out, W_out).

    It takes the arguments of :class:`AvgPool2d`, with three numbers instead of two.
    """

    function = staticmethod(functional.avg_pool3d)


class _Adaptive(Module):
    """The base of adaptive pooling: ``output_size`` windows, which cover the input and are about equally long.

    Args:
        output_size: the number of windows along each axis; None is the size of the input.
    """

    function: ClassVar[Callable[..., Any]]

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        self.output_size = output_size

    def forward(self, x: Any) -> Any:
        return type(self).function(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """Return the means of ``output_size`` windows of sequences, (N, C, L) → (N, C, output_size)."""

    function = staticmethod(functional.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_Adaptive):
    """Return the means of ``output_size`` windows of images, which cover the image and are about equally large.

    Args:
        output_size: an int or ``(height, width)``; None is the size of the input.

    Shape:
        input ``(N, C, H, W)``; output ``(N, C, *output_size)``.

    Example:
        >>> nn.AdaptiveAvgPool2d(1)(rn.ones((8, 512, 7, 7))).shape
        (8, 512, 1, 1)
    """

    function = staticmethod(functional.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_Adaptive):
    """Return the means of ``output_size`` windows of volumes, (N, C, D, H, W) → (N, C, *output_size)."""

    function = staticmethod(functional.adaptive_avg_pool3d)


class _AdaptiveMax(_Adaptive):
    """The base of adaptive maximum pooling.

    Args:
        output_size: the number of windows along each axis; None is the size of the input.
        return_indices: also return where the maxima are, as indices into the flattened spatial axes.
    """

    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, x: Any) -> Any:
        return type(self).function(x, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """Return the maxima of ``output_size`` windows of sequences, (N, C, L) → (N, C, output_size)."""

    function = staticmethod(functional.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """Return the maxima of ``output_size`` windows of images, (N, C, H, W) → (N, C, *output_size)."""

    function = staticmethod(functional.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMax):
    """Return the maxima of ``output_size`` windows of volumes, (N, C, D, H, W) → (N, C, *output_size)."""

    function = staticmethod(functional.adaptive_max_pool3d)
