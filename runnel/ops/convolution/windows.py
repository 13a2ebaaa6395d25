"""Sliding windows over spatial axes as views (im2col), and the arguments of layers over spatial axes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.dispatch import apply
from runnel.core.errors import ShapeError
from runnel.core.rules import linear
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.loops.rules import View
from runnel.ops.arguments import Array, as_shape, is_single
from runnel.ops.elementwise.arithmetic import add
from runnel.ops.shapes.padding import embedded_in_zeros
from runnel.ops.shapes.pieces import narrow, slice_p
from runnel.ops.shapes.views import AxisMap, Leading, permute, squeeze

im2col_p = Op(
    "im2col",
    "x, *, kernel, stride, dilation",
    "x[N, *sizes, C] as [N, *positions, *kernel, C]: element stride·i + dilation·tap along each spatial axis.",
)
jvp.register(im2col_p, linear(im2col_p))
axes.register(im2col_p, Leading())
cost.register(im2col_p, lambda x, *, kernel, stride, dilation: 0)


def effective_size(extent: int, dilation: int) -> int:
    """Return the number of elements that a dilated kernel of ``extent`` elements spans."""
    return (extent - 1) * dilation + 1


def positions_along(size: int, extent: int, stride: int, dilation: int) -> int:
    """Return the number of positions of a kernel along an axis; 0 if it is longer than the axis."""
    return max((size - effective_size(extent, dilation)) // stride + 1, 0)


@abstract_eval.rule(im2col_p)
def _im2col_abstract_eval(x: ShapedArray, *, kernel: Shape, stride: Shape, dilation: Shape) -> ShapedArray:
    if (
        not len(kernel) == len(stride) == len(dilation) == x.ndim - 2
        or min((*kernel, *stride, *dilation), default=1) < 1
    ):
        raise ShapeError(
            f"[windows] shape {x.shape} needs {x.ndim - 2} positive numbers each as kernel, stride and dilation; got "
            f"{kernel}, {stride}, {dilation}."
        )
    count = tuple(positions_along(n, *each) for n, *each in zip(x.shape[1:-1], kernel, stride, dilation, strict=True))
    return aval((x.shape[0], *count, *kernel, x.shape[-1]), x.dtype)


@reference.rule(im2col_p)
def _im2col_reference(x: Any, *, kernel: Shape, stride: Shape, dilation: Shape) -> Any:
    spatial = len(kernel)
    for axis, (extent, step, gap) in enumerate(zip(kernel, stride, dilation, strict=True), 1):
        count = positions_along(x.shape[axis], extent, step, gap)
        index = step * np.arange(count)[:, None] + gap * np.arange(extent)[None, :]
        gathered = np.take(x, index.reshape(-1), axis=axis).reshape(
            *x.shape[:axis], count, extent, *x.shape[axis + 1 :]
        )
        x = np.moveaxis(gathered, axis + 1, spatial + axis)
    return x


def _im2col_map(
    aval_in: ShapedArray, aval_out: ShapedArray, *, kernel: Shape, stride: Shape, dilation: Shape
) -> list[AxisMap]:
    spatial = len(kernel)
    middle: list[AxisMap] = [
        (0, ((1 + i, step), (1 + spatial + i, gap))) for i, (step, gap) in enumerate(zip(stride, dilation, strict=True))
    ]
    return [(0, ((0, 1),)), *middle, (0, ((1 + 2 * spatial, 1),))]


lower.register(im2col_p, View(_im2col_map))


@vjp.rule(im2col_p)
def _im2col_vjp(g: Array, out: Array, x: Array, *, kernel: Shape, stride: Shape, dilation: Shape) -> tuple[Array]:
    """Sum overlapping windows, axis by axis: place each tap's slice of ``g`` where it came from."""
    for i in reversed(range(len(kernel))):
        kernel_axis, axis = len(kernel) + 1 + i, 1 + i
        placed: list[Array] = []
        for tap in range(kernel[i]):
            piece = squeeze(narrow(g, kernel_axis, tap, 1), kernel_axis)
            whole = (*piece.shape[:axis], x.shape[axis], *piece.shape[axis + 1 :])
            starts, steps = [0] * piece.ndim, [1] * piece.ndim
            starts[axis], steps[axis] = tap * dilation[i], stride[i]
            placed.append(embedded_in_zeros(piece, whole, tuple(starts), piece.shape, tuple(steps)))
        g = functools.reduce(add, placed)
    return (g,)


def im2col(x: Array, kernel: Shape, stride: Shape, dilation: Shape) -> Array:
    """Return the windows [N, *positions, *kernel, C] of channels-last ``x``, as a view."""
    return apply(im2col_p, x, kernel=kernel, stride=stride, dilation=dilation)


def channels_last(x: Array) -> Array:
    """Permute [N, C, *sizes] to [N, *sizes, C]."""
    return permute(x, (0, *range(2, x.ndim), 1))


def channels_first(x: Array) -> Array:
    """Permute [N, *sizes, C] to [N, C, *sizes]."""
    return permute(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))


def kernel_slices(x: Array, kernel: Shape, stride: Shape, dilation: Shape) -> list[Array]:
    """Return a view for each tap, in row-major order, of its elements at all positions of channels-last ``x``."""
    count = tuple(positions_along(n, *each) for n, *each in zip(x.shape[1:-1], kernel, stride, dilation, strict=True))
    sizes, steps = (x.shape[0], *count, x.shape[-1]), (1, *stride, 1)
    slices = []
    for tap in np.ndindex(*kernel):
        starts = (0, *(t * gap for t, gap in zip(tap, dilation, strict=True)), 0)
        slices.append(x if sizes == x.shape else apply(slice_p, x, starts=starts, sizes=sizes, steps=steps))
    return slices


Pairs = tuple[tuple[int, int], ...]


def per_axis(name: str, what: str, value: int | Sequence[int], spatial: int) -> Shape:
    """Return one number for each spatial axis, from one int (also in a sequence) or one for each."""
    try:
        numbers = as_shape(name, value)
    except ShapeError:
        numbers = ()
    if is_single(value) or len(numbers) == 1:
        return numbers * spatial
    if len(numbers) != spatial:
        raise ShapeError(f"[{name}] {what} is an int or {spatial} ints, one for each spatial axis; got {value!r}.")
    return numbers


def padding_pairs(name: str, value: str | int | Sequence[Any], kernel: Shape, stride: Shape, dilation: Shape) -> Pairs:
    """Return padding as (before, after) for each spatial axis, from an int, ints, pairs, "valid" or "same"."""
    if isinstance(value, str):
        return _named_padding(name, value, kernel, stride, dilation)
    entries: Any = value
    if is_single(entries) or all(map(is_single, entries)):
        return tuple((n, n) for n in per_axis(name, "padding", entries, len(kernel)))
    pairs = tuple((operator.index(low), operator.index(high)) for low, high in entries)
    if len(pairs) != len(kernel):
        raise ShapeError(f"[{name}] padding needs a pair for each of {len(kernel)} spatial axes; got {value!r}.")
    return pairs


def _named_padding(name: str, value: str, kernel: Shape, stride: Shape, dilation: Shape) -> Pairs:
    if value == "valid":
        return ((0, 0),) * len(kernel)
    if value != "same":
        raise ShapeError(f"[{name}] padding is a number for each spatial axis, 'same' or 'valid'; got {value!r}.")
    if any(step != 1 for step in stride):
        raise ShapeError(f"[{name}] padding='same' needs stride 1, got {stride}; give the padding in numbers.")
    extra = [effective_size(extent, gap) - 1 for extent, gap in zip(kernel, dilation, strict=True)]
    return tuple((n // 2, n - n // 2) for n in extra)
