"""Normalization over batch, groups and instances: moments of channels, then scale and shift.

Arrays are channels-last inside, so that sums over all but channels read memory in order. Each sum covers one image
first: the partial sums are short, which keeps them accurate, and threads can sum different images.
"""

from __future__ import annotations

import math

from runnel.core.composed import composed
from runnel.core.dtypes import float32
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast
from runnel.ops.convolution.layers import for_each_image
from runnel.ops.convolution.windows import channels_first, channels_last
from runnel.ops.elementwise.arithmetic import add, divide, multiply, subtract
from runnel.ops.elementwise.exponential import rsqrt, square
from runnel.ops.reductions.primitives import sum
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.views import reshape


def _wide(x: Array) -> Array:
    return cast(x, float32) if x.dtype.itemsize == 2 else x


def _image_sums(x: Array) -> Array:
    """Sum each channel of each image of channels-last ``x``: (N, 1, …, C)."""
    return sum(x, tuple(range(1, x.ndim - 1)), keepdims=True) if x.ndim > 2 else x


def _vector(name: str, what: str, vector: Array, x: Array) -> Array:
    """Return one number for each channel, in a shape that broadcasts with channels-last images of ``x`` (N, C, …)."""
    if vector.shape != (x.shape[1],):
        raise ShapeError(f"[{name}] {what} needs shape ({x.shape[1]},), the channels of {x.shape}; got {vector.shape}.")
    return for_each_image(vector, x)


def _require_channels(name: str, x: Array) -> None:
    if x.ndim < 2:
        raise ShapeError(f"[{name}] needs a batch axis and a channel axis; got shape {x.shape}.")


@composed
def channel_moments(x: Array) -> tuple[Array, Array]:
    """Return the mean and the (biased) variance of each channel of ``x`` (N, C, …), as two vectors."""
    _require_channels("channel_moments", x)
    y = channels_last(_wide(x))
    count = y.size // max(y.shape[-1], 1)
    mean = divide(sum(_image_sums(y), 0), count)
    centred = subtract(y, for_each_image(reshape(mean, (y.shape[-1],)), x))
    variance = divide(sum(_image_sums(square(centred)), 0), count)
    return reshape(mean, (y.shape[-1],)), reshape(variance, (y.shape[-1],))


@composed
def batch_norm(
    x: Array, mean: Array, variance: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    """Normalize each channel of ``x`` (N, C, …) by ``mean`` and ``variance`` + eps; then scale and shift.

    All are vectors of C elements; ShapeError otherwise. S. Ioffe, C. Szegedy, 2015."""
    _require_channels("batch_norm", x)
    scale = rsqrt(add(_wide(variance), eps))
    if weight is not None:
        scale = multiply(scale, weight)
    centred = subtract(channels_last(_wide(x)), _vector("batch_norm", "mean", _wide(mean), x))
    result = multiply(centred, _vector("batch_norm", "variance and weight", scale, x))
    if bias is not None:
        result = add(result, _vector("batch_norm", "bias", bias, x))
    return cast(channels_first(result), x.dtype)


@composed
def group_norm(
    x: Array, num_groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    """Normalize ``x`` (N, C, …) to mean 0 and variance 1 over each of ``num_groups`` groups of channels of each image.

    Then scales and shifts channels. Y. Wu, K. He, 2018."""
    _require_channels("group_norm", x)
    channels, groups = x.shape[1], num_groups
    if groups < 1 or channels % groups:
        raise ShapeError(
            f"[group_norm] {channels} channels of shape {x.shape} cannot be put into {groups} equal groups."
        )
    y = channels_last(_wide(x))
    ones = (1,) * (y.ndim - 2)
    count = channels // groups * math.prod(y.shape[1:-1])

    def group_means(values: Array) -> Array:
        split = reshape(_image_sums(values), (values.shape[0], groups, channels // groups))
        return divide(sum(split, 2, keepdims=True), count)

    def for_channels(of_groups: Array) -> Array:
        spread = broadcast_to(of_groups, (y.shape[0], groups, channels // groups))
        return reshape(spread, (y.shape[0], *ones, channels))

    centred = subtract(y, for_channels(group_means(y)))
    result = multiply(centred, for_channels(rsqrt(add(group_means(square(centred)), eps))))
    if weight is not None:
        result = multiply(result, _vector("group_norm", "weight", weight, x))
    if bias is not None:
        result = add(result, _vector("group_norm", "bias", bias, x))
    return cast(channels_first(result), x.dtype)


@composed
def instance_norm(x: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5) -> Array:
    """Normalize each channel of each image to mean 0 and variance 1; then scale and shift (D. Ulyanov et al., 2016)."""
    _require_channels("instance_norm", x)
    return group_norm(x, x.shape[1], weight, bias, eps)
