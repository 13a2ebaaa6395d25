"""Pooling over the spatial axes of x[N, C, *sizes]: maxima and means of windows.

Max pooling and its gradient are computed channels-last, elementwise over the kernel's taps, which are slices of the
input, so pooling fuses with the ops around it.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.composed import composed
from runnel.core.dispatch import apply
from runnel.core.dtypes import DType, float32, int32, int64, uint8
from runnel.core.errors import ShapeError
from runnel.core.rules import TRANSPOSED
from runnel.core.tables import Op, abstract_eval, axes, cost, decompose, jvp, reference, vjp
from runnel.ops.arguments import Array, as_tuple, is_single, require_dtype
from runnel.ops.conversion import cast
from runnel.ops.convolution.decompositions import interleaved, phases
from runnel.ops.convolution.windows import (
    Pairs,
    channels_first,
    channels_last,
    effective_size,
    im2col_p,
    kernel_slices,
    per_axis,
    positions_along,
)
from runnel.ops.creation_like import full_like, iota
from runnel.ops.elementwise.arithmetic import abs as absolute, add, divide, floor_divide, maximum, multiply, negative
from runnel.ops.elementwise.comparison import equal, less, where
from runnel.ops.elementwise.rows import NUMBERS
from runnel.ops.promotion import constant
from runnel.ops.reductions.primitives import sum
from runnel.ops.shapes.padding import pad, zero_extended
from runnel.ops.shapes.pieces import concat, narrow, slice_p
from runnel.ops.shapes.views import Leading, reshape

max_pool_p = Op(
    "max_pool",
    "x, *, kernel, stride, padding, dilation",
    "The greatest element of each window of x[N, C, *sizes]; NaN wins, and padding never does.",
)
axes.register(max_pool_p, Leading())
jvp.register(max_pool_p, TRANSPOSED)


def _lowest(dtype: DType) -> int | float:
    return -math.inf if dtype.is_float else int(np.iinfo(dtype.numpy).min)


@abstract_eval.rule(max_pool_p)
def _max_pool_abstract_eval(
    x: ShapedArray, *, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape
) -> ShapedArray:
    require_dtype("max_pool", x.dtype, NUMBERS)
    if not len(kernel) == len(stride) == len(padding) == len(dilation) == x.ndim - 2 or min((*kernel, *stride)) < 1:
        raise ShapeError(
            f"[max_pool] an input of shape {x.shape} needs {x.ndim - 2} positive numbers each as kernel, stride, "
            f"padding and dilation; got {kernel}, {stride}, {padding}, {dilation}."
        )
    out_size = []
    for n, extent, step, (low, high), gap in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True):
        if effective_size(extent, gap) > n + low + high or max(low, high) >= effective_size(extent, gap):
            raise ShapeError(
                f"[max_pool] windows of {kernel} with dilation {dilation} do not fit an input of {x.shape[2:]} with "
                f"padding {padding}: each must hold an element of the input."
            )
        out_size.append(positions_along(n + low + high, extent, step, gap))
    return aval((*x.shape[:2], *out_size), x.dtype)


@reference.rule(max_pool_p)
def _max_pool_reference(x: Any, *, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape) -> Any:
    lowest = np.array(-np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min).astype(x.dtype)
    padded = np.pad(x, ((0, 0), (0, 0), *padding), constant_values=lowest)
    patches = reference[im2col_p](np.moveaxis(padded, 1, -1), kernel=kernel, stride=stride, dilation=dilation)
    spatial = len(kernel)
    with np.errstate(all="ignore"):
        return np.moveaxis(patches.max(axis=tuple(range(spatial + 1, 2 * spatial + 1))), -1, 1)


@cost.rule(max_pool_p)
def _max_pool_cost(x: ShapedArray, *, kernel: Shape, **attrs: Any) -> int:
    return abstract_eval[max_pool_p](x, kernel=kernel, **attrs).size * math.prod(kernel)


@decompose.rule(max_pool_p)
def _max_pool_expand(x: Array, *, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape) -> Array:
    padded = pad(channels_last(x), ((0, 0), *padding, (0, 0)), _lowest(x.dtype))
    return channels_first(functools.reduce(maximum, kernel_slices(padded, kernel, stride, dilation)))


@vjp.rule(max_pool_p)
def _max_pool_vjp(
    g: Array, out: Array, x: Array, *, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape
) -> tuple[Array]:
    """Add each window's gradient to its first largest element (in a window with a NaN, to its first element)."""
    padded = pad(channels_last(x), ((0, 0), *padding, (0, 0)), _lowest(x.dtype))
    greatest, cotangent = channels_last(out), channels_last(g)
    kind = uint8 if math.prod(kernel) <= 256 else int32
    first = constant(x, 0, kind, x.ndim)
    slices = kernel_slices(padded, kernel, stride, dilation)
    for tap, region in reversed([*enumerate(slices)][1:]):
        first = where(equal(region, greatest), constant(x, tap, kind, x.ndim), first)
    first = where(equal(slices[0], greatest), constant(x, 0, kind, x.ndim), first)
    if stride == kernel and set(dilation) == {1}:
        summed = _apart(cotangent, first, kernel)
    else:
        summed = _overlapping(cotangent, first, padded.shape[1:-1], kernel, stride, dilation)
    starts = (0, *(low for low, _ in padding), 0)
    return (channels_first(zero_extended(summed, starts, (x.shape[0], *x.shape[2:], x.shape[1]))),)


def _apart(g: Array, first: Array, kernel: Shape) -> Array:
    """Compare each element with the largest of its window, for windows that do not overlap."""
    spatial = len(kernel)
    shape = [g.shape[0]]
    split = [g.shape[0]]
    for n, extent in zip(g.shape[1:-1], kernel, strict=True):
        shape += [n, 1]
        split += [n, extent]
    own: Array = None
    for i, extent in enumerate(kernel):
        axes = [1] * (2 * spatial + 2)
        axes[2 + 2 * i] = extent
        along = multiply(iota(first, tuple(axes), 2 + 2 * i, first.dtype), math.prod(kernel[i + 1 :]))
        own = along if own is None else add(own, along)
    chosen, cotangent = (reshape(v, (*shape, g.shape[-1])) for v in (first, g))
    spread = where(equal(chosen, own), cotangent, 0)
    whole = tuple(n * extent for n, extent in zip(g.shape[1:-1], kernel, strict=True))
    return reshape(spread, (g.shape[0], *whole, g.shape[-1]))


def _overlapping(g: Array, first: Array, size: Shape, kernel: Shape, stride: Shape, dilation: Shape) -> Array:
    """Sum, for each element and phase of the stride, over the windows that contain it."""
    count = tuple(-(-n // step) for n, step in zip(size, stride, strict=True))
    parts = []
    for along in itertools.product(*(phases(*each) for each in zip(kernel, stride, dilation, strict=True))):
        terms = []
        for chosen in itertools.product(*(range(len(p.kernel_offsets)) for p in along)):
            starts = (0, *(-p.shift - i * p.gap for p, i in zip(along, chosen, strict=True)), 0)
            sizes = (g.shape[0], *count, g.shape[-1])
            tap = 0
            for p, i, extent in zip(along, chosen, kernel, strict=True):
                tap = tap * extent + p.kernel_offsets[i]
            hit = equal(zero_extended(first, starts, sizes), constant(first, tap, first.dtype, first.ndim))
            terms.append(where(hit, zero_extended(g, starts, sizes), 0))
        parts.append(functools.reduce(add, terms) if terms else full_like(g, 0, (g.shape[0], *count, g.shape[-1])))
    return interleaved(parts, stride)


def _geometry(
    name: str,
    x: Array,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] | None,
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    ceil_mode: bool,
) -> tuple[Shape, Shape, Pairs, Shape]:
    """Kernel, stride, padding as pairs, and dilation. With ``ceil_mode`` the last window may reach beyond the padding,
    if it begins before it."""
    spatial = x.ndim - 2
    if spatial < 1:
        raise ShapeError(f"[{name}] needs a batch axis, a channel axis and spatial axes; got shape {x.shape}.")
    kernel_shape = per_axis(name, "kernel", kernel, spatial)
    steps = per_axis(name, "stride", kernel_shape if stride is None or stride == () else stride, spatial)
    around = per_axis(name, "padding", padding, spatial)
    gaps = per_axis(name, "dilation", dilation, spatial)
    if min((*kernel_shape, *steps, *gaps)) < 1 or any(
        p < 0 or p > t // 2 for p, t in zip(around, kernel_shape, strict=True)
    ):
        raise ShapeError(
            f"[{name}] kernel {kernel_shape}, stride {steps} and dilation {gaps} must be positive, and "
            f"padding {around} at most half the kernel."
        )
    pairs = []
    for n, k, step, p, gap in zip(x.shape[2:], kernel_shape, steps, around, gaps, strict=True):
        room = n + 2 * p - effective_size(k, gap)
        count = -(-room // step) + 1 if ceil_mode else room // step + 1
        if count < 1:
            raise ShapeError(
                f"[{name}] a kernel of {kernel_shape} does not fit an input of shape {x.shape} padded by {around}."
            )
        if ceil_mode and (count - 1) * step >= n + p:
            count -= 1
        pairs.append((p, max((count - 1) * step + effective_size(k, gap) - n - p, 0)))
    return kernel_shape, steps, tuple(pairs), gaps


@composed
def max_pool(
    x: Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Array:
    """Return the largest element of each window of ``x`` (N, C, *sizes); the default stride is the kernel's size.

    ``ceil_mode`` adds a last window that is only partly inside. The first of equal elements receives the gradient."""
    kernel, steps, pairs, gaps = _geometry("max_pool", x, kernel_size, stride, padding, dilation, ceil_mode)
    return apply(max_pool_p, x, kernel=kernel, stride=steps, padding=pairs, dilation=gaps)


@composed
def avg_pool(
    x: Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Return the mean of each window of ``x`` (N, C, *sizes).

    The divisor is ``divisor_override``, or the number of elements inside the padding, or inside ``x`` without
    ``count_include_pad``. Integers have integer means, truncated."""
    kernel, steps, pairs, _ = _geometry("avg_pool", x, kernel_size, stride, padding, 1, ceil_mode)
    if x.dtype.is_integer and x.dtype is not int64:
        means = avg_pool(cast(x, int64), kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return cast(means, x.dtype)
    total = _window_sums(pad(channels_last(x), ((0, 0), *pairs, (0, 0))), kernel, steps)
    if divisor_override is not None:
        if divisor_override == 0:
            raise ValueError("[avg_pool] divisor_override is not 0.")
        return channels_first(_share(total, divisor_override))
    paddings = per_axis("avg_pool", "padding", padding, x.ndim - 2)
    counts = [
        _inside(n, k, step, low, total.shape[1 + i], p if count_include_pad else 0)
        for i, (n, k, step, (low, _), p) in enumerate(zip(x.shape[2:], kernel, steps, pairs, paddings, strict=True))
    ]
    return channels_first(_share(total, _divisor(total, counts)))


def _share(total: Array, count: Array | int) -> Array:
    """Divide ``total`` by ``count``; integers are truncated, as in C."""
    if not total.dtype.is_integer:
        return divide(total, count)
    if isinstance(count, int) and count < 0:
        total, count = negative(total), -count
    down = floor_divide(absolute(total), count)
    return where(less(total, 0), negative(down), down)


def _window_sums(x: Array, kernel: Shape, stride: Shape) -> Array:
    """Sum each window of channels-last ``x``."""
    spatial = len(kernel)
    count = tuple(
        positions_along(n, extent, step, 1) for n, extent, step in zip(x.shape[1:-1], kernel, stride, strict=True)
    )
    if stride != kernel:
        return functools.reduce(add, kernel_slices(x, kernel, stride, (1,) * spatial))
    covered = (x.shape[0], *(n * extent for n, extent in zip(count, kernel, strict=True)), x.shape[-1])
    if covered != x.shape:
        x = apply(slice_p, x, starts=(0,) * x.ndim, sizes=covered, steps=(1,) * x.ndim)
    pairs = [n for pair in zip(count, kernel, strict=True) for n in pair]
    split = reshape(x, (x.shape[0], *pairs, x.shape[-1]))
    return sum(split, tuple(range(2, 2 * spatial + 1, 2)))


def _inside(n: int, extent: int, stride: int, low: int, count: int, around: int) -> list[int]:
    """Count the elements of each window among the ``n``, or among the ``around`` on either side of them."""
    starts = [i * stride - low for i in range(count)]
    return [min(start + extent, n + around) - max(start, -around) for start in starts]


def _divisor(total: Array, counts: list[list[int]]) -> Array | int:
    if all(len(set(along)) == 1 for along in counts):
        return math.prod(along[0] for along in counts)
    product = functools.reduce(np.multiply.outer, [np.array(along) for along in counts])
    return total.lift(product.reshape(1, *product.shape, 1).astype(total.dtype.numpy), total.dtype)


_MOST_WINDOWS: Final = 1 << 20  # along one axis, each of which is a separate node where they are uneven


def _bins(n: int, count: int) -> list[tuple[int, int]]:
    """Return ``count`` ranges that cover ``n`` elements, as equal as possible; adjacent ranges overlap where they
    must."""
    return [(i * n // count, -(-(i + 1) * n // count)) for i in range(count)]


def _adaptive(
    name: str,
    x: Array,
    output_size: int | Sequence[int | None] | None,
    even: Callable[[Array, Shape], Array],
    reduced: Callable[[Array, int, int], Array],
) -> Array:
    spatial = x.ndim - 2
    requested = as_tuple(output_size) if output_size is not None else (None,)
    if output_size is None or is_single(output_size):
        requested *= spatial
    requested = tuple(None if n is None else operator.index(n) for n in requested)
    if len(requested) != spatial or any(n is not None and n < 1 for n in requested):
        raise ShapeError(f"[{name}] output_size is a positive int, or {spatial} of them; got {output_size!r}.")
    if any(n is not None and n > _MOST_WINDOWS for n in requested):
        raise ShapeError(f"[{name}] makes at most {_MOST_WINDOWS} windows along an axis; got {output_size!r}.")
    out_size = tuple(n if m is None else m for n, m in zip(x.shape[2:], requested, strict=True))
    if all(n % m == 0 for n, m in zip(x.shape[2:], out_size, strict=True)):
        return even(x, tuple(n // m for n, m in zip(x.shape[2:], out_size, strict=True)))
    y = channels_last(x)
    for axis, count in reversed([*enumerate(out_size, 1)]):
        bins = _bins(y.shape[axis], count)
        y = concat([reduced(narrow(y, axis, low, high - low), axis, high - low) for low, high in bins], axis)
    return channels_first(y)


@composed
def adaptive_avg_pool(x: Array, output_size: int | Sequence[int | None] | None) -> Array:
    """Return the means of ``output_size`` windows, of equal size where possible (None: one window per element).

    Integers have float32 means."""

    def reduced(part: Array, axis: int, size: int) -> Array:
        return divide(sum(part, axis, keepdims=True), size)

    x = x if x.dtype.is_inexact else cast(x, float32)
    return _adaptive("adaptive_avg_pool", x, output_size, avg_pool, reduced)


def adaptive_max_pool(x: Array, output_size: int | Sequence[int | None] | None) -> Array:
    """Return the largest elements of ``output_size`` windows, of equal size where possible."""

    def reduced(part: Array, axis: int, size: int) -> Array:
        window = tuple(size if i == axis else 1 for i in range(1, part.ndim - 1))
        return channels_last(max_pool(channels_first(part), window))

    return _adaptive("adaptive_max_pool", x, output_size, max_pool, reduced)
