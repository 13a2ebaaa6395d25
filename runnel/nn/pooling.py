"""Pooling layers over one, two and three spatial axes, with PyTorch's names and defaults."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from runnel import ops
from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError
from runnel.nn import functional, windows as window_indices
from runnel.nn.module import Module
from runnel.nn.windows import over_axes
from runnel.ops.arguments import Array
from runnel.ops.indexing import labels_below
from runnel.ops.spatial import per_axis
from runnel.tensor import random
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

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


def _lp_pool(
    x: Array, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """(Σ xᵖ)^(1/p) of each window of ``x`` (N, C, *sizes), for p = ``norm_type``; 0 where the sum is not positive."""
    if norm_type == 0:
        raise ValueError("[lp_pool] norm_type is not 0.")
    taps = math.prod(per_axis("lp_pool", "kernel_size", kernel_size, x.ndim - 2))
    means = ops.avg_pool(ops.pow(x, norm_type), kernel_size, stride, 0, ceil_mode)
    total = ops.relu(means) * taps
    is_zero = ops.equal(total, 0)
    result: Tensor = ops.where(is_zero, 0, ops.pow(ops.where(is_zero, 1, total), 1 / norm_type))
    return result


def _max_pool_with_indices(
    x: Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The greatest element of each window of ``x`` (N, C, *sizes), and where it is in the spatial axes."""
    values, places = window_indices.max_pool(x, kernel_size, stride, padding, dilation, ceil_mode, True)
    return values, places


def _adaptive_max_pool_with_indices(
    x: Array, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """The greatest elements of as many windows as ``output_size`` says, and where they are in the spatial axes."""
    values, places = window_indices.adaptive_max_pool(x, output_size, True)
    return values, places


def _max_unpool(
    x: Array,
    indices: Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """What ``max_pool`` with indices undoes, with zeros elsewhere: ``x`` (N, C, *sizes) at the places ``indices`` of an
    output of ``output_size``, by default the least size that pools to this one."""
    spatial = x.ndim - 2
    kernel = per_axis("max_unpool", "kernel_size", kernel_size, spatial)
    steps = per_axis("max_unpool", "stride", kernel if stride is None else stride, spatial)
    around = per_axis("max_unpool", "padding", padding, spatial)
    least = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[2:], steps, around, kernel, strict=True)]
    out_size = least if output_size is None else list(output_size)[-spatial:]
    if len(out_size) != spatial or any(abs(n - m) >= s for n, m, s in zip(out_size, least, steps, strict=True)):
        raise ShapeError(
            f"[max_unpool] the output has {spatial} spatial axes of less than a stride {steps} around {tuple(least)}; "
            f"received output_size={output_size!r}."
        )
    if indices.shape != x.shape or not indices.dtype.is_integer:
        raise ShapeError(
            f"[max_unpool] an input of shape {x.shape} needs as many integer indices; received {indices.dtype.name} of "
            f"shape {indices.shape}."
        )
    channels, size = math.prod(x.shape[:2]), math.prod(out_size)
    rows = labels_below(ops.reshape(ops.cast(indices, int64), (channels, -1)), size)
    place = ops.reshape(rows + ops.iota(rows, (channels, 1), 0) * size, (-1,))
    filled = ops.put(ops.full_like(x, 0, (channels * size,)), place, ops.reshape(x, (-1,)))
    result: Tensor = ops.reshape(filled, (*x.shape[:2], *out_size))
    return result


def _fractional_max_pool(
    x: Array,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Array | None = None,
) -> Any:
    """The greatest element of each of ``output_size`` windows (or ``output_ratio`` times those of ``x``) that lie at
    random distances, drawn for each channel of ``x`` (N, C, *sizes) (B. Graham, 2014); with ``return_indices`` also
    where they are. ``_random_samples`` (N, C, spatial axes) are numbers in [0, 1) to be used instead of new ones."""
    spatial = x.ndim - 2
    kernel = per_axis("fractional_max_pool", "kernel_size", kernel_size, spatial)
    if (output_size is None) == (output_ratio is None):
        raise ValueError("[fractional_max_pool] needs either output_size or output_ratio.")
    if output_size is not None:
        out_size = per_axis("fractional_max_pool", "output_size", output_size, spatial)
    else:
        ratios = (output_ratio,) * spatial if isinstance(output_ratio, (int, float)) else tuple(output_ratio)
        out_size = tuple(int(n * r) for n, r in zip(x.shape[2:], ratios, strict=True))
    if any(m < 1 or m + k - 1 > n for n, m, k in zip(x.shape[2:], out_size, kernel, strict=True)):
        raise ShapeError(
            f"[fractional_max_pool] {out_size} windows of {kernel} do not fit an input of shape {x.shape}."
        )
    if _random_samples is None:
        _random_samples = ops.uniform(random.next_key(None, x.device), (*x.shape[:2], spatial), x.dtype)
    flat = ops.iota(x, (1, 1, 1, 1), 0)  # (N, C, taps, windows), axis by axis
    # PyTorch's samples are those of the last axis first in two dimensions, and of the first one first in three.
    for i, (n, m, k) in enumerate(zip(x.shape[2:], out_size, kernel, strict=True)):
        sample = ops.getitem(_random_samples, (..., spatial - 1 - i if spatial == 2 else i, None))
        starts = _starts(sample, n, m, k)
        along = ops.expand_dims(starts, 2) + ops.iota(starts, (1, 1, k, 1), 2)
        flat = ops.expand_dims(flat, (3, 5)) * n + ops.expand_dims(along, (2, 4))
        flat = ops.reshape(flat, (*flat.shape[:2], flat.shape[2] * k, -1))
    taps, windows = flat.shape[2:]
    flat = ops.broadcast_to(flat, (*x.shape[:2], taps, windows))
    rows = ops.reshape(x, (*x.shape[:2], -1))
    patches = ops.take_along_axis(ops.stop_gradient(rows), ops.reshape(flat, (*x.shape[:2], -1)), 2)
    first = ops.argmax(ops.reshape(patches, flat.shape), 2, keepdims=True)
    place = ops.squeeze(ops.take_along_axis(flat, first, 2), 2)
    values = ops.reshape(ops.take_along_axis(rows, place, 2), (*x.shape[:2], *out_size))
    return (values, ops.reshape(place, values.shape)) if return_indices else values


def _starts(sample: Array, n: int, count: int, taps: int) -> Array:
    """Where ``count`` windows begin: (N, C, windows). The last one ends with the axis."""
    if count == 1:
        return ops.iota(sample, (1, 1, 1), 0) + (n - taps)
    step = (n - taps) / (count - 1)
    number = ops.iota(sample, (1, 1, count), 2)
    inner = ops.cast(ops.floor((ops.cast(number, sample.dtype) + sample) * step), int64)
    begun = inner - ops.cast(ops.floor(sample * step), int64)
    return ops.where(ops.equal(number, count - 1), n - taps, begun)


lp_pool1d, lp_pool2d, lp_pool3d = over_axes(_lp_pool, "lp_pool{}")
max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = over_axes(
    _max_pool_with_indices, "max_pool{}_with_indices"
)
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = over_axes(
    _adaptive_max_pool_with_indices, "adaptive_max_pool{}_with_indices"
)
_, fractional_max_pool2d, fractional_max_pool3d = over_axes(_fractional_max_pool, "fractional_max_pool{}")


def _unpool(spatial: int, x: Array, indices: Array, args: tuple[Any, ...]) -> Tensor:
    name = f"max_unpool{spatial}d"
    if x.ndim == spatial + 1:
        alone: Tensor = ops.squeeze(_unpool(spatial, ops.expand_dims(x, 0), ops.expand_dims(indices, 0), args), 0)
        return alone
    if x.ndim != spatial + 2:
        raise ShapeError(
            f"[{name}] an input has a batch axis, a channel axis and {spatial} spatial ones; got shape {x.shape}."
        )
    return _max_unpool(x, indices, *args)


def max_unpool1d(
    x: Array,
    indices: Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """``x`` (N, C, L) at the places ``indices`` that ``max_pool1d`` with ``return_indices`` gave, and zeros
    elsewhere, in an output of ``output_size``; by default of the least size that pools to that of ``x``."""
    return _unpool(1, x, indices, (kernel_size, stride, padding, output_size))


def max_unpool2d(
    x: Array,
    indices: Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """``x`` (N, C, H, W) at the places ``indices`` that ``max_pool2d`` with ``return_indices`` gave, and zeros
    elsewhere, in an output of ``output_size``; by default of the least size that pools to that of ``x``."""
    return _unpool(2, x, indices, (kernel_size, stride, padding, output_size))


def max_unpool3d(
    x: Array,
    indices: Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """``x`` (N, C, D, H, W) at the places ``indices`` that ``max_pool3d`` with ``return_indices`` gave, and zeros
    elsewhere, in an output of ``output_size``; by default of the least size that pools to that of ``x``."""
    return _unpool(3, x, indices, (kernel_size, stride, padding, output_size))


def fractional_max_pool2d_with_indices(
    x: Array,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Array | None = None,
) -> tuple[Tensor, Tensor]:
    """``fractional_max_pool2d``, and where the elements are."""
    values, places = fractional_max_pool2d(x, kernel_size, output_size, output_ratio, True, _random_samples)
    return values, places


def fractional_max_pool3d_with_indices(
    x: Array,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Array | None = None,
) -> tuple[Tensor, Tensor]:
    """``fractional_max_pool3d``, and where the elements are."""
    values, places = fractional_max_pool3d(x, kernel_size, output_size, output_ratio, True, _random_samples)
    return values, places


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

    function = staticmethod(lp_pool1d)


class LPPool2d(_LPPool):
    """(Σ xᵖ)^(1/p) of each window of (N, C, H, W)."""

    function = staticmethod(lp_pool2d)


class LPPool3d(_LPPool):
    """(Σ xᵖ)^(1/p) of each window of (N, C, D, H, W)."""

    function = staticmethod(lp_pool3d)


class MaxUnpool1d(_MaxUnpool):
    """Elements of (N, C, L) back at the places that ``MaxPool1d`` with ``return_indices`` took them from, and
    zeros elsewhere."""

    function = staticmethod(max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Elements of (N, C, H, W) back at the places that ``MaxPool2d`` with ``return_indices`` took them from, and
    zeros elsewhere."""

    function = staticmethod(max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Elements of (N, C, D, H, W) back at the places that ``MaxPool3d`` with ``return_indices`` took them from, and
    zeros elsewhere."""

    function = staticmethod(max_unpool3d)


class FractionalMaxPool2d(_FractionalMaxPool):
    """The greatest elements of windows of (N, C, H, W) at random distances (B. Graham, 2014)."""

    function = staticmethod(fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """The greatest elements of windows of (N, C, D, H, W) at random distances (B. Graham, 2014)."""

    function = staticmethod(fractional_max_pool3d)
