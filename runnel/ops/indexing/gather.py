"""Gather and scatter by integer arrays: ``take`` and ``scatter_add``, which are each other's transpose.

Indices of the primitives must lie in [0, n). Eager tensors check them; compiled programs clamp them and flag the fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.axes import ELEMENTWISE, LOOPED, batching
from runnel.core.composed import composed
from runnel.core.dispatch import apply
from runnel.core.dtypes import INTEGERS, float32, float64, int64
from runnel.core.errors import AxisError, DTypeError, ShapeError
from runnel.core.rules import linear, no_tangent
from runnel.core.tables import Op, abstract_eval, axes, cost, decompose, jvp, lower, reference, vjp
from runnel.loops.rules import BoundsChecked, Gather, ScatterAdd
from runnel.ops.arguments import Array, as_sizes, normalize_axis, require_dtype
from runnel.ops.conversion import cast
from runnel.ops.creation_like import full_like, iota
from runnel.ops.elementwise.arithmetic import add, divide, maximum, minimum, multiply, subtract
from runnel.ops.elementwise.comparison import equal, isnan, less, logical_or, where
from runnel.ops.elementwise.rows import NUMBERS
from runnel.ops.indexing.segments import counting_sort_p, segment_max_p, segment_min_p, segment_sum_p, segments
from runnel.ops.reductions.primitives import sum
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.pieces import concat_same, narrow
from runnel.ops.shapes.views import bare, expand_dims, merged_rows, moveaxis, permute, reshape, split_rows

# --- take ---------------------------------------------------------------------------------------------------------

take_p = Op("take", "x, indices, *, axis", "The elements of x at indices along axis; the axes of indices replace it.")
lower.register(take_p, Gather())
jvp.register(take_p, linear(take_p))
cost.register(take_p, lambda x, indices, *, axis: 0)


@abstract_eval.rule(take_p)
def _take_abstract_eval(x: ShapedArray, indices: ShapedArray, *, axis: int) -> ShapedArray:
    require_dtype("take", indices.dtype, INTEGERS)
    if not 0 <= axis < x.ndim:
        raise ShapeError(f"[take] axis must be below {x.ndim} for shape {x.shape}; got {axis}.")
    if x.shape[axis] == 0 and indices.size:
        raise ShapeError(f"[take] axis {axis} of shape {x.shape} is empty: there is nothing to take.")
    return aval(x.shape[:axis] + indices.shape + x.shape[axis + 1 :], x.dtype)


@reference.rule(take_p)
def _take_reference(x: Any, indices: Any, *, axis: int) -> Any:
    if x.shape[axis] == 0:
        return np.zeros(x.shape[:axis] + indices.shape + x.shape[axis + 1 :], x.dtype)
    return np.take(x, np.clip(indices, 0, x.shape[axis] - 1).astype(np.int64), axis=axis)


@vjp.rule(take_p)
def _take_vjp(g: Array, out: Array, x: Array, indices: Array, *, axis: int) -> tuple[Callable[[], Array], None]:
    def into_x() -> Array:
        index_axes = range(axis, axis + indices.ndim)
        others = [i for i in range(g.ndim) if i not in index_axes]
        rows = permute(g, (*index_axes, *others))
        rest = x.shape[:axis] + x.shape[axis + 1 :]
        summed = scatter_add(reshape(indices, (indices.size,)), reshape(rows, (indices.size, *rest)), x.shape[axis])
        return moveaxis(summed, 0, axis)

    return into_x, None


@batching(take_p)
def _take_batched(size: int, x: Array, indices: Array, *, axis: int) -> Array:
    if indices.shape[0] == 1:
        return apply(take_p, x, bare(indices), axis=axis + 1)
    if x.shape[0] == 1:
        return moveaxis(apply(take_p, bare(x), indices, axis=axis), axis, 0)
    n, count = x.shape[1 + axis], len(indices.shape) - 1
    lines = moveaxis(x, 1 + axis, 1)
    rows = apply(take_p, merged_rows(lines), own_rows(indices, n), axis=0)
    rest = range(1 + count, rows.ndim)
    return permute(rows, (0, *rest[:axis], *range(1, 1 + count), *rest[axis:]))


def own_rows(indices: Array, n: int) -> Array:
    """Return ``indices`` of each element into its own ``n`` rows, where the rows of all elements are concatenated."""
    inside = cast(labels_below(indices, n), int64)
    first = multiply(iota(inside, (indices.shape[0], *(1,) * (indices.ndim - 1)), 0), n)
    return add(inside, first)


@composed
def take(x: Array, indices: Array, axis: int | None = None) -> Array:
    """Return the elements of ``x`` at ``indices`` along ``axis``, or of ``x`` flattened if it is None. Negative indices
    count from the end. Raise AxisError for an index outside the axis."""
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    place = normalize_axis("take", axis, x.ndim)
    require_in_range("take", indices, place, x.shape)
    return apply(take_p, x, from_the_front(indices, x.shape[place]), axis=place)


def require_in_range(name: str, indices: Array, axis: int, shape: Shape) -> None:
    """Raise AxisError for a known index outside an axis, as the caller wrote it. Programs check other indices when they
    run."""
    known = indices.known() if indices.dtype.is_integer else None
    if known is None or not known.size:
        return
    n = shape[axis]
    lowest, greatest = int(known.min()), int(known.max())
    if lowest < -n or greatest >= n:
        index = lowest if lowest < -n else greatest
        raise AxisError(f"[{name}] index {index} lies outside axis {axis} of shape {shape}.")


def from_the_front(indices: Array, n: int) -> Array:
    """Indices along an axis of ``n`` elements with those counted from the end counted from the front."""
    if indices.dtype.kind != "int":
        return indices
    wide = cast(indices, int64)  # n need not fit a narrow type
    return where(less(wide, 0), add(wide, n), wide)


@composed
def embedding(weight: Array, indices: Array) -> Array:
    """Return the rows of ``weight`` (n, …) numbered by ``indices``, integers in [0, n). The result has the shape of
    ``indices`` followed by the shape of a row.

    Repeated indices add up in the gradient of ``weight``. Raise AxisError for an index outside [0, n), DTypeError for
    floats.
    """
    if not indices.dtype.is_integer:
        raise DTypeError(f"[embedding] indices are integers; got {indices.dtype.name}. Cast them first.")
    known = indices.known() if weight.ndim else None
    if known is not None and known.size:
        if int(known.min()) < 0:
            raise AxisError(f"[embedding] index {int(known.min())} lies outside axis 0 of shape {weight.shape}.")
        require_in_range("embedding", indices, 0, weight.shape)
    return apply(take_p, weight, indices, axis=0)


@composed
def take_along_axis(x: Array, indices: Array, axis: int = -1) -> Array:
    """Return the element of ``x`` at ``indices`` along ``axis`` for each position. The shapes must agree in the other
    axes."""
    place = normalize_axis("take_along_axis", axis, x.ndim)
    others = [n for i, n in enumerate(x.shape) if i != place]
    if indices.ndim != x.ndim or [n for i, n in enumerate(indices.shape) if i != place] != others:
        raise ShapeError(f"[take_along_axis] shapes {x.shape} and {indices.shape} may differ along axis {place} only.")
    require_in_range("take_along_axis", indices, place, x.shape)
    n, m = x.shape[place], indices.shape[place]
    front = labels_below(from_the_front(indices, n), n)  # where it picks, or in the flat array, any index has a value
    if m == 1:
        return picked(x, front, place)
    rows = moveaxis(x, place, -1)
    positions = cast(moveaxis(front, place, -1), int64)
    first = multiply(iota(x, (math.prod(others), 1), 0), n)
    flat = add(reshape(positions, (math.prod(others), m)), first)
    gathered = apply(take_p, reshape(rows, (x.size,)), flat, axis=0)
    return moveaxis(reshape(gathered, (*others, m)), -1, place)


def picked(x: Array, index: Array, axis: int) -> Array:
    """Return the element at ``index`` (of size 1 along ``axis``) as a sum over a choice, which fuses with adjacent ops.
    Return 0 for an index outside the axis."""
    position = cast(index, int64)
    return sum(where(equal(iota(x, x.shape, axis), position), x, 0), axis=axis, keepdims=True, dtype=x.dtype)


def checked_op(name: str, doc: str) -> Op:
    """Return an op that returns its operand, whose elements must be in [0, extent) or equal allowed."""
    op = Op(name, "x, *, extent, allowed", doc)
    abstract_eval.register(op, lambda x, *, extent, allowed: x)
    reference.register(op, lambda x, *, extent, allowed: x)
    lower.register(op, BoundsChecked(lambda avals, x, *, extent, allowed: x))
    vjp.register(op, lambda g, out, x, *, extent, allowed: (None,))
    cost.register(op, lambda x, *, extent, allowed: 0)
    jvp.register(op, no_tangent)
    axes.register(op, ELEMENTWISE)
    return op


label_p = checked_op("label", "x, whose elements must lie in [0, extent) or equal allowed.")


def labels_below(labels: Array, extent: int, allowed: int | None = None) -> Array:
    """Return ``labels``, checked to be in [0, ``extent``) or equal to ``allowed``; raise AxisError for other labels."""
    return apply(label_p, labels, extent=extent, allowed=allowed)


@composed
def one_hot(labels: Array, classes: int, dtype: Any = float32) -> Array:
    """Return labels with a new last axis of size ``classes``: 1 at the label, 0 elsewhere."""
    sizes = as_sizes("one_hot", (*labels.shape, classes))
    places = iota(labels, sizes, -1, labels.dtype)
    return cast(equal(places, expand_dims(labels, labels.ndim)), dtype)


# --- scatter_add --------------------------------------------------------------------------------------------------

scatter_add_p = Op(
    "scatter_add", "indices, updates, *, shape", "Zeros of shape, to which updates[i] is added at row indices[i]."
)
lower.register(scatter_add_p, ScatterAdd())
jvp.register(scatter_add_p, linear(scatter_add_p, 1))
cost.register(scatter_add_p, lambda indices, updates, *, shape: updates.size)


@abstract_eval.rule(scatter_add_p)
def _scatter_abstract_eval(indices: ShapedArray, updates: ShapedArray, *, shape: Shape) -> ShapedArray:
    require_dtype("scatter_add", indices.dtype, INTEGERS)
    require_dtype("scatter_add", updates.dtype, NUMBERS)
    if indices.ndim != 1 or updates.shape != (indices.size, *shape[1:]) or not shape:
        raise ShapeError(
            f"[scatter_add] indices of shape {indices.shape} and updates of shape {updates.shape} do not fit the shape "
            f"{shape}: indices must be a vector, with one update of shape {shape[1:]} for each."
        )
    if shape[0] == 0 and indices.size:
        raise AxisError(f"[scatter_add] {indices.size} indices lie outside an empty axis: the shape is {shape}.")
    return aval(shape, updates.dtype)


@reference.rule(scatter_add_p)
def _scatter_reference(indices: Any, updates: Any, *, shape: Shape) -> Any:
    result = np.zeros(shape, updates.dtype)
    if shape[0]:
        np.add.at(result, np.clip(indices, 0, shape[0] - 1).astype(np.int64), updates)
    return result


@vjp.rule(scatter_add_p)
def _scatter_vjp(g: Array, out: Array, indices: Array, updates: Array, *, shape: Shape) -> tuple[None, Array]:
    return None, apply(take_p, g, indices, axis=0)


@batching(scatter_add_p)
def _scatter_batched(size: int, indices: Array, updates: Array, *, shape: Shape) -> Array:
    """Concatenate the rows of all elements: each sum has the same terms in the same order."""
    rows = own_rows(broadcast_to(indices, (size, *indices.shape[1:])), shape[0])
    wide = broadcast_to(updates, (size, *updates.shape[1:]))
    whole = (size * shape[0], *shape[1:])
    summed = apply(scatter_add_p, reshape(rows, (rows.size,)), merged_rows(wide), shape=whole)
    return split_rows(summed, size, shape[0])


@decompose.rule(scatter_add_p)
def _scatter_expand(indices: Array, updates: Array, *, shape: Shape) -> Array | None:
    """Long sums need the pairwise order of buckets. Rows of one column, for which the sort would cost more than the
    sums, are added up in order instead: integers exactly, float32 in float64."""
    if not updates.size:
        return None
    if math.prod(shape[1:]) > 1 or updates.dtype is float64:
        return segments(segment_sum_p, indices, updates, shape)
    if updates.dtype is float32:
        return cast(apply(scatter_add_p, indices, cast(updates, float64), shape=shape), float32)
    return None


jvp.register(segment_sum_p, linear(segment_sum_p, 2))
axes.register(segment_sum_p, LOOPED)
jvp.register(counting_sort_p, no_tangent)


@batching(counting_sort_p)
def _buckets_batched(size: int, segment_ids: Array, *, rows: int) -> Array:
    """Sort the labels of all elements at once; each part of the result begins where its element does."""
    n = segment_ids.shape[1]
    clipped = minimum(maximum(cast(segment_ids, int64), 0), rows - 1)
    table = apply(counting_sort_p, reshape(own_rows(clipped, rows), (size * n,)), rows=size * rows)
    first = multiply(iota(clipped, (size, 1), 0), n)
    begins = reshape(narrow(table, 0, 0, size * rows), (size, rows))
    end = full_like(first, n)
    positions = reshape(narrow(table, 0, size * rows + 2, size * n), (size, n))
    return concat_same([subtract(begins, first), end, end, subtract(positions, first)], 1)


@vjp.rule(segment_sum_p)
def _sums_vjp(
    g: Array, out: Array, table: Array, segment_ids: Array, updates: Array, *, shape: Shape
) -> tuple[None, None, Array]:
    return None, None, apply(take_p, g, segment_ids, axis=0)


def _share(g: Array, out: Array, table: Array, segment_ids: Array, updates: Array, *, shape: Shape) -> Any:
    """Share the gradient equally among the extreme elements; NaN are extreme."""
    greatest, pulled = (apply(take_p, x, segment_ids, axis=0) for x in (out, g))
    hit = cast(logical_or(equal(updates, greatest), isnan(updates)), g.dtype)
    count = apply(segment_sum_p, table, segment_ids, hit, shape=shape)
    return None, None, divide(multiply(pulled, hit), apply(take_p, count, segment_ids, axis=0))


def _share_jvp(tangents: Any, out: Array, table: Array, segment_ids: Array, updates: Array, *, shape: Shape) -> Any:
    greatest = apply(take_p, out, segment_ids, axis=0)
    hit = cast(logical_or(equal(updates, greatest), isnan(updates)), updates.dtype)
    count, moved = (apply(segment_sum_p, table, segment_ids, x, shape=shape) for x in (hit, multiply(tangents[2], hit)))
    return [divide(moved, maximum(count, 1))]


for extreme_p in (segment_max_p, segment_min_p):
    vjp.register(extreme_p, _share)
    jvp.register(extreme_p, _share_jvp)
    axes.register(extreme_p, LOOPED)


def scatter_add(indices: Array, updates: Array, rows: int) -> Array:
    """Return ``rows`` rows of zeros, with ``updates[i]`` added to row ``indices[i]``.

    The updates of a row are added in the order of i, as ``sum`` adds them. Half precision is added in float32 and
    rounded once.
    """
    dtype = updates.dtype
    wide = float32 if dtype.is_float and dtype.itemsize == 2 else dtype
    shape = as_sizes("scatter_add", (rows, *updates.shape[1:]))
    summed = apply(scatter_add_p, indices, cast(updates, wide), shape=shape)
    return cast(summed, dtype)
