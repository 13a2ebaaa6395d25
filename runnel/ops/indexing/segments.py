"""Reductions of rows by segment: a counting sort of the segment ids, then one reduction for each row of the result.

Sums are used for ``scatter_add`` of rows with several columns: they have no order among one another, so they are
split among threads, and they are computed inside the kernel that reads them (an optimizer's update), without a dense
gradient in between. The sort is counting sort (H. Seward, 1954), stable: each sum is in the order of position.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.dispatch import apply
from runnel.core.dtypes import INTEGERS, from_numpy, int64
from runnel.core.errors import ShapeError
from runnel.core.tables import Op, abstract_eval, cost, lower, reference, vjp
from runnel.loops.rules import CountingSort, SegmentReduction
from runnel.loops.scalar import REDUCERS
from runnel.ops.arguments import Array, require_dtype
from runnel.ops.elementwise.rows import NUMBERS

# --- buckets ------------------------------------------------------------------------------------------------------

counting_sort_p = Op(
    "counting_sort",
    "labels, *, rows",
    "Where the positions of each label begin, rows + 2 numbers of which the last counts nothing, then the positions of "
    "the labels in ascending order of label.",
)
lower.register(counting_sort_p, CountingSort())
vjp.register(counting_sort_p, lambda g, out, segment_ids, *, rows: (None,))
cost.register(counting_sort_p, lambda segment_ids, *, rows: 2 * segment_ids.size + rows)


@abstract_eval.rule(counting_sort_p)
def _counting_sort_abstract_eval(segment_ids: ShapedArray, *, rows: int) -> ShapedArray:
    require_dtype("counting_sort", segment_ids.dtype, INTEGERS)
    if segment_ids.ndim != 1 or rows < 1:
        raise ShapeError(
            f"[buckets] needs a vector of segment ids and at least one row; got {segment_ids.shape} and {rows}."
        )
    return aval((rows + 2 + segment_ids.size,), int64)


@reference.rule(counting_sort_p)
def _counting_sort_reference(segment_ids: Any, *, rows: int) -> Any:
    clipped = np.clip(segment_ids, 0, rows - 1).astype(np.int64)
    begins = np.searchsorted(np.sort(clipped), np.arange(rows + 1))
    return np.concatenate([begins, begins[-1:], np.argsort(clipped, kind="stable")]).astype(np.int64)


# --- reductions of buckets ----------------------------------------------------------------------------------------


def _reduction(name: str, kind: str, combine: np.ufunc) -> Op:
    """Return the op that reduces the rows of each bucket; a bucket without rows has the identity of the reduction."""
    op = Op(
        name,
        "table, labels, updates, *, shape",
        f"Row v of shape is the {kind} of the updates in bucket v of the table, which is buckets(labels).",
    )
    lower.register(op, SegmentReduction(kind))
    cost.register(op, lambda table, segment_ids, updates, *, shape: updates.size)

    @abstract_eval.rule(op)
    def _abstract_eval(
        table: ShapedArray, segment_ids: ShapedArray, updates: ShapedArray, *, shape: Shape
    ) -> ShapedArray:
        require_dtype(name, table.dtype, (int64,))
        require_dtype(name, segment_ids.dtype, INTEGERS)
        require_dtype(name, updates.dtype, NUMBERS)
        count = updates.shape[0] if updates.ndim else -1
        if (
            not shape
            or updates.shape[1:] != shape[1:]
            or table.shape != (shape[0] + 2 + count,)
            or segment_ids.size != count
        ):
            raise ShapeError(
                f"[{name}] a table of shape {table.shape}, segment ids of shape {segment_ids.shape} and updates of "
                f"shape {updates.shape} do not fit the shape {shape}."
            )
        return aval(shape, updates.dtype)

    @reference.rule(op)
    def _reference(table: Any, segment_ids: Any, updates: Any, *, shape: Shape) -> Any:
        result = np.full(shape, REDUCERS[kind].identity(from_numpy(updates.dtype)), updates.dtype)
        rows, count = shape[0], len(updates)
        for row in range(rows if count else 0):  # a table that nobody sorted reads somewhere, as in compiled code
            length = min(table[row + 1] - table[row], count)
            for at in np.clip(np.arange(table[row], table[row] + length), 0, count - 1):
                result[row] = combine(result[row], updates[np.clip(table[rows + 2 + at], 0, count - 1)])
        return result

    return op


segment_sum_p = _reduction("segment_sums", "sum", np.add)
segment_max_p = _reduction("segment_maxima", "max", np.maximum)
segment_min_p = _reduction("segment_minima", "min", np.minimum)


def segments(op: Op, segment_ids: Array, updates: Array, shape: Shape) -> Array:
    """Return the reduction ``op`` of the updates with each label, as rows of ``shape``."""
    return apply(op, apply(counting_sort_p, segment_ids, rows=shape[0]), segment_ids, updates, shape=shape)
