"""Pooling that few programs call, as functions, and all pooling layers, with PyTorch's names and defaults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from runnel import ops
from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError
from runnel.nn import functions, windows
from runnel.nn.layer import Layer, layer
from runnel.nn.windows import Size, over_axes
from runnel.ops.arguments import Array
from runnel.ops.convolution.windows import per_axis
from runnel.ops.indexing.gather import labels_below
from runnel.tensor import random
from runnel.tensor.tensor import Tensor


def _lp_pool(
    x: Array, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """Compute (Σ xᵖ)^(1/p) over each window of ``x`` (N, C, *sizes), and 0 where the sum is not positive.

    Args:
        x: the input.
        norm_type: the p, which must not be 0.
        kernel_size: the size of the window, an int or one for each axis.
        stride: the step of the window; by default ``kernel_size``.
        ceil_mode: also use windows at the end that are only partly inside the input.
    """
    if norm_type == 0:
        raise ValueError("[lp_pool] norm_type must not be 0.")
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
    """Return the maximum of each window of ``x`` (N, C, *sizes), and its index in the flattened spatial axes."""
    values, places = windows.max_pool(x, kernel_size, stride, padding, dilation, ceil_mode, True)
    return values, places


def _adaptive_max_pool_with_indices(
    x: Array, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the maxima of ``output_size`` windows, and their indices in the flattened spatial axes."""
    values, places = windows.adaptive_max_pool(x, output_size, True)
    return values, places


def _max_unpool(
    x: Array,
    indices: Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put each element of ``x`` (N, C, *sizes) back to where maximum pooling took it from, and zeros elsewhere.

    Args:
        x: the maxima.
        indices: where they were, as maximum pooling with ``return_indices`` returns them.
        kernel_size: the size of the window, an int or one for each axis.
        stride: the step of the window; by default ``kernel_size``.
        padding: how many elements pooling added on each side.
        output_size: the sizes of the result; by default the smallest ones that pool to the sizes of ``x``.
    """
    spatial = x.ndim - 2
    kernel = per_axis("max_unpool", "kernel_size", kernel_size, spatial)
    steps = per_axis("max_unpool", "stride", kernel if stride is None else stride, spatial)
    around = per_axis("max_unpool", "padding", padding, spatial)
    least = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[2:], steps, around, kernel, strict=True)]
    out_size = least if output_size is None else list(output_size)[-spatial:]
    if len(out_size) != spatial or any(abs(n - m) >= s for n, m, s in zip(out_size, least, steps, strict=True)):
        raise ShapeError(
            f"[max_unpool] output_size must have {spatial} sizes, each less than a stride {steps} from {tuple(least)}; "
            f"got {output_size!r}."
        )
    if indices.shape != x.shape or not indices.dtype.is_integer:
        raise ShapeError(
            f"[max_unpool] indices must be integers of shape {x.shape}; got {indices.dtype.name} of shape "
            f"{indices.shape}."
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
    """Return the maxima of windows of ``x`` (N, C, *sizes) at random distances (B. Graham, 2014).

    Args:
        x: the input.
        kernel_size: the size of the window, an int or one for each axis.
        output_size: the number of windows, an int or one for each axis; or
        output_ratio: this number as a share, in (0, 1), of the size of ``x``.
        return_indices: also return where the maxima are, as indices into the flattened spatial axes.
        _random_samples: numbers in [0, 1), shape (N, C, spatial axes), to use instead of drawn ones.
    """
    spatial = x.ndim - 2
    kernel = per_axis("fractional_max_pool", "kernel_size", kernel_size, spatial)
    if (output_size is None) == (output_ratio is None):
        raise ValueError("[fractional_max_pool] must get either output_size or output_ratio.")
    if output_size is not None:
        out_size = per_axis("fractional_max_pool", "output_size", output_size, spatial)
    else:
        ratios = (output_ratio,) * spatial if isinstance(output_ratio, (int, float)) else tuple(output_ratio)
        out_size = tuple(int(n * r) for n, r in zip(x.shape[2:], ratios, strict=True))
    if any(m < 1 or m + k - 1 > n for n, m, k in zip(x.shape[2:], out_size, kernel, strict=True)):
        raise ShapeError(
            f"[fractional_max_pool] {out_size} windows of {kernel} must fit the input; got shape {x.shape}."
        )
    if _random_samples is None:
        _random_samples = ops.uniform(random.next_key(None, x.device), (*x.shape[:2], spatial), x.dtype)
    flat = ops.iota(x, (1, 1, 1, 1), 0)  # (N, C, taps, windows), axis by axis
    # In PyTorch, samples start with the last axis in two dimensions, and with the first one in three.
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


def _fractional_with_indices(
    x: Array,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Array | None = None,
) -> Any:
    """Return the maxima of windows at random distances, and where they are."""
    return _fractional_max_pool(x, kernel_size, output_size, output_ratio, True, _random_samples)


def _starts(sample: Array, n: int, count: int, taps: int) -> Array:
    """Return where ``count`` windows begin, shape (N, C, windows). The last one ends with the axis."""
    if count == 1:
        return ops.iota(sample, (1, 1, 1), 0) + (n - taps)
    step = (n - taps) / (count - 1)
    number = ops.iota(sample, (1, 1, count), 2)
    inner = ops.cast(ops.floor((ops.cast(number, sample.dtype) + sample) * step), int64)
    begun = inner - ops.cast(ops.floor(sample * step), int64)
    return ops.where(ops.equal(number, count - 1), n - taps, begun)


lp_pool1d, lp_pool2d, lp_pool3d = over_axes(_lp_pool, "lp_pool{}")
max_unpool1d, max_unpool2d, max_unpool3d = over_axes(_max_unpool, "max_unpool{}", arrays=2)
max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = over_axes(
    _max_pool_with_indices, "max_pool{}_with_indices"
)
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = over_axes(
    _adaptive_max_pool_with_indices, "adaptive_max_pool{}_with_indices"
)
_, fractional_max_pool2d, fractional_max_pool3d = over_axes(_fractional_max_pool, "fractional_max_pool{}")
_, fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = over_axes(
    _fractional_with_indices, "fractional_max_pool{}_with_indices"
)


# Layers ---------------------------------------------------------------------------------------------------------------


class _Strided(Layer):
    """Pooling whose stride is the kernel size by default."""

    stride: Any

    def _check(self) -> None:
        if self.stride is None:
            self.stride = self.kernel_size


class _Fractional(Layer):
    def _check(self) -> None:
        if (self.output_size is None) == (self.output_ratio is None):
            raise ValueError(f"[{type(self).__name__}] must get either output_size or output_ratio.")
        given = self.output_ratio
        ratios = [given] if isinstance(given, (int, float)) else list(given or ())
        if not all(0 < ratio < 1 for ratio in ratios):
            raise ValueError(f"[{type(self).__name__}] output_ratio must be between 0 and 1; got {given!r}.")


def _example(name: str) -> str:
    return f"""
Shape:
    input ``(N, C, H, W)``; output ``(N, C, H_out, W_out)``.

Example:
    >>> nn.{name}(2)(rn.ones((8, 16, 32, 32))).shape
    (8, 16, 16, 16)
"""


_ADAPTIVE = """
Shape:
    input ``(N, C, H, W)``; output ``(N, C, *output_size)``.

Example:
    >>> nn.AdaptiveAvgPool2d(1)(rn.ones((8, 512, 7, 7))).shape
    (8, 512, 1, 1)
"""
_MAX = "kernel_size, stride, padding, dilation, return_indices, ceil_mode"

MaxPool1d = layer("MaxPool1d", functions.max_pool1d, _MAX, base=_Strided)
MaxPool2d = layer("MaxPool2d", functions.max_pool2d, _MAX, base=_Strided, doc=_example("MaxPool2d"))
MaxPool3d = layer("MaxPool3d", functions.max_pool3d, _MAX, base=_Strided)
AvgPool1d = layer("AvgPool1d", functions.avg_pool1d, base=_Strided)
AvgPool2d = layer("AvgPool2d", functions.avg_pool2d, base=_Strided, doc=_example("AvgPool2d"))
AvgPool3d = layer("AvgPool3d", functions.avg_pool3d, base=_Strided)
AdaptiveAvgPool1d = layer("AdaptiveAvgPool1d", functions.adaptive_avg_pool1d)
AdaptiveAvgPool2d = layer("AdaptiveAvgPool2d", functions.adaptive_avg_pool2d, doc=_ADAPTIVE)
AdaptiveAvgPool3d = layer("AdaptiveAvgPool3d", functions.adaptive_avg_pool3d)
AdaptiveMaxPool1d = layer("AdaptiveMaxPool1d", functions.adaptive_max_pool1d)
AdaptiveMaxPool2d = layer("AdaptiveMaxPool2d", functions.adaptive_max_pool2d)
AdaptiveMaxPool3d = layer("AdaptiveMaxPool3d", functions.adaptive_max_pool3d)
LPPool1d = layer("LPPool1d", lp_pool1d)
LPPool2d = layer("LPPool2d", lp_pool2d)
LPPool3d = layer("LPPool3d", lp_pool3d)
MaxUnpool1d = layer("MaxUnpool1d", max_unpool1d, inputs="x, indices, output_size", base=_Strided)
MaxUnpool2d = layer("MaxUnpool2d", max_unpool2d, inputs="x, indices, output_size", base=_Strided)
MaxUnpool3d = layer("MaxUnpool3d", max_unpool3d, inputs="x, indices, output_size", base=_Strided)
FractionalMaxPool2d = layer("FractionalMaxPool2d", fractional_max_pool2d, base=_Fractional)
FractionalMaxPool3d = layer("FractionalMaxPool3d", fractional_max_pool3d, base=_Fractional)
