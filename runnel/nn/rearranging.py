"""Elements put elsewhere: channels into space and back, channels dealt out, axes split, windows as columns."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.nn.module import Module
from runnel.ops.arguments import Array, normalize_axis
from runnel.ops.im2col import channels_last, im2col, positions_along
from runnel.ops.padding import pad_spread
from runnel.ops.spatial import per_axis
from runnel.tensor.tensor import Tensor

Size = int | Sequence[int]


def pixel_shuffle(x: Array, upscale_factor: int) -> Tensor:
    """(…, C·r², H, W) as (…, C, H·r, W·r): each r² channels become squares of r·r elements (W. Shi et al., 2016)."""
    r = upscale_factor
    if x.ndim < 3 or r < 1 or x.shape[-3] % (r * r):
        raise ShapeError(
            f"[pixel_shuffle] an input has axes (…, C·r², H, W), here with r={r}; received shape {x.shape}."
        )
    *front, c, h, w = x.shape
    n = len(front)
    split = ops.reshape(x, (*front, c // (r * r), r, r, h, w))
    mixed = ops.permute(split, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    result: Tensor = ops.reshape(mixed, (*front, c // (r * r), h * r, w * r))
    return result


def pixel_unshuffle(x: Array, downscale_factor: int) -> Tensor:
    """(…, C, H·r, W·r) as (…, C·r², H, W): what ``pixel_shuffle`` undoes."""
    r = downscale_factor
    if x.ndim < 3 or r < 1 or x.shape[-2] % r or x.shape[-1] % r:
        raise ShapeError(
            f"[pixel_unshuffle] an input has axes (…, C, H·r, W·r), here with r={r}; received shape {x.shape}."
        )
    *front, c, h, w = x.shape
    n = len(front)
    split = ops.reshape(x, (*front, c, h // r, r, w // r, r))
    mixed = ops.permute(split, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    result: Tensor = ops.reshape(mixed, (*front, c * r * r, h // r, w // r))
    return result


def channel_shuffle(x: Array, groups: int) -> Tensor:
    """Channels of (N, C, …) in ``groups``, dealt out in turn: the first of each group, then the second ones, …
    (X. Zhang et al., 2018)."""
    if x.ndim < 3 or groups < 1 or x.shape[1] % groups:
        raise ShapeError(
            f"[channel_shuffle] an input has axes (N, C, …), where groups={groups} divides C; received shape {x.shape}."
        )
    split = ops.reshape(x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
    result: Tensor = ops.reshape(ops.transpose(split, 1, 2), x.shape)
    return result


def unfold(x: Array, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Tensor:
    """The windows of (N, C, H, W) as columns: (N, C·kernel elements, windows). Zeros stand in the padding; without a
    batch, (C, H, W) gives (C·kernel elements, windows)."""
    if x.ndim == 3:
        alone: Tensor = ops.squeeze(unfold(ops.expand_dims(x, 0), kernel_size, dilation, padding, stride), 0)
        return alone
    if x.ndim != 4:
        raise ShapeError(f"[unfold] an input has axes (N, C, H, W) or (C, H, W); received shape {x.shape}.")
    kernel, gaps, around, steps = _geometry("unfold", kernel_size, dilation, padding, stride)
    padded = ops.pad(x, ((0, 0), (0, 0), *((n, n) for n in around)))
    patches = im2col(channels_last(padded), kernel, steps, gaps)  # (N, rows, columns, *kernel, C)
    ordered = ops.permute(patches, (0, 5, 3, 4, 1, 2))
    columns = (x.shape[0], x.shape[1] * math.prod(kernel), math.prod(ordered.shape[-2:]))
    result: Tensor = ops.reshape(ordered, columns)
    return result


def fold(
    x: Array, output_size: Size, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
) -> Tensor:
    """Columns (N, C·kernel elements, windows) added up where ``unfold`` takes them from: (N, C, *output_size); without
    a batch too."""
    if x.ndim == 2:
        alone = fold(ops.expand_dims(x, 0), output_size, kernel_size, dilation, padding, stride)
        single: Tensor = ops.squeeze(alone, 0)
        return single
    kernel, gaps, around, steps = _geometry("fold", kernel_size, dilation, padding, stride)
    size = per_axis("fold", "output_size", output_size, 2)
    whole = tuple(n + 2 * p for n, p in zip(size, around, strict=True))
    count = tuple(positions_along(n, k, s, g) for n, k, s, g in zip(whole, kernel, steps, gaps, strict=True))
    if x.ndim != 3 or x.shape[1] % math.prod(kernel) or x.shape[2] != math.prod(count):
        raise ShapeError(
            f"[fold] {math.prod(count)} windows of {kernel} in an output of {size} need an input (N, C·"
            f"{math.prod(kernel)}, {math.prod(count)}); received shape {x.shape}."
        )
    columns = ops.reshape(x, (x.shape[0], -1, *kernel, *count))
    parts = []
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            widths = [(0, 0, 1), (0, 0, 1)]
            for tap, n, k, s, g in zip((row, column), whole, count, steps, gaps, strict=True):
                widths.append((tap * g, n - tap * g - (k - 1) * s - 1, s))
            parts.append(
                pad_spread(ops.getitem(columns, (..., row, column, slice(None), slice(None))), tuple(widths), 0)
            )
    total = functools.reduce(ops.add, parts)
    for axis, (n, p) in enumerate(zip(size, around, strict=True), 2):
        total = ops.narrow(total, axis, p, n)
    result: Tensor = total
    return result


def _geometry(name: str, *values: Size) -> tuple[tuple[int, int], ...]:
    """Kernel, dilation, padding and stride as pairs."""
    words = ("kernel_size", "dilation", "padding", "stride")
    first, second, third, fourth = (per_axis(name, what, v, 2) for what, v in zip(words, values, strict=True))
    if min((*first, *second, *fourth)) < 1 or min(third) < 0:
        raise ShapeError(
            f"[{name}] kernel_size {first}, dilation {second} and stride {fourth} are positive, and padding {third} is "
            "not negative."
        )
    return first, second, third, fourth  # type: ignore[return-value]


class PixelShuffle(Module):
    """(…, C·r², H, W) as (…, C, H·r, W·r)."""

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, x: Any) -> Any:
        return pixel_shuffle(x, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(…, C, H·r, W·r) as (…, C·r², H, W)."""

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, x: Any) -> Any:
        return pixel_unshuffle(x, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels in ``groups``, dealt out in turn."""

    def __init__(self, groups: int) -> None:
        self.groups = groups

    def forward(self, x: Any) -> Any:
        return channel_shuffle(x, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Unfold(Module):
    """The windows of (N, C, H, W) as columns (N, C·kernel elements, windows)."""

    def __init__(self, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> None:
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, x: Any) -> Any:
        return unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """Columns (N, C·kernel elements, windows) added up where ``Unfold`` takes them from."""

    def __init__(
        self, output_size: Size, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
    ) -> None:
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, x: Any) -> Any:
        return fold(x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, kernel_size={self.kernel_size}, stride={self.stride}"


class Unflatten(Module):
    """The axis ``dim`` as several, of the sizes ``unflattened_size``, of which one may be -1."""

    def __init__(self, dim: int, unflattened_size: int | Iterable[int]) -> None:
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, x: Any) -> Any:
        axis = normalize_axis("Unflatten", self.dim, x.ndim)
        sizes = [self.unflattened_size] if isinstance(self.unflattened_size, int) else list(self.unflattened_size)
        if -1 in sizes and 0 not in sizes:
            sizes[sizes.index(-1)] = x.shape[axis] // -math.prod(sizes)
        if math.prod(sizes) != x.shape[axis]:
            raise ShapeError(
                f"[Unflatten] axis {self.dim} of shape {x.shape} has {x.shape[axis]} elements, and not the product of "
                f"{self.unflattened_size}."
            )
        return ops.reshape(x, (*x.shape[:axis], *sizes, *x.shape[axis + 1 :]))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
