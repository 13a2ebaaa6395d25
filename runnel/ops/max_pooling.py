"""Max pooling over the spatial axes of x[N, C, *sizes], and its gradient.

Both are carried out channels-last, elementwise over the kernel's taps, which are slices of the input: so pooling fuses
with what stands before and after it.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.dtypes import DType, int32, uint8
from runnel.core.errors import ShapeError
from runnel.core.rules import TRANSPOSED
from runnel.core.tables import Op, abstract_eval, axes, cost, decompose, jvp, reference, vjp
from runnel.ops.arguments import Array, require_dtype
from runnel.ops.arithmetic import add, maximum, multiply
from runnel.ops.comparison import equal
from runnel.ops.convolution_rules import interleaved, phases
from runnel.ops.creation_like import full_like, iota
from runnel.ops.family import NUMBERS
from runnel.ops.im2col import channels_first, channels_last, effective_size, im2col_p, kernel_slices, positions_along
from runnel.ops.logic import where
from runnel.ops.padding import pad, zero_extended
from runnel.ops.promotion import constant
from runnel.ops.spatial import Pairs
from runnel.ops.views import Leading, reshape

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
    """To the first greatest element of each window goes its cotangent (of a window with a NaN: to its first)."""
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
    """Where windows lie side by side: each element looks whether it is the one of its window."""
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
    """Each element, one phase of the stride after the other, adds up over the windows that hold it."""
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
