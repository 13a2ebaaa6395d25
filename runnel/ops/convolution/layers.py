"""Convolutions as layers call them: with stride, padding, groups and bias over x[N, C, *sizes].

Convolutions of integers are exact modulo 2ⁿ: a product of integer matrices for each tap of the kernel.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from runnel.core.avals import Shape, aval
from runnel.core.dispatch import apply
from runnel.core.dtypes import DType, bool_, float32
from runnel.core.errors import ShapeError
from runnel.core.tables import Op, abstract_eval
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast
from runnel.ops.convolution import winograd
from runnel.ops.convolution.primitives import ALGORITHMS, AUTO, WINOGRAD, convolution_input_gradient_p, convolution_p
from runnel.ops.convolution.windows import (
    Pairs,
    channels_first,
    channels_last,
    effective_size,
    kernel_slices,
    padding_pairs,
    per_axis,
)
from runnel.ops.elementwise.arithmetic import add, subtract
from runnel.ops.elementwise.complex_parts import complex, imag, real
from runnel.ops.linear_algebra.contraction import matmul
from runnel.ops.linear_algebra.dots import operand_dtype, sum_dtype
from runnel.ops.promotion import common_dtype
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.padding import pad, pad_spread
from runnel.ops.shapes.pieces import flip, narrow
from runnel.ops.shapes.views import permute, reshape


def require_fit(op: Op, x: Array, w: Array, **attrs: Any) -> Shape:
    """Return the shape of the result; raise the errors of the float convolution ``op`` for these shapes."""
    shape: Shape = abstract_eval[op](aval(x.shape, float32), aval(w.shape, float32), **attrs).shape
    return shape


def convolved(x: Array, w: Array, stride: Shape, padding: Pairs, dilation: Shape, groups: int) -> Array:
    """Convolve integers ``x`` (N, C, *sizes) and ``w`` (K, C/groups, *kernel), whose shapes must fit."""
    kernel, count = w.shape[2:], w.shape[0]
    views = kernel_slices(pad(channels_last(x), ((0, 0), *padding, (0, 0))), kernel, stride, dilation)
    split = reshape(w, (groups, count // groups, w.shape[1], len(views)))
    parts = []
    for tap, view in enumerate(views):
        rows = reshape(view, (math.prod(view.shape[:-1]), groups, w.shape[1]))
        weights = reshape(narrow(split, 3, tap, 1), split.shape[:3])
        parts.append(matmul(permute(rows, (1, 0, 2)), permute(weights, (0, 2, 1))))
    total = permute(functools.reduce(add, parts), (1, 0, 2))
    return channels_first(reshape(total, (*views[0].shape[:-1], count)))


def transposed(x: Array, w: Array, size: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int) -> Array:
    """Apply the transposed convolution with ``w`` (C, K/groups, *kernel): the flipped kernel over ``x`` with gaps."""
    channels, per_group, *kernel = w.shape
    spatial = len(kernel)
    reach = [gap * (extent - 1) for gap, extent in zip(dilation, kernel, strict=True)]
    widths = [
        (r, max(low + n - (m - 1) * step - 1, 0), step)
        for r, n, (low, _), m, step in zip(reach, size, padding, x.shape[2:], stride, strict=True)
    ]
    spread = pad_spread(x, ((0, 0, 1), (0, 0, 1), *widths), 0)
    grouped = reshape(w, (groups, channels // groups, per_group, *kernel))
    turned = permute(flip(grouped, tuple(range(3, 3 + spatial))), (0, 2, 1, *range(3, 3 + spatial)))
    y = convolved(
        spread, reshape(turned, (groups * per_group, channels // groups, *kernel)), (1,) * spatial,
        ((0, 0),) * spatial, dilation, groups,
    )  # fmt: skip
    for axis, (n, (low, _)) in enumerate(zip(size, padding, strict=True), 2):
        y = narrow(y, axis, low, n)
    return y


def conv(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] | Sequence[tuple[int, int]] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    algorithm: str = AUTO,
) -> Array:
    """Convolve ``x`` (N, C, *sizes) with ``weight`` (K, C/groups, *kernel), and add ``bias`` (K).

    There are one to three spatial axes. As in PyTorch, the kernel is not flipped. Strides, dilations and paddings are
    one int or one for each spatial axis; padding may also be pairs (before, after), "same" or "valid". Half precision
    is summed in float32 and rounded once; integers have integer results. ShapeError if shapes do not fit.

    ``algorithm`` is "auto" (decided by shapes), "direct" (a sum over taps and channels) or "winograd" (only 3×3
    kernels of stride 1: docs/internals/winograd.md states its error)."""
    spatial = _spatial("conv", x, weight)
    groups = operator.index(groups)
    steps = per_axis("conv", "stride", stride, spatial)
    gaps = per_axis("conv", "dilation", dilation, spatial)
    pairs = padding_pairs("conv", padding, weight.shape[2:], steps, gaps)

    if algorithm not in ALGORITHMS:
        raise ValueError(f"[conv] algorithm must be one of {', '.join(ALGORITHMS)}; got {algorithm!r}.")
    if algorithm == WINOGRAD and not winograd.fits(weight.shape[2:], steps, gaps, groups):
        raise ShapeError(
            f"[conv] algorithm='winograd' is for 3×3 kernels of stride 1, dilation 1 and one group; this one is of "
            f"{weight.shape[2:]}, stride {steps}, dilation {gaps} and groups={groups}."
        )
    how = {} if algorithm == AUTO else {"algorithm": algorithm}

    def product(a: Array, w: Array) -> Array:
        attrs: dict[str, Any] = {"stride": steps, "padding": pairs, "dilation": gaps, "groups": groups}
        if a.dtype.is_integer:
            require_fit(convolution_p, a, w, **attrs)
            return convolved(a, w, **attrs)
        return apply(convolution_p, a, w, **attrs, **how)

    return _biased("conv", product, x, weight, bias)


def conv_transpose(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Array:
    """Apply the transpose of the convolution with these arguments.

    ``x`` (N, C, *sizes) and ``weight`` (C, K/groups, *kernel) return (N, K, (size - 1)·stride - 2·padding +
    dilation·(kernel - 1) + output_padding + 1)."""
    spatial = _spatial("conv_transpose", x, weight)
    groups = operator.index(groups)
    steps = per_axis("conv_transpose", "stride", stride, spatial)
    gaps = per_axis("conv_transpose", "dilation", dilation, spatial)
    around = per_axis("conv_transpose", "padding", padding, spatial)
    asked = per_axis("conv_transpose", "output_padding", output_padding, spatial)
    if any(not 0 <= e < max(step, gap) for e, step, gap in zip(asked, steps, gaps, strict=True)):
        raise ShapeError(
            f"[conv_transpose] output_padding {asked} must be smaller than the stride {steps} or the dilation {gaps}."
        )
    extra = tuple(min(e, step - 1) for e, step in zip(asked, steps, strict=True))
    pairs = tuple((p, p - min(p, e - f)) for p, e, f in zip(around, asked, extra, strict=True))  # more of the whole
    size = tuple(
        (n - 1) * step - low - high + effective_size(extent, gap) + e
        for n, step, (low, high), extent, gap, e in zip(
            x.shape[2:], steps, pairs, weight.shape[2:], gaps, extra, strict=True
        )
    )
    if min(size) < 1:
        raise ShapeError(f"[conv_transpose] padding {around} leaves nothing of the spatial shape: {size}.")
    # no kernel reaches positions after the whole
    behind = [(0, e - f - (low - high)) for e, f, (low, high) in zip(asked, extra, pairs, strict=True)]

    def product(a: Array, w: Array) -> Array:
        attrs: dict[str, Any] = {"size": size, "stride": steps, "padding": pairs, "dilation": gaps, "groups": groups}
        if a.dtype.is_integer:
            require_fit(convolution_input_gradient_p, a, w, **attrs)
            y = transposed(a, w, **attrs)
        else:
            y = apply(convolution_input_gradient_p, a, w, **attrs)
        return pad(y, ((0, 0), (0, 0), *behind)) if any(high for _, high in behind) else y

    return _biased("conv_transpose", product, x, weight, bias)


def _spatial(name: str, x: Array, weight: Array) -> int:
    if x.ndim != weight.ndim or not 3 <= x.ndim <= 5:
        raise ShapeError(
            f"[{name}] x of shape {x.shape} and a weight of shape {weight.shape} need the same one to three spatial "
            "axes behind batch and channels."
        )
    return int(x.ndim - 2)


def _biased(name: str, product: Callable[[Array, Array], Array], x: Array, weight: Array, bias: Array | None) -> Array:
    """Return the product plus the bias, in float32, float64 or integers; complex numbers are multiplied by parts.

    The bias is added channels-last, where sums over all but channels are fast."""
    common: DType = common_dtype(convolution_p, (x, weight))
    if common.is_complex:
        return _of_parts(name, product, cast(x, common), cast(weight, common), bias)
    common = float32 if common is bool_ else common
    multiplied = operand_dtype(common) if common.is_float else common
    dtype = sum_dtype(multiplied) if common.is_float else common
    y = product(cast(x, multiplied), cast(weight, multiplied))
    if bias is not None:
        _require_bias(name, bias, y)
        y = channels_first(add(channels_last(y), for_each_image(cast(bias, dtype), y)))
    return cast(y, common)


def _of_parts(name: str, product: Callable[[Array, Array], Array], x: Array, w: Array, bias: Array | None) -> Array:
    (a, b), (c, d) = (real(x), imag(x)), (real(w), imag(w))
    y = complex(subtract(product(a, c), product(b, d)), add(product(a, d), product(b, c)))
    if bias is None:
        return y
    _require_bias(name, bias, y)
    return cast(add(y, reshape(bias, (-1, *(1,) * (y.ndim - 2)))), x.dtype)


def _require_bias(name: str, bias: Array, y: Array) -> None:
    if bias.shape != (y.shape[1],):
        raise ShapeError(
            f"[{name}] a bias of shape ({y.shape[1]},) is needed, one number for each channel of the result; got "
            f"{bias.shape}."
        )


def for_each_image(vector: Array, y: Array) -> Array:
    """Reshape one number for each channel to (N, 1, …, C), so that its gradient is summed by image first."""
    flat = reshape(vector, (*(1,) * (y.ndim - 1), vector.shape[0]))
    return broadcast_to(flat, (y.shape[0], *(1,) * (y.ndim - 2), vector.shape[0]))
