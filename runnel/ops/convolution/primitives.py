"""Convolutions over one, two or three spatial axes: the primitive and its two transposes, one for each operand.

They take PyTorch's shapes, x[N, C, *sizes] and w[K, C/groups, *kernel], and are made of simpler ops in
``convolution_rules.py`` (table ``decompose``); of bfloat16 they give float32, as products of matrices do. Each is
bilinear, and the gradients of each are the other two. As in all networks, "convolution" is correlation: the kernel is
not flipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.dispatch import apply
from runnel.core.errors import ShapeError
from runnel.core.rules import bilinear
from runnel.core.tables import Op, abstract_eval, cost, jvp, reference, vjp
from runnel.ops.arguments import Array, require_dtype, require_same_dtype
from runnel.ops.conversion import cast
from runnel.ops.convolution.windows import Pairs, effective_size, positions_along
from runnel.ops.linear_algebra.dots import OPERAND_DTYPES, sum_dtype, summed

AUTO: Final = "auto"
DIRECT: Final = "direct"
WINOGRAD: Final = "winograd"
ALGORITHMS: Final = (AUTO, DIRECT, WINOGRAD)  # what `algorithm` may be: chosen by shapes, a sum over taps, F(4×4, 3×3)

convolution_p = Op(
    "convolution",
    "x, w, *, stride, padding, dilation, groups, algorithm",
    "y[n, k, i] = Σ x[n, c, stride·i + dilation·tap - padding]·w[k, c, tap] over the channels c of k's group.",
)
convolution_input_gradient_p = Op(
    "convolution_input_gradient",
    "g, w, *, size, stride, padding, dilation, groups, algorithm",
    "The cotangent of x, of spatial shape size, for a cotangent g of convolution(x, w); as a layer, a transposed one.",
)
convolution_weight_gradient_p = Op(
    "convolution_weight_gradient",
    "x, g, *, kernel, stride, padding, dilation, groups, algorithm",
    "The cotangent of w, of spatial shape kernel, for a cotangent g of convolution(x, w).",
)

for _op in (convolution_p, convolution_input_gradient_p, convolution_weight_gradient_p):
    jvp.register(_op, bilinear(_op))

# --- shapes -------------------------------------------------------------------------------------------------------


def _out_shape(op: Op, size: Shape, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape) -> Shape:
    """Return the spatial shape of a convolution's result; ShapeError if the kernel does not fit."""
    attrs = {"stride": stride, "padding": padding, "dilation": dilation}
    for name, numbers in attrs.items():
        if len(numbers) != len(size):
            raise ShapeError(f"[{op.name}] {len(size)} spatial axes {size} need as many numbers {name}; got {numbers}.")
    if min((*stride, *dilation)) < 1 or min(min(pair) for pair in padding) < 0:
        raise ShapeError(
            f"[{op.name}] strides and dilations are at least 1 and paddings at least 0; got {stride}, {dilation} and "
            f"{padding}."
        )
    padded = tuple(n + low + high for n, (low, high) in zip(size, padding, strict=True))
    reached = tuple(map(effective_size, kernel, dilation))
    if any(r > n for r, n in zip(reached, padded, strict=True)) or 0 in kernel:
        raise ShapeError(
            f"[{op.name}] a kernel of {kernel} with dilation {dilation} reaches over {reached} elements; the input of "
            f"{size} with padding {padding} has only {padded}."
        )
    return tuple(positions_along(n, *each) for n, *each in zip(padded, kernel, stride, dilation, strict=True))


def _require_operands(op: Op, first: ShapedArray, second: ShapedArray) -> None:
    require_same_dtype(op.name, first, second)
    require_dtype(op.name, first.dtype, OPERAND_DTYPES)
    if first.ndim != second.ndim or not 3 <= first.ndim <= 5:
        raise ShapeError(
            f"[{op.name}] operands of shapes {first.shape} and {second.shape} need a batch axis, a channel axis and "
            "the same one to three spatial axes."
        )


def _require_groups(
    op: Op, channels: int, results: int, groups: int, per_group: int | None, last: int | None = None
) -> None:
    if groups < 1 or channels % groups or results % groups:
        raise ShapeError(
            f"[{op.name}] {channels} channels in and {results} out must both be multiples of groups={groups}."
        )
    if per_group is not None and per_group != channels // groups:
        hint = (
            " Channels are axis 1; these seem to be the last: x.movedim(-1, 1)." if last == per_group * groups else ""
        )
        raise ShapeError(
            f"[{op.name}] an input of {channels} channels in {groups} group(s) needs a weight of shape "
            f"(out, {channels // groups}, ...); this one takes {per_group} channels.{hint}"
        )


@abstract_eval.rule(convolution_p)
def _convolution_abstract_eval(
    x: ShapedArray,
    w: ShapedArray,
    *,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
    algorithm: str = AUTO,
) -> ShapedArray:
    _require_operands(convolution_p, x, w)
    _require_groups(convolution_p, x.shape[1], w.shape[0], groups, w.shape[1], x.shape[-1])
    out_size = _out_shape(convolution_p, x.shape[2:], w.shape[2:], stride, padding, dilation)
    return aval((x.shape[0], w.shape[0], *out_size), sum_dtype(x.dtype))


@abstract_eval.rule(convolution_input_gradient_p)
def _input_gradient_abstract_eval(
    g: ShapedArray,
    w: ShapedArray,
    *,
    size: Shape,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
    algorithm: str = AUTO,
) -> ShapedArray:
    op = convolution_input_gradient_p
    _require_operands(op, g, w)
    _require_groups(op, w.shape[1] * groups, w.shape[0], groups, None)
    out_size = _out_shape(op, size, w.shape[2:], stride, padding, dilation)
    if g.shape[1:] != (w.shape[0], *out_size):
        raise ShapeError(
            f"[{op.name}] g of shape {g.shape} with a weight of shape {w.shape} should have the shape "
            f"(batch, {w.shape[0]}, {', '.join(map(str, out_size))}) that a convolution over {size} gives."
        )
    return aval((g.shape[0], w.shape[1] * groups, *size), sum_dtype(g.dtype))


@abstract_eval.rule(convolution_weight_gradient_p)
def _weight_gradient_abstract_eval(
    x: ShapedArray,
    g: ShapedArray,
    *,
    kernel: Shape,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
    algorithm: str = AUTO,
) -> ShapedArray:
    op = convolution_weight_gradient_p
    _require_operands(op, x, g)
    _require_groups(op, x.shape[1], g.shape[1], groups, None)
    out_size = _out_shape(op, x.shape[2:], kernel, stride, padding, dilation)
    if (g.shape[0], *g.shape[2:]) != (x.shape[0], *out_size):
        raise ShapeError(
            f"[{op.name}] g of shape {g.shape} should have batch {x.shape[0]} and the spatial shape {out_size} that a "
            f"convolution of {x.shape} with a kernel of {kernel} gives."
        )
    return aval((g.shape[1], x.shape[1] // groups, *kernel), sum_dtype(x.dtype))


# --- gradients ----------------------------------------------------------------------------------------------------

Lazy = Callable[[], Array]


@vjp.rule(convolution_p)
def _convolution_vjp(g: Array, out: Array, x: Array, w: Array, **attrs: Any) -> tuple[Lazy, Lazy]:
    g = cast(g, x.dtype)
    return (
        lambda: cast(apply(convolution_input_gradient_p, g, w, size=x.shape[2:], **attrs), x.dtype),
        lambda: cast(apply(convolution_weight_gradient_p, x, g, kernel=w.shape[2:], **attrs), w.dtype),
    )


@vjp.rule(convolution_input_gradient_p)
def _input_gradient_vjp(g: Array, out: Array, y: Array, w: Array, *, size: Shape, **attrs: Any) -> tuple[Lazy, Lazy]:
    g = cast(g, y.dtype)
    return (
        lambda: cast(apply(convolution_p, g, w, **attrs), y.dtype),
        lambda: cast(apply(convolution_weight_gradient_p, g, y, kernel=w.shape[2:], **attrs), w.dtype),
    )


@vjp.rule(convolution_weight_gradient_p)
def _weight_gradient_vjp(g: Array, out: Array, x: Array, y: Array, *, kernel: Shape, **attrs: Any) -> tuple[Lazy, Lazy]:
    g = cast(g, x.dtype)
    return (
        lambda: cast(apply(convolution_input_gradient_p, y, g, size=x.shape[2:], **attrs), x.dtype),
        lambda: cast(apply(convolution_p, x, g, **attrs), y.dtype),
    )


# --- the meaning in NumPy, tap by tap -----------------------------------------------------------------------------


def _per_tap(
    kernel: Shape, out_size: Shape, stride: Shape, dilation: Shape
) -> list[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Return each tap with the part of the padded input that it reads at all positions."""
    return [
        (
            tap,
            tuple(
                slice(t * gap, t * gap + (n - 1) * step + 1, step)
                for t, gap, n, step in zip(tap, dilation, out_size, stride, strict=True)
            ),
        )
        for tap in np.ndindex(*kernel)
    ]


def _grouped(x: Any, axis: int, groups: int) -> Any:
    return x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])


@reference.rule(convolution_p)
def _convolution_reference(
    x: Any, w: Any, *, stride: Shape, padding: Pairs, dilation: Shape, groups: int, algorithm: str = AUTO
) -> Any:
    x, w = summed(x), summed(w)
    padded = _grouped(np.pad(x, ((0, 0), (0, 0), *padding)), 1, groups)
    weight = _grouped(w, 0, groups)
    out_size = _out_shape(convolution_p, x.shape[2:], w.shape[2:], stride, padding, dilation)
    result: Any = np.zeros((x.shape[0], groups, w.shape[0] // groups, *out_size), x.dtype)
    with np.errstate(all="ignore"):
        for tap, region in _per_tap(w.shape[2:], out_size, stride, dilation):
            result += np.einsum("ngc...,gkc->ngk...", padded[(..., *region)], weight[(..., *tap)])
    return result.reshape(x.shape[0], w.shape[0], *out_size)


@reference.rule(convolution_input_gradient_p)
def _input_gradient_reference(
    g: Any,
    w: Any,
    *,
    size: Shape,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
    algorithm: str = AUTO,
) -> Any:
    g, w = summed(g), summed(w)
    weight = _grouped(w, 0, groups)
    padded = tuple(n + low + high for n, (low, high) in zip(size, padding, strict=True))
    result: Any = np.zeros((g.shape[0], groups, w.shape[1], *padded), g.dtype)
    with np.errstate(all="ignore"):
        for tap, region in _per_tap(w.shape[2:], g.shape[2:], stride, dilation):
            result[(..., *region)] += np.einsum("ngk...,gkc->ngc...", _grouped(g, 1, groups), weight[(..., *tap)])
    inside = tuple(slice(low, low + n) for n, (low, _) in zip(size, padding, strict=True))
    return result.reshape(g.shape[0], w.shape[1] * groups, *padded)[(..., *inside)]


@reference.rule(convolution_weight_gradient_p)
def _weight_gradient_reference(
    x: Any,
    g: Any,
    *,
    kernel: Shape,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
    algorithm: str = AUTO,
) -> Any:
    x, g = summed(x), summed(g)
    padded = _grouped(np.pad(x, ((0, 0), (0, 0), *padding)), 1, groups)
    cotangent = _grouped(g, 1, groups)
    flat = cotangent.reshape(*cotangent.shape[:3], -1)
    result: Any = np.zeros((groups, g.shape[1] // groups, x.shape[1] // groups, *kernel), x.dtype)
    with np.errstate(all="ignore"):
        for tap, region in _per_tap(kernel, g.shape[2:], stride, dilation):
            patches = padded[(..., *region)].reshape(*padded.shape[:3], -1)
            result[(..., *tap)] = np.einsum("ngcp,ngkp->gkc", patches, flat)
    return result.reshape(g.shape[1], x.shape[1] // groups, *kernel)


@cost.rule(convolution_p)
def _convolution_cost(x: ShapedArray, w: ShapedArray, **attrs: Any) -> int:
    result = abstract_eval[convolution_p](x, w, **attrs)
    return 2 * result.size * math.prod(w.shape[1:])


@cost.rule(convolution_input_gradient_p)
def _input_gradient_cost(g: ShapedArray, w: ShapedArray, **attrs: Any) -> int:
    return 2 * g.size * math.prod(w.shape[1:])


@cost.rule(convolution_weight_gradient_p)
def _weight_gradient_cost(x: ShapedArray, g: ShapedArray, *, kernel: Shape, groups: int, **attrs: Any) -> int:
    return 2 * g.size * (x.shape[1] // groups) * math.prod(kernel)
