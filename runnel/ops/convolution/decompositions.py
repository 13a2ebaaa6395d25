"""Decompositions of convolutions (table ``decompose``): channels-last contractions over windows, which are views.

Data between two convolutions stays channels-last: the pass ``sink_permutes`` removes the changes of order in between.
Which algorithm runs is decided by shapes alone.
"""

from __future__ import annotations

import enum
import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from runnel.core.avals import Shape, aval
from runnel.core.axes import LOOPED, batching
from runnel.core.dispatch import apply
from runnel.core.dtypes import bfloat16, float32
from runnel.core.tables import axes, decompose
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast
from runnel.ops.convolution import winograd
from runnel.ops.convolution.primitives import (
    AUTO,
    DIRECT,
    WINOGRAD,
    convolution_input_gradient_p,
    convolution_p,
    convolution_weight_gradient_p,
)
from runnel.ops.convolution.windows import Pairs, channels_first, channels_last, im2col, kernel_slices, positions_along
from runnel.ops.creation_like import full_like
from runnel.ops.elementwise.arithmetic import add, multiply
from runnel.ops.linear_algebra.contraction import tensordot_p
from runnel.ops.linear_algebra.dots import in_float32, operand_dtype, sum_dtype
from runnel.ops.reductions.primitives import sum
from runnel.ops.shapes.padding import pad, zero_extended
from runnel.ops.shapes.pieces import concat_same, flip, narrow, slice_p, stack
from runnel.ops.shapes.views import bare, expand_dims, merged_rows, moveaxis, permute, reshape, split_rows

FEW_CHANNELS: Final = 8  # channels in times channels out of a group that is too small for a contraction
FEW_TERMS: Final = 64  # summed in one expression


def contract_windows(a: Array, b: Array, axes: int) -> Array:
    """Return a[*m, *k]·b[*k, *n] over the last ``axes`` axes of ``a``, any view, and the first of ``b``."""
    return apply(tensordot_p, a, b, axes=axes)


class Algorithm(enum.Enum):
    """How a convolution is carried out."""

    TAPS = "taps"  # elementwise, the taps of the kernel one after the other: depthwise convolutions
    WINDOWS = "windows"  # a contraction over windows and channels


def sum_form(channels: int, results: int, kernel: Shape, groups: int) -> Algorithm:
    """Return the algorithm for these numbers of channels; it depends on shapes only, so bits do as well."""
    inputs, outputs = channels // groups, results // groups
    is_small = inputs * outputs <= FEW_CHANNELS and inputs * math.prod(kernel) <= FEW_TERMS
    return Algorithm.TAPS if groups > 1 and is_small else Algorithm.WINDOWS


def _wants_float32(x: Array, algorithm: str) -> bool:
    """Return whether bfloat16 operands are converted: without dot instructions, or for an algorithm that has none."""
    return x.dtype is bfloat16 and (algorithm == WINOGRAD or operand_dtype(x.dtype) is float32)


# --- forward ------------------------------------------------------------------------------------------------------


@decompose.rule(convolution_p)
def _convolution(
    x: Array, w: Array, *, stride: Shape, padding: Pairs, dilation: Shape, groups: int, algorithm: str = AUTO
) -> Array:
    if _wants_float32(x, algorithm):
        attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "algorithm": algorithm}
        return in_float32(convolution_p, x, w, **attrs)
    out_size = _out_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    if winograd.chosen(algorithm, x, w.shape, out_size, stride, dilation, groups):
        return winograd.convolution(x, w, padding, out_size)
    padded = pad(channels_last(x), ((0, 0), *padding, (0, 0)))
    return channels_first(correlate(padded, w, stride, dilation, groups))


def _out_size(size: Shape, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape) -> Shape:
    """Return the spatial shape of a convolution's result."""
    around = (n + low + high for n, (low, high) in zip(size, padding, strict=True))
    return tuple(positions_along(n, *each) for n, *each in zip(around, kernel, stride, dilation, strict=True))


def correlate(x: Array, w: Array, stride: Shape, dilation: Shape, groups: int) -> Array:
    """Convolve padded, channels-last ``x`` with w[K, C/groups, *kernel]; return a channels-last result."""
    kernel = w.shape[2:]
    if sum_form(x.shape[-1], w.shape[0], kernel, groups) is Algorithm.TAPS:
        return _tap_by_tap(x, w, stride, dilation, groups)
    patches = im2col(x, kernel, stride, dilation)
    weight = permute(w, (*range(2, w.ndim), 1, 0))
    inputs, results = x.shape[-1] // groups, w.shape[0] // groups
    parts = [
        contract_windows(
            narrow(patches, -1, i * inputs, inputs), narrow(weight, -1, i * results, results), len(kernel) + 1
        )
        for i in range(groups)
    ]
    return concat_same(parts, x.ndim - 1)


def _tap_by_tap(x: Array, w: Array, stride: Shape, dilation: Shape, groups: int) -> Array:
    """Σ over taps, and over the few channels of a group, of shifted inputs times weights."""
    kernel = w.shape[2:]
    x, w = cast(x, sum_dtype(x.dtype)), cast(w, sum_dtype(w.dtype))
    inputs, results = x.shape[-1] // groups, w.shape[0] // groups
    weight = permute(reshape(w, (groups, results, inputs, math.prod(kernel))), (3, 2, 0, 1))
    terms: list[Array] = []
    slices = kernel_slices(x, kernel, stride, dilation)
    if not inputs:
        return full_like(x, 0, (*slices[0].shape[:-1], groups * results))
    for tap, region in enumerate(slices):
        split = reshape(region, (*region.shape[:-1], groups, inputs))
        for channel in range(inputs):
            factor = narrow(narrow(weight, 0, tap, 1), 1, channel, 1)
            broad = reshape(factor, (*(1,) * (region.ndim - 1), groups, results))
            terms.append(multiply(narrow(split, -1, channel, 1), broad))
    total = functools.reduce(add, terms)
    return reshape(total, (*total.shape[:-2], groups * results))


# --- backward: weights --------------------------------------------------------------------------------------------


@decompose.rule(convolution_weight_gradient_p)
def _weight_gradient(
    x: Array,
    g: Array,
    *,
    kernel: Shape,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
    algorithm: str = AUTO,
) -> Array:
    if _wants_float32(x, algorithm):
        attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "algorithm": algorithm}
        return in_float32(convolution_weight_gradient_p, x, g, kernel=kernel, **attrs)
    spatial = len(kernel)
    shape = (g.shape[1], x.shape[1] // groups, *kernel)
    if winograd.chosen(algorithm, x, shape, g.shape[2:], stride, dilation, groups):
        return winograd.weight_gradient(x, g, padding)
    padded, cotangent = pad(channels_last(x), ((0, 0), *padding, (0, 0))), channels_last(g)
    inputs, results = padded.shape[-1] // groups, cotangent.shape[-1] // groups
    padded = _covered(padded, cotangent.shape[1:-1], kernel, stride, dilation)
    if sum_form(padded.shape[-1], cotangent.shape[-1], kernel, groups) is Algorithm.TAPS:
        return _weights_tap_by_tap(padded, cotangent, kernel, stride, dilation, groups)
    patches = im2col(padded, kernel, stride, dilation)
    by_tap = permute(patches, (*range(spatial + 1, 2 * spatial + 2), *range(spatial + 1)))
    parts = [
        contract_windows(
            narrow(by_tap, spatial, i * inputs, inputs), narrow(cotangent, -1, i * results, results), spatial + 1
        )
        for i in range(groups)
    ]
    return permute(concat_same(parts, spatial + 1), (spatial + 1, spatial, *range(spatial)))


def _covered(x: Array, out_size: Shape, kernel: Shape, stride: Shape, dilation: Shape) -> Array:
    """Remove the part of ``x`` that no window reaches."""
    sizes = tuple(
        (n - 1) * step + (extent - 1) * gap + 1
        for n, extent, step, gap in zip(out_size, kernel, stride, dilation, strict=True)
    )
    covered = (x.shape[0], *sizes, x.shape[-1])
    return x if covered == x.shape else apply(slice_p, x, starts=(0,) * x.ndim, sizes=covered, steps=(1,) * x.ndim)


def _weights_tap_by_tap(x: Array, g: Array, kernel: Shape, stride: Shape, dilation: Shape, groups: int) -> Array:
    x, g = cast(x, sum_dtype(x.dtype)), cast(g, sum_dtype(g.dtype))
    inputs, results = x.shape[-1] // groups, g.shape[-1] // groups
    cotangent = reshape(g, (*g.shape[:-1], groups, results))
    spatial = tuple(range(1, g.ndim - 1))
    rows: list[Array] = []
    for region in kernel_slices(x, kernel, stride, dilation):
        split = reshape(region, (*region.shape[:-1], groups, inputs))
        for channel in range(inputs):
            product = multiply(narrow(split, -1, channel, 1), cotangent)
            rows.append(sum(sum(product, spatial), 0))
    offsets = math.prod(kernel)
    together = reshape(stack(rows), (offsets, inputs, groups, results))
    return reshape(permute(together, (2, 3, 1, 0)), (groups * results, inputs, *kernel))


# --- backward: inputs ---------------------------------------------------------------------------------------------


class Phase(NamedTuple):
    """The elements stride·q + phase of one axis, for q in [first, first + count): each is the sum over
    ``kernel_offsets`` of g[q - shift - i·gap]·w[kernel_offsets[i]]."""

    kernel_offsets: tuple[int, ...]
    shift: int
    gap: int


def phases(extent: int, stride: int, dilation: int) -> list[Phase]:
    """Return the taps that each residue modulo ``stride`` of a padded input's positions meets, without products by
    zero."""
    common = math.gcd(stride, dilation)
    result = []
    for phase in range(stride):
        mine = tuple(t for t in range(extent) if (t * dilation - phase) % stride == 0)
        shift = (mine[0] * dilation - phase) // stride if mine else 0
        result.append(Phase(mine, shift, dilation // common))
    return result


@decompose.rule(convolution_input_gradient_p)
def _input_gradient(
    g: Array,
    w: Array,
    *,
    size: Shape,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
    algorithm: str = AUTO,
) -> Array:
    if _wants_float32(g, algorithm):
        attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "algorithm": algorithm}
        return in_float32(convolution_input_gradient_p, g, w, size=size, **attrs)
    if winograd.chosen(algorithm, g, w.shape, size, stride, dilation, groups):
        return winograd.input_gradient(g, w, padding, size)
    cotangent = channels_last(g)
    weight = _transposed_weight(w, groups)
    first = tuple(low // step for (low, _), step in zip(padding, stride, strict=True))
    count = tuple(-(-(low + n) // step) - f for n, (low, _), step, f in zip(size, padding, stride, first, strict=True))
    per_axis = [phases(*each) for each in zip(w.shape[2:], stride, dilation, strict=True)]
    parts = [
        _one_phase(cotangent, weight, combination, first, count, groups) for combination in itertools.product(*per_axis)
    ]
    whole = interleaved(parts, stride)
    starts = (0, *(low - f * step for (low, _), f, step in zip(padding, first, stride, strict=True)), 0)
    return channels_first(zero_extended(whole, starts, (whole.shape[0], *size, whole.shape[-1])))


def _transposed_weight(w: Array, groups: int) -> Array:
    """Transpose w[K, C/groups, *kernel] to [C, K/groups, *kernel]."""
    if groups == 1:
        return permute(w, (1, 0, *range(2, w.ndim)))
    split = reshape(w, (groups, w.shape[0] // groups, *w.shape[1:]))
    swapped = permute(split, (0, 2, 1, *range(3, split.ndim)))
    return reshape(swapped, (groups * w.shape[1], w.shape[0] // groups, *w.shape[2:]))


def _one_phase(g: Array, w: Array, along: Sequence[Phase], first: Shape, count: Shape, groups: int) -> Array:
    """Convolve with stride 1 with the taps of one phase, in reverse order."""
    kernel = tuple(len(p.kernel_offsets) for p in along)
    if 0 in kernel:
        return cast(full_like(g, 0, (g.shape[0], *count, w.shape[0])), sum_dtype(g.dtype))
    starts = tuple(f - p.shift - (n - 1) * p.gap for f, p, n in zip(first, along, kernel, strict=True))
    sizes = tuple(n + (k - 1) * p.gap for n, p, k in zip(count, along, kernel, strict=True))
    extended = zero_extended(g, (0, *starts, 0), (g.shape[0], *sizes, g.shape[-1]))
    gaps = tuple(p.gap for p in along)
    return correlate(extended, _chosen(w, along), (1,) * len(kernel), gaps, groups)


def _chosen(w: Array, along: Sequence[Phase]) -> Array:
    """Return the taps of one phase in reverse order."""
    for axis, phase in enumerate(along, 2):
        offsets = phase.kernel_offsets
        step = offsets[1] - offsets[0] if len(offsets) > 1 else 1
        if (offsets[0], len(offsets), step) != (0, w.shape[axis], 1):
            starts, sizes, steps = [0] * w.ndim, list(w.shape), [1] * w.ndim
            starts[axis], sizes[axis], steps[axis] = offsets[0], len(offsets), step
            w = apply(slice_p, w, starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))
        w = flip(w, axis)
    return w


def interleaved(parts: Sequence[Array], stride: Shape) -> Array:
    """Arrays [N, *counts, C], one for each phase in row-major order, as one [N, *(count·stride), C]."""
    if len(parts) == 1:
        return parts[0]
    spatial = len(stride)
    n, *counts, channels = parts[0].shape
    together = concat_same([expand_dims(p, spatial + 1) for p in parts], spatial + 1)
    split = reshape(together, (n, *counts, *stride, channels))
    pairs = [axis for i in range(spatial) for axis in (1 + i, 1 + spatial + i)]
    order = permute(split, (0, *pairs, 2 * spatial + 1))
    return reshape(order, (n, *(c * s for c, s in zip(counts, stride, strict=True)), channels))


# --- a new axis ---------------------------------------------------------------------------------------------------
# Whatever the elements are put together to, they are carried out as each would be alone, so that bits are the same.


def _resolved_algorithm(
    algorithm: str, x: Array, w: Array, out_size: Shape, stride: Shape, dilation: Shape, groups: int
) -> str:
    """Return the algorithm of one element's convolution; ``x`` and ``w`` have a first axis for elements."""
    one = aval(x.shape[1:], float32 if _wants_float32(x, algorithm) else x.dtype)
    is_winograd = winograd.chosen(algorithm, one, w.shape[1:], out_size, stride, dilation, groups)
    return WINOGRAD if is_winograd else DIRECT


@batching(convolution_p)
def _convolution_batched(
    size: int, x: Array, w: Array, *, stride: Shape, padding: Pairs, dilation: Shape, groups: int, algorithm: str = AUTO
) -> Array | None:
    out_size = _out_size(x.shape[3:], w.shape[3:], stride, padding, dilation)
    resolved = _resolved_algorithm(algorithm, x, w, out_size, stride, dilation, groups)
    attrs: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if w.shape[0] == 1:
        result = apply(convolution_p, merged_rows(x), bare(w), **attrs, algorithm=resolved)
        return split_rows(result, size, x.shape[1])
    if x.shape[0] != 1 or groups != 1 or resolved == WINOGRAD:
        return None
    result = apply(convolution_p, bare(x), merged_rows(w), **attrs, algorithm=resolved)
    return moveaxis(reshape(result, (x.shape[1], size, w.shape[1], *out_size)), 1, 0)


@batching(convolution_input_gradient_p)
def _input_gradient_batched(
    count: int,
    g: Array,
    w: Array,
    /,
    *,
    size: Shape,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
    algorithm: str = AUTO,
) -> Array | None:
    if w.shape[0] != 1:
        return None
    resolved = _resolved_algorithm(algorithm, g, w, size, stride, dilation, groups)
    result = apply(
        convolution_input_gradient_p, merged_rows(g), bare(w), size=size, stride=stride, padding=padding,
        dilation=dilation, groups=groups, algorithm=resolved,
    )  # fmt: skip
    return split_rows(result, count, g.shape[1])


axes.register(convolution_weight_gradient_p, LOOPED)
