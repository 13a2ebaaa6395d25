"""Functions and layers that rearrange elements: pixel and channel shuffles, windows as columns, and split axes."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.nn.layer import layer
from runnel.nn.module import Module
from runnel.nn.windows import Size
from runnel.ops.arguments import Array, normalize_axis
from runnel.ops.convolution.windows import channels_last, im2col, per_axis, positions_along
from runnel.ops.shapes.padding import pad_spread
from runnel.tensor.tensor import Tensor


def pixel_shuffle(x: Array, upscale_factor: int) -> Tensor:
    """Turn (…, C·r², H, W) into (…, C, H·r, W·r), for r = ``upscale_factor`` (W. Shi et al., 2016).

    Groups of r² channels become squares of r·r elements.
    """
    r = upscale_factor
    if x.ndim < 3 or r < 1 or x.shape[-3] % (r * r):
        raise ShapeError(
            f"[pixel_shuffle] x must have axes (…, C·r², H, W) for r = upscale_factor = {r}; got shape {x.shape}."
        )
    *front, c, h, w = x.shape
    n = len(front)
    split = ops.reshape(x, (*front, c // (r * r), r, r, h, w))
    mixed = ops.permute(split, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    result: Tensor = ops.reshape(mixed, (*front, c // (r * r), h * r, w * r)).separate()
    return result


def pixel_unshuffle(x: Array, downscale_factor: int) -> Tensor:
    """Turn (…, C, H·r, W·r) into (…, C·r², H, W), for r = ``downscale_factor``: the inverse of ``pixel_shuffle``."""
    r = downscale_factor
    if x.ndim < 3 or r < 1 or x.shape[-2] % r or x.shape[-1] % r:
        raise ShapeError(
            f"[pixel_unshuffle] x must have axes (…, C, H·r, W·r) for r = downscale_factor = {r}; got shape {x.shape}."
        )
    *front, c, h, w = x.shape
    n = len(front)
    split = ops.reshape(x, (*front, c, h // r, r, w // r, r))
    mixed = ops.permute(split, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    result: Tensor = ops.reshape(mixed, (*front, c * r * r, h // r, w // r)).separate()
    return result


def channel_shuffle(x: Array, groups: int) -> Tensor:
    """Reorder the channels of (N, C, …): the first of each of ``groups``, then the second of each, and so on.

    X. Zhang et al., "ShuffleNet", 2018.
    """
    if x.ndim < 3 or groups < 1 or x.shape[1] % groups:
        raise ShapeError(
            f"[channel_shuffle] x must have axes (N, C, …) with C divisible by groups={groups}; got shape {x.shape}."
        )
    split = ops.reshape(x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
    result: Tensor = ops.reshape(ops.transpose(split, 1, 2), x.shape)
    return result


def unfold(x: Array, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Tensor:
    """Return the windows of images as columns.

    Args:
        x: images (N, C, H, W) or (C, H, W).
        kernel_size: the size of the window, an int or ``(height, width)``; so may be the others.
        dilation: the distance of window elements.
        padding: how many zeros to add on each side.
        stride: the step of the window.

    Returns:
        Shape (N, C·kernel elements, windows), or without the batch.
    """
    if x.ndim == 3:
        alone: Tensor = ops.squeeze(unfold(ops.expand_dims(x, 0), kernel_size, dilation, padding, stride), 0)
        return alone
    if x.ndim != 4:
        raise ShapeError(f"[unfold] x must have axes (N, C, H, W) or (C, H, W); got shape {x.shape}.")
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
    """Add up columns, as :func:`unfold` returns them, at the places of their windows in an image.

    Args:
        x: columns (N, C·kernel elements, windows), or without the batch.
        output_size: the size of the image, an int or ``(height, width)``.
        kernel_size, dilation, padding, stride: as in :func:`unfold`.

    Returns:
        Shape (N, C, *output_size), or without the batch.
    """
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
            f"[fold] x must have shape (N, C·{math.prod(kernel)}, {math.prod(count)}) for windows of {kernel} in an "
            f"output of {size}; got {x.shape}."
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
    """Return kernel size, dilation, padding and stride as pairs."""
    words = ("kernel_size", "dilation", "padding", "stride")
    first, second, third, fourth = (per_axis(name, what, v, 2) for what, v in zip(words, values, strict=True))
    if min((*first, *second, *fourth)) < 1 or min(third) < 0:
        raise ShapeError(
            f"[{name}] kernel_size, dilation and stride must be positive, and padding must not be negative; got "
            f"{first}, {second}, {fourth} and {third}."
        )
    return first, second, third, fourth  # type: ignore[return-value]


PixelShuffle = layer("PixelShuffle", pixel_shuffle)
PixelUnshuffle = layer("PixelUnshuffle", pixel_unshuffle)
ChannelShuffle = layer("ChannelShuffle", channel_shuffle)
Unfold = layer("Unfold", unfold)
Fold = layer("Fold", fold)


class Unflatten(Module):
    """Split axis ``dim`` into axes of the sizes ``unflattened_size``, one of which may be -1 to be inferred."""

    def __init__(self, dim: int, unflattened_size: int | Iterable[int]) -> None:
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, x: Array) -> Any:
        axis = normalize_axis("Unflatten", self.dim, x.ndim)
        sizes = [self.unflattened_size] if isinstance(self.unflattened_size, int) else list(self.unflattened_size)
        if -1 in sizes and 0 not in sizes:
            sizes[sizes.index(-1)] = x.shape[axis] // -math.prod(sizes)
        if math.prod(sizes) != x.shape[axis]:
            raise ShapeError(
                f"[Unflatten] the product of unflattened_size={self.unflattened_size} must be the size of axis "
                f"{self.dim}; got shape {x.shape}."
            )
        return ops.reshape(x, (*x.shape[:axis], *sizes, *x.shape[axis + 1 :]))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
