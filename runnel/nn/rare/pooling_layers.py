"""Pooling beside means and greatest elements as modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from runnel.nn.module import Module
from runnel.nn.rare import pooling
from runnel.tensor.variable import Variable

Size = int | Sequence[int]


class _LPPool(Module):
    """(Σ xᵖ)^(1/p) of each window."""

    function: ClassVar[Callable[..., Any]]

    def __init__(
        self, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
    ) -> None:
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, x: Any) -> Any:
        return type(self).function(x, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _MaxUnpool(Module):
    """What max pooling with indices undoes."""

    function: ClassVar[Callable[..., Any]]

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding

    def forward(self, x: Any, indices: Any, output_size: Any = None) -> Any:
        return type(self).function(x, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _FractionalMaxPool(Module):
    """The greatest elements of windows at random distances."""

    function: ClassVar[Callable[..., Any]]
    _random_samples: Variable | None

    def __init__(
        self,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"[{name}] needs either output_size or output_ratio.")
        ratios = [output_ratio] if isinstance(output_ratio, (int, float)) else list(output_ratio or ())
        if not all(0 < ratio < 1 for ratio in ratios):
            raise ValueError(f"[{name}] output_ratio lies between 0 and 1; received {output_ratio!r}.")
        self.kernel_size = kernel_size
        self.output_size = output_size
        self.output_ratio = output_ratio
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, x: Any) -> Any:
        arguments = (self.kernel_size, self.output_size, self.output_ratio, self.return_indices)
        return type(self).function(x, *arguments, self._random_samples)


class LPPool1d(_LPPool):
    """(Σ xᵖ)^(1/p) of each window of (N, C, L)."""

    function = staticmethod(pooling.lp_pool1d)


class LPPool2d(_LPPool):
    """(Σ xᵖ)^(1/p) of each window of (N, C, H, W)."""

    function = staticmethod(pooling.lp_pool2d)


class LPPool3d(_LPPool):
    """(Σ xᵖ)^(1/p) of each window of (N, C, D, H, W)."""

    function = staticmethod(pooling.lp_pool3d)


class MaxUnpool1d(_MaxUnpool):
    """Elements of (N, C, L) back at the places that ``MaxPool1d`` with ``return_indices`` took them from, and
    zeros elsewhere."""

    function = staticmethod(pooling.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Elements of (N, C, H, W) back at the places that ``MaxPool2d`` with ``return_indices`` took them from, and
    zeros elsewhere."""

    function = staticmethod(pooling.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Elements of (N, C, D, H, W) back at the places that ``MaxPool3d`` with ``return_indices`` took them from, and
    zeros elsewhere."""

    function = staticmethod(pooling.max_unpool3d)


class FractionalMaxPool2d(_FractionalMaxPool):
    """The greatest elements of windows of (N, C, H, W) at random distances (B. Graham, 2014)."""

    function = staticmethod(pooling.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """The greatest elements of windows of (N, C, D, H, W) at random distances (B. Graham, 2014)."""

    function = staticmethod(pooling.fractional_max_pool3d)
