"""Runs of rows: consecutive rows that belong together, by labels that ascend.

Sums take the terms of a run in the order in which ``sum`` takes the terms of an array with this run alone, forward and
in gradients, so that a run has the bits that it has by itself.
"""

from __future__ import annotations

import math

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import LOOPED
from runnel.core.dispatch import apply
from runnel.core.dtypes import int64
from runnel.core.rules import linear
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.loops.ir import LANES
from runnel.loops.rules import Gather
from runnel.ops.arguments import Array
from runnel.ops.creation_like import full_like, iota
from runnel.ops.elementwise.arithmetic import add, multiply, remainder, subtract
from runnel.ops.indexing.gather import checked_op, take_p
from runnel.ops.indexing.segments import counting_sort_p, segment_max_p, segment_min_p, segment_sum_p, segments
from runnel.ops.reductions.primitives import sum
from runnel.ops.shapes.pieces import narrow
from runnel.ops.shapes.views import reshape

run_offset_p = checked_op("ragged_offset", "x, known to lie in [0, extent): where rows begin and end.")
run_length_p = checked_op("ragged_length", "x, known to lie in [0, extent): how long rows are.")

spread_p = Op("spread", "x, labels, *, axis", "x[labels[i]]: the row of each label, for labels that ascend.")
lower.register(spread_p, Gather())
jvp.register(spread_p, linear(spread_p))
cost.register(spread_p, lambda x, labels, *, axis: 0)
axes.register(spread_p, LOOPED)
reference.register(spread_p, lambda x, labels, *, axis: reference[take_p](x, labels, axis=axis))
vjp.register(spread_p, lambda g, out, x, labels, *, axis: (lambda: total(g, labels, x.shape[0]), None))


@abstract_eval.rule(spread_p)
def _spread_abstract_eval(x: ShapedArray, labels: ShapedArray, *, axis: int) -> ShapedArray:
    return aval((*labels.shape, *x.shape[1:]), x.dtype)


def spread(x: Array, labels: Array) -> Array:
    """Return the row of ``x`` for each of the ascending ``labels``."""
    if 0 in (x.shape[0], labels.shape[0]):
        return full_like(x, 0, (labels.shape[0], *x.shape[1:]))
    return apply(spread_p, x, labels, axis=0)


def total(values: Array, labels: Array, rows: int) -> Array:
    """Return the sum of the ``values`` with each of the ascending ``labels``."""
    shape = (rows, *values.shape[1:])
    if 0 in (rows, values.size):
        return full_like(values, 0, shape)
    if math.prod(shape[1:]) > 1 or not values.dtype.is_inexact:
        return segments(segment_sum_p, labels, values, shape)
    table = apply(counting_sort_p, labels, rows=rows)
    begins = apply(take_p, narrow(table, 0, 0, rows), labels, axis=0)
    lane = remainder(subtract(iota(labels, labels.shape, 0, int64), begins), LANES)
    parts = segments(segment_sum_p, add(multiply(labels, LANES), lane), values, (rows * LANES, *shape[1:]))
    return reshape(sum(reshape(parts, (rows, LANES)), -1), shape)


def extreme(kind: str, values: Array, labels: Array, rows: int) -> Array:
    """Return the "max" or "min" of the ``values`` with each label; ∓∞ for a label without values."""
    shape = (rows, *values.shape[1:])
    if 0 in (rows, values.size):
        return full_like(values, math.nan if values.dtype.is_float else 0, shape)
    return segments(segment_max_p if kind == "max" else segment_min_p, labels, values, shape)
