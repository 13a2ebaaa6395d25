"""Padding and the gradient of slices, which are each other's transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.axes import Aligned, Each
from runnel.core.dispatch import apply
from runnel.core.dtypes import bool_
from runnel.core.errors import ShapeError
from runnel.core.rules import Tangents
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.loops.rules import Padding
from runnel.ops.arguments import Array, is_single, require_same_dtype
from runnel.ops.creation_like import full_like, zeros_like
from runnel.ops.elementwise.arithmetic import multiply
from runnel.ops.elementwise.comparison import where
from runnel.ops.promotion import constant
from runnel.ops.shapes.broadcasting import broadcast_to, sum_keepdims
from runnel.ops.shapes.pieces import concat_same, flip, narrow, slice_p

Widths = tuple[tuple[int, int, int], ...]  # for each axis: elements before, elements after, distance of neighbors

pad_p = Op(
    "pad",
    "x, value, *, widths",
    "x with `low` elements of value before, `high` after, and neighbors `step` apart, along each axis of widths.",
)
lower.register(pad_p, Padding())
cost.register(pad_p, lambda x, value, *, widths: 0)


def padded_shape(shape: Shape, widths: Widths) -> Shape:
    """Return the shape that padding by ``widths`` produces."""
    pairs = zip(shape, widths, strict=True)
    return tuple(low + high + ((n - 1) * step + 1 if n else 0) for n, (low, high, step) in pairs)


@abstract_eval.rule(pad_p)
def _pad_abstract_eval(x: ShapedArray, value: ShapedArray, *, widths: Widths) -> ShapedArray:
    require_same_dtype("pad", x, value)
    if len(widths) != x.ndim or value.shape != (1,) * x.ndim or any(min(w) < 0 or w[2] < 1 for w in widths):
        raise ShapeError(
            f"[pad] shape {x.shape} with a value of shape {value.shape} needs {x.ndim} widths (low, high, step), not "
            f"negative, and a value of one element; got {widths}."
        )
    return aval(padded_shape(x.shape, widths), x.dtype)


@reference.rule(pad_p)
def _pad_reference(x: Any, value: Any, *, widths: Widths) -> Any:
    result = np.empty(padded_shape(x.shape, widths), x.dtype)
    result[...] = value
    spans = zip(x.shape, widths, strict=True)
    result[tuple(slice(low, low + n * step, step) for n, (low, _, step) in spans)] = x
    return result


@vjp.rule(pad_p)
def _pad_vjp(
    g: Array, out: Array, x: Array, value: Array, *, widths: Widths
) -> tuple[Callable[[], Array], Callable[[], Array]]:
    def into_x() -> Array:
        starts = tuple(low if n else 0 for n, (low, _, _) in zip(x.shape, widths, strict=True))
        return apply(slice_p, g, starts=starts, sizes=x.shape, steps=tuple(step for _, _, step in widths))

    def into_value() -> Array:
        outside = apply(pad_p, zeros_like(x), constant(x, 1, x.dtype, x.ndim), widths=widths)
        return sum_keepdims(multiply(g, outside), tuple(range(x.ndim)))

    return into_x, into_value


@jvp.rule(pad_p)
def _pad_jvp(tangents: Tangents, out: Array, x: Array, value: Array, *, widths: Widths) -> list[Array]:
    dx, around = (zeros_like(y) if t is None else t for t, y in zip(tangents, (x, value), strict=True))
    return [apply(pad_p, dx, around, widths=widths)]


class _Padded(Aligned):
    """Of one value around all elements. Where each has its own, it is chosen where the padding is."""

    def batched(self, op: Op, size: int, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        x, value = operands
        if value.shape[0] == 1:
            return super().batched(op, size, operands, attrs)
        inside = super().batched(op, size, (x, constant(x, 0, x.dtype, x.ndim)), attrs)
        like = full_like(x, False, (1, *x.shape[1:]), bool_)
        outside = super().batched(op, 1, (like, constant(x, True, bool_, x.ndim)), attrs)
        return where(outside, value, inside)


axes.register(pad_p, _Padded({"widths": Each((0, 0, 1))}))


@vjp.rule(slice_p)
def _slice_vjp(g: Array, out: Array, x: Array, *, starts: Shape, sizes: Shape, steps: Shape) -> tuple[Array]:
    return (embedded_in_zeros(g, x.shape, starts, sizes, steps),)


def embedded_in_zeros(g: Array, shape: Shape, starts: Shape, sizes: Shape, steps: Shape) -> Array:
    """Place ``g`` into zeros of ``shape`` where a slice is: reversed for negative steps, spread by its steps."""
    if 0 in sizes:
        return full_like(g, 0, shape)
    widths: list[tuple[int, int, int]] = []
    for axis, (n, start, size, step) in enumerate(zip(shape, starts, sizes, steps, strict=True)):
        first, last = sorted((start, start + step * (size - 1)))
        if step < 0:
            g = flip(g, axis)
        widths.append((first, n - 1 - last, abs(step) if size > 1 else 1))
    return pad_spread(g, tuple(widths), 0)


def pad_spread(x: Array, widths: Widths, value: bool | int | float) -> Array:
    """Place ``x`` into a box of ``value``, its elements ``step`` apart, by ``widths`` of (low, high, step)."""
    if all(w == (0, 0, 1) for w in widths):
        return x
    return apply(pad_p, x, constant(x, value, x.dtype, x.ndim), widths=widths)


MODES = ("zeros", "constant", "reflect", "replicate", "circular")


def pad(x: Array, widths: Sequence[tuple[int, int]], value: bool | int | float = 0, mode: str = "constant") -> Array:
    """Add ``widths[axis] = (before, after)`` elements along each axis.

    ``mode`` selects their values: ``value`` ("constant" or "zeros"), the mirrored neighbors ("reflect"), the border
    ("replicate"), or the opposite end ("circular")."""
    if is_single(widths) or len(widths) != x.ndim or any(min(pair) < 0 for pair in widths):
        raise ShapeError(f"[pad] shape {x.shape} needs {x.ndim} pairs of non-negative widths, got {widths!r}.")
    if mode not in MODES:
        raise ValueError(f"[pad] mode is one of {', '.join(MODES)}; got {mode!r}.")
    if mode in ("constant", "zeros"):
        return pad_spread(x, tuple((before, after, 1) for before, after in widths), value)
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = concat_same(_with_border(x, axis, before, after, mode), axis)
    return x


def _with_border(x: Array, axis: int, before: int, after: int, mode: str) -> list[Array]:
    """Return the elements before, ``x``, and the elements after it."""
    n = x.shape[axis]
    most = {"reflect": n - 1, "circular": n, "replicate": before + after if n else 0}[mode]
    if max(before, after) > most:
        raise ShapeError(f"[pad] mode '{mode}' can add at most {most} to axis {axis} of shape {x.shape}.")
    if mode == "replicate":
        first, last = (
            broadcast_to(narrow(x, axis, at, 1), (*x.shape[:axis], size, *x.shape[axis + 1 :]))
            for at, size in ((0, before), (n - 1, after))
        )
    elif mode == "circular":
        first, last = narrow(x, axis, n - before, before), narrow(x, axis, 0, after)
    else:
        first, last = flip(narrow(x, axis, 1, before), axis), flip(narrow(x, axis, n - 1 - after, after), axis)
    return [part for part in (first, x, last) if part.shape[axis]]


def zero_extended(x: Array, starts: Sequence[int], sizes: Sequence[int]) -> Array:
    """Return ``sizes`` elements of ``x`` from ``starts`` on along each axis; elements outside ``x`` are 0."""
    first = [min(max(s, 0), n) for s, n in zip(starts, x.shape, strict=True)]
    last = [min(max(s + size, f), n) for s, size, f, n in zip(starts, sizes, first, x.shape, strict=True)]
    inner = tuple(b - a for a, b in zip(first, last, strict=True))
    if 0 in inner:
        return full_like(x, 0, tuple(sizes))
    if inner != x.shape:
        x = apply(slice_p, x, starts=tuple(first), sizes=inner, steps=(1,) * x.ndim)
    widths = tuple((a - s, s + size - b, 1) for a, b, s, size in zip(first, last, starts, sizes, strict=True))
    return pad_spread(x, widths, 0)
