"""Rows written at integer positions: ``write_rows``, one write for each row where the old array is not read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.core.avals import ShapedArray
from runnel.core.axes import batching
from runnel.core.dispatch import apply
from runnel.core.dtypes import INTEGERS, int64
from runnel.core.errors import AxisError, ShapeError
from runnel.core.rules import Tangents
from runnel.core.tables import Op, abstract_eval, cost, jvp, lower, reference, vjp
from runnel.loops.rules import RowWrites
from runnel.ops.arguments import Array, require_dtype, require_same_dtype
from runnel.ops.creation_like import full_like, iota, zeros_like
from runnel.ops.elementwise.comparison import equal, where
from runnel.ops.indexing.gather import own_rows, take_p
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.views import bare, merged_rows, moveaxis, reshape, split_rows

write_rows_p = Op(
    "write_rows", "x, indices, updates, *, axis", "x with updates[i] at row indices[i] along axis; the last one counts."
)
lower.register(write_rows_p, RowWrites())
cost.register(write_rows_p, lambda x, indices, updates, *, axis: 0)


@abstract_eval.rule(write_rows_p)
def _abstract_eval(x: ShapedArray, indices: ShapedArray, updates: ShapedArray, *, axis: int) -> ShapedArray:
    require_dtype("write_rows", indices.dtype, INTEGERS)
    require_same_dtype("write_rows", x, updates)
    if not 0 <= axis < x.ndim or indices.ndim != 1:
        raise ShapeError(
            f"[write_rows] axis must be below {x.ndim}, and indices a vector; got axis {axis} and indices of shape "
            f"{indices.shape}."
        )
    expected = (*x.shape[:axis], indices.size, *x.shape[axis + 1 :])
    if updates.shape != expected:
        raise ShapeError(f"[write_rows] updates must have shape {expected}; got {updates.shape}.")
    if x.shape[axis] == 0 and indices.size:
        raise AxisError(f"[write_rows] {indices.size} indices lie outside an empty axis: the shape is {x.shape}.")
    return x


@reference.rule(write_rows_p)
def _reference(x: Any, indices: Any, updates: Any, *, axis: int) -> Any:
    result = np.array(x)
    if x.shape[axis]:
        rows = np.clip(indices, 0, x.shape[axis] - 1).astype(np.int64)
        np.moveaxis(result, axis, 0)[rows] = np.moveaxis(updates, axis, 0)
    return result


@vjp.rule(write_rows_p)
def _vjp(
    g: Array, out: Array, x: Array, indices: Array, updates: Array, *, axis: int
) -> tuple[Callable[[], Array], None, Callable[[], Array]]:
    def into_updates() -> Array:
        rows = apply(take_p, g, indices, axis=axis)
        if indices.size == 1:
            return rows
        numbers = iota(indices, (indices.size,), 0, int64)
        last = apply(write_rows_p, full_like(indices, -1, (x.shape[axis],), int64), indices, numbers, axis=0)
        counts = equal(apply(take_p, last, indices, axis=0), numbers)
        return where(reshape(counts, (indices.size, *(1,) * (x.ndim - axis - 1))), rows, 0)

    return lambda: apply(write_rows_p, g, indices, zeros_like(updates), axis=axis), None, into_updates


@jvp.rule(write_rows_p)
def _jvp(tangents: Tangents, out: Array, x: Array, indices: Array, updates: Array, *, axis: int) -> list[Array]:
    dx, _, new = tangents
    if dx is None and new is None:
        return []
    dx, new = zeros_like(x) if dx is None else dx, zeros_like(updates) if new is None else new
    return [apply(write_rows_p, dx, indices, new, axis=axis)]


@batching(write_rows_p)
def _batched(size: int, x: Array, indices: Array, updates: Array, *, axis: int) -> Array:
    x, updates = (broadcast_to(y, (size, *y.shape[1:])) for y in (x, updates))
    if indices.shape[0] == 1:
        return apply(write_rows_p, x, bare(indices), updates, axis=axis + 1)
    n = x.shape[1 + axis]
    lines, new = (merged_rows(moveaxis(y, 1 + axis, 1)) for y in (x, updates))
    rows = own_rows(indices, n)
    written = apply(write_rows_p, lines, reshape(rows, (rows.size,)), new, axis=0)
    return moveaxis(split_rows(written, size, n), 1, 1 + axis)
