"""Pooling layers over one, two and three spatial axes, with PyTorch's names and defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from runnel.nn import functional
from runnel.nn.module import Module

Size = int | Sequence[int]


class _MaxPool(Module):
    """The greatest element of each window."""

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
    """The greatest element of each window of (N, C, L)."""

    function = staticmethod(functional.max_pool1d)


class MaxPool2d(_MaxPool):
    """The greatest element of each window of (N, C, H, W); the stride is the kernel's size if left out.

    The first of equal elements receives the gradient, as in PyTorch.
    """

    function = staticmethod(functional.max_pool2d)


class MaxPool3d(_MaxPool):
    """The greatest element of each window of (N, C, D, H, W)."""

    function = staticmethod(functional.max_pool3d)


class _AvgPool(Module):
    """The mean of each window."""

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
    """The mean of each window of (N, C, L)."""

    function = staticmethod(functional.avg_pool1d)


class AvgPool2d(_AvgPool):
    """The mean of each window of (N, C, H, W); with ``count_include_pad``, zeros of the padding count."""

    function = staticmethod(functional.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window of (N, C, D, H, W)."""

    function = staticmethod(functional.avg_pool3d)


class _Adaptive(Module):
    """As many windows as ``output_size`` says, of equal sizes where that divides."""

    function: ClassVar[Callable[..., Any]]

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        self.output_size = output_size

    def forward(self, x: Any) -> Any:
        return type(self).function(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """Means over ``output_size`` windows of (N, C, L)."""

    function = staticmethod(functional.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_Adaptive):
    """Means over ``output_size`` windows of (N, C, H, W); None stands for the size of the input."""

    function = staticmethod(functional.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_Adaptive):
    """Means over ``output_size`` windows of (N, C, D, H, W)."""

    function = staticmethod(functional.adaptive_avg_pool3d)


class _AdaptiveMax(_Adaptive):
    """With ``return_indices``, also where the elements are."""

    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, x: Any) -> Any:
        return type(self).function(x, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The greatest elements of ``output_size`` windows of (N, C, L)."""

    function = staticmethod(functional.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The greatest elements of ``output_size`` windows of (N, C, H, W); None stands for the size of the input."""

    function = staticmethod(functional.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The greatest elements of ``output_size`` windows of (N, C, D, H, W)."""

    function = staticmethod(functional.adaptive_max_pool3d)
