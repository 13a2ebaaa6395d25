"""When Winograd's algorithm replaces a convolution, and the decomposition of its three parts."""

from __future__ import annotations

from typing import Final

from runnel.core.avals import Shape
from runnel.core.dtypes import float32
from runnel.ops.arguments import Array
from runnel.ops.contiguity import contiguous
from runnel.ops.convolution import DIRECT, WINOGRAD
from runnel.ops.im2col import channels_first, channels_last
from runnel.ops.padding import zero_extended
from runnel.ops.pieces import flip
from runnel.ops.spatial import Pairs
from runnel.ops.views import permute
from runnel.ops.winograd import KERNEL, OUTPUTS, padded, tiles, winograd, winograd_filters, winograd_gradient

FEWEST_CHANNELS: Final = 16  # in and out: below, the transforms cost more than they save
FEWEST_TILES: Final = 16  # below, reading the transformed filters costs more
USED: Final = 0.5  # part of the tiles' results that lies inside the image


def fits(kernel: Shape, stride: Shape, dilation: Shape, groups: int) -> bool:
    """Whether the algorithm can carry out such a convolution at all."""
    return kernel == (KERNEL, KERNEL) and stride == (1, 1) and dilation == (1, 1) and groups == 1


def wins(images: int, channels: int, filters: int, out_size: Shape) -> bool:
    """Whether it is faster than a direct sum for ``out_size`` results per image and filter."""
    height, width = out_size
    count = images * tiles(height) * tiles(width)
    return (
        min(channels, filters) >= FEWEST_CHANNELS
        and count >= FEWEST_TILES
        and images * height * width >= USED * count * OUTPUTS**2
    )


def chosen(
    algorithm: str, x: Array, weight: Shape, out_size: Shape, stride: Shape, dilation: Shape, groups: int
) -> bool:
    """Whether a convolution of x[N, ...] with w of shape ``weight``, or its transpose, is carried out this way: a
    function of shapes and dtype. In float64, whose users want its accuracy, only when asked for."""
    if algorithm == DIRECT or not fits(weight[2:], stride, dilation, groups):
        return False
    if algorithm == WINOGRAD:
        return True
    return x.dtype is float32 and wins(x.shape[0], weight[1], weight[0], out_size)


def extended(x: Array, before: Shape, out_size: Shape) -> Array:
    """Channels-last ``x`` padded with ``before`` zeros in front, and with as many behind as the tiles of ``out_size``
    results read."""
    (top, left), (height, width) = before, out_size
    return zero_extended(x, (0, -top, -left, 0), (x.shape[0], padded(height), padded(width), x.shape[-1]))


def convolution(x: Array, w: Array, padding: Pairs, out_size: Shape) -> Array:
    """x[N, C, H, W] with w[K, C, 3, 3]."""
    (top, _), (left, _) = padding
    filters = winograd_filters(contiguous(permute(w, (2, 3, 1, 0))))
    x_extended = extended(channels_last(x), (top, left), out_size)
    return channels_first(winograd(x_extended, filters, out_size[0], out_size[1], w.shape[0]))


def input_gradient(g: Array, w: Array, padding: Pairs, size: Shape) -> Array:
    """The gradient for an x of ``size``: a convolution of g with the filters turned round."""
    (top, _), (left, _) = padding
    turned = permute(flip(flip(w, 2), 3), (2, 3, 0, 1))
    g_extended = extended(channels_last(g), (KERNEL - 1 - top, KERNEL - 1 - left), size)
    return channels_first(winograd(g_extended, winograd_filters(contiguous(turned)), size[0], size[1], w.shape[1]))


def weight_gradient(x: Array, g: Array, padding: Pairs) -> Array:
    """The gradient for w[K, C, 3, 3]."""
    (top, _), (left, _) = padding
    x_extended = extended(channels_last(x), (top, left), g.shape[2:])
    return permute(winograd_gradient(x_extended, channels_last(g)), (3, 2, 0, 1))
