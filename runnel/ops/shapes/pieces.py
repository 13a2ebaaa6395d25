"""Slices and concatenations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.axes import SIZE, Aligned, Each, One
from runnel.core.composed import composed
from runnel.core.dispatch import apply
from runnel.core.errors import ShapeError
from runnel.core.lengths import as_size
from runnel.core.rules import Tangents, linear
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.core.viewing import viewing
from runnel.loops.rules import Concatenation, View
from runnel.ops.arguments import (
    Array,
    Axis,
    as_shape,
    as_tuple,
    is_single,
    normalize_axes,
    normalize_axis,
    require_same_dtype,
)
from runnel.ops.creation_like import zeros_like
from runnel.ops.promotion import meet
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.views import AxisMap, expand_dims, reshape

# --- slice --------------------------------------------------------------------------------------------------------

slice_p = Op("slice", "x, *, starts, sizes, steps", "Element i of the result's axis is element start + step·i of x's.")
cost.register(slice_p, lambda x, *, starts, sizes, steps: 0)
jvp.register(slice_p, linear(slice_p))
axes.register(slice_p, Aligned({"starts": Each(0), "sizes": Each(SIZE), "steps": Each(1)}))


@abstract_eval.rule(slice_p)
def _slice_abstract_eval(x: ShapedArray, *, starts: Shape, sizes: Shape, steps: Shape) -> ShapedArray:
    if not len(starts) == len(sizes) == len(steps) == x.ndim:
        raise ShapeError(
            f"[slice] shape {x.shape} needs {x.ndim} starts, sizes and steps; got {starts}, {sizes}, {steps}."
        )
    for n, start, size, step in zip(x.shape, starts, sizes, steps, strict=True):
        if size and not (0 <= start < n and 0 <= start + step * (size - 1) < n):
            raise ShapeError(f"[slice] starts {starts}, sizes {sizes}, steps {steps} leave the shape {x.shape}.")
    return aval(sizes, x.dtype)


@reference.rule(slice_p)
def _slice_reference(x: Any, *, starts: Shape, sizes: Shape, steps: Shape) -> Any:
    for axis, (start, size, step) in enumerate(zip(starts, sizes, steps, strict=True)):
        x = np.take(x, start + step * np.arange(size), axis=axis)
    return x


def _slice_map(
    aval_in: ShapedArray, aval_out: ShapedArray, *, starts: Shape, sizes: Shape, steps: Shape
) -> list[AxisMap]:
    return [(start, ((axis, step),)) for axis, (start, step) in enumerate(zip(starts, steps, strict=True))]


lower.register(slice_p, View(_slice_map))


def _along(x: Array, axis: int, start: int, size: int, step: int) -> dict[str, Any]:
    """Return the attributes of a slice along one axis."""
    starts, sizes, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], sizes[axis], steps[axis] = start, size, step
    return {"starts": tuple(starts), "sizes": tuple(sizes), "steps": tuple(steps)}


@viewing
def narrow(x: Array, axis: int, start: int, size: int) -> Array:
    """Return ``size`` elements along ``axis`` from ``start`` on, which counts from the end if it is negative."""
    place, first, count = normalize_axis("narrow", axis, x.ndim), as_size(start), as_size(size)
    n = x.shape[place]
    if not -n <= first <= n:
        raise ShapeError(
            f"[narrow] start lies between {-n} and {n} along axis {place} of shape {x.shape}; got {first}."
        )
    if count == n and first in (0, -n):
        return x.alias()
    return x.apply_view(slice_p, _along(x, place, first + n if first < 0 else first, count, 1))


def flip(x: Array, axis: Axis = None) -> Array:
    """Reverse the order along ``axis`` (None: along all axes)."""
    for a in normalize_axes("flip", axis, x.ndim):
        if x.shape[a] > 1:
            x = apply(slice_p, x, **_along(x, a, x.shape[a] - 1, x.shape[a], -1))
    return x


# --- concat -------------------------------------------------------------------------------------------------------

concat_p = Op("concat", "*xs, *, axis", "The arrays xs laid one after the other along axis.")
lower.register(concat_p, Concatenation())
cost.register(concat_p, lambda *xs, axis: 0)
reference.register(concat_p, lambda *xs, axis: np.concatenate(xs, axis=axis))


@abstract_eval.rule(concat_p)
def _concat_abstract_eval(*xs: ShapedArray, axis: int) -> ShapedArray:
    require_same_dtype("concat", *xs)
    first = xs[0].shape
    for x in xs:
        if len(x.shape) != len(first) or any(
            n != m for i, (n, m) in enumerate(zip(x.shape, first, strict=True)) if i != axis
        ):
            shapes = " and ".join(str(x.shape) for x in xs)
            raise ShapeError(f"[concat] shapes {shapes} do not fit: they may differ along axis {axis} only.")
    total = [x.shape[axis] for x in xs]
    return aval((*first[:axis], sum(total), *first[axis + 1 :]), xs[0].dtype)


@vjp.rule(concat_p)
def _concat_vjp(g: Array, out: Array, *xs: Array, axis: int) -> tuple[Callable[[], Array], ...]:
    def piece(start: int, size: int) -> Callable[[], Array]:
        return lambda: narrow(g, axis, start, size)

    sizes = [x.shape[axis] for x in xs]
    return tuple(piece(sum(sizes[:i]), n) for i, n in enumerate(sizes))


@jvp.rule(concat_p)
def _concat_jvp(tangents: Tangents, out: Array, *xs: Array, axis: int) -> list[Array]:
    pairs = zip(tangents, xs, strict=True)
    return [apply(concat_p, *(zeros_like(x) if t is None else t for t, x in pairs), axis=axis)]


class _Joined(Aligned):
    """Concatenation repeats no axis by itself."""

    def batched(self, op: Op, size: int, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        return super().batched(op, size, tuple(broadcast_to(x, (size, *x.shape[1:])) for x in operands), attrs)


axes.register(concat_p, _Joined({"axis": One()}))


def concat_same(arrays: Sequence[Array], axis: int) -> Array:
    """Concatenate arrays of one dtype and rank along ``axis`` (counted from the front)."""
    return arrays[0].handle() if len(arrays) == 1 else apply(concat_p, *arrays, axis=axis)


@composed
def concat(arrays: Sequence[Array], axis: int | None = 0) -> Array:
    """Concatenate the arrays, promoted to one dtype, along ``axis`` (None: each of them flattened)."""
    if not arrays:
        raise ShapeError("[concat] needs at least one array.")
    if axis is None:
        arrays, axis = [reshape(x, (x.size,)) for x in arrays], 0
    if len({x.ndim for x in arrays}) > 1:
        raise ShapeError(
            f"[concat] shapes {' and '.join(str(x.shape) for x in arrays)} differ in their number of axes."
        )
    return concat_same(meet(concat_p, *arrays), normalize_axis("concat", axis, arrays[0].ndim))


@composed
def stack(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Join the arrays, of one shape, along a new axis."""
    if len({x.shape for x in arrays}) != 1:
        raise ShapeError(
            f"[stack] needs arrays of one shape, got {' and '.join(str(x.shape) for x in arrays) or 'none'}."
        )
    place = normalize_axis("stack", axis, arrays[0].ndim + 1)
    return concat([expand_dims(x, place) for x in arrays], place)


@viewing
def split(x: Array, sizes: int | Sequence[int], axis: int = 0) -> tuple[Array, ...]:
    """Split ``x`` along ``axis`` into pieces of ``sizes``; an int is the size of every piece except possibly the last.

    Returns at least one piece."""
    place = normalize_axis("split", axis, x.ndim)
    n = x.shape[place]
    cuts = as_shape("split", sizes)
    if is_single(sizes):
        (size,) = cuts
        if size <= 0:
            raise ShapeError(f"[split] the size of a piece must be positive, got {size}.")
        cuts = tuple(min(size, n - start) for start in range(0, n, size)) or (0,)
    if min(cuts, default=0) < 0 or sum(cuts) != n:
        raise ShapeError(
            f"[split] sizes {tuple(cuts)} must add up to {n}, the size of axis {place} of shape {x.shape}."
        )
    return tuple(narrow(x, place, sum(cuts[:i]), size) for i, size in enumerate(cuts))


def roll(x: Array, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Array:
    """Shift the elements by ``shift`` along ``axis``; elements that leave at one end enter at the other.

    Several axes have one shift each, or share one. None shifts ``x`` as if it were flat."""
    if axis is None:
        return reshape(roll(reshape(x, (x.size,)), shift, 0), x.shape).separate()
    axes, shifts = as_tuple(axis), as_shape("roll", shift)
    if len(shifts) not in (1, len(axes)):
        raise ShapeError(f"[roll] {len(shifts)} shifts {shifts} do not fit {len(axes)} axes {axes}; give one for each.")
    rolled = x
    for a, by in zip(axes, shifts if len(shifts) == len(axes) else shifts * len(axes), strict=True):
        place = normalize_axis("roll", a, x.ndim)
        n = x.shape[place]
        cut = -by % n if n else 0
        if cut:
            rolled = concat_same([narrow(rolled, place, cut, n - cut), narrow(rolled, place, 0, cut)], place)
    return x.handle() if rolled is x else rolled
