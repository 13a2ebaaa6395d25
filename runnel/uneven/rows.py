"""The rows of a ragged value as labels of its elements: what reductions over the ragged axis are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel import ops
from runnel.core.dispatch import apply
from runnel.core.dtypes import float32, int64
from runnel.core.errors import ShapeError
from runnel.ops.indexing import runs
from runnel.ops.reductions.primitives import accumulated
from runnel.ops.reductions.statistics import wide_dtype
from runnel.uneven.value import Ragged


def checked_offsets(x: Ragged) -> Any:
    """Return the offsets as int64; programs check those that they learn at run time."""
    offsets = ops.cast(x.offsets, int64)
    if x.offsets.known() is not None:
        return offsets
    total, rows = x.total, x.count
    offsets = apply(runs.run_offset_p, offsets, extent=total + 1, allowed=None)
    edges = ops.stack([offsets[0], total - offsets[rows]])
    offsets = offsets + ops.sum(apply(runs.run_offset_p, edges, extent=1, allowed=None))
    lengths = apply(runs.run_length_p, offsets[1:] - offsets[:-1], extent=total + 1, allowed=None)
    return ops.concat([offsets[:1], offsets[:-1] + lengths])


def labels(x: Ragged) -> Any:
    """Return the number of the row of each element, int64 (total,)."""
    return labels_between(checked_offsets(x), x.total)


def labels_between(offsets: Any, total: Any) -> Any:
    """Return the number of the row of each of ``total`` elements, for checked offsets."""
    places = ops.iota(offsets, (total,), 0, int64)
    return ops.searchsorted(offsets[1:], places, "right") if offsets.shape[0] > 1 else places


def positions(x: Ragged) -> Any:
    """Return the position of each element in its row, int64 (total,)."""
    begins = runs.spread(checked_offsets(x)[:-1], labels(x))
    return ops.iota(begins, (x.total,), 0, int64) - begins


def require_elements(name: str, x: Ragged, least: int = 1) -> None:
    """Raise ShapeError if a row is known to be shorter than ``least``. Programs check other rows when they run."""
    known = x.offsets.known()
    short: Any = [] if known is None else np.flatnonzero(np.diff(np.asarray(known).astype(np.int64)) < least)
    if len(short):
        raise ShapeError(f"[{name}] rows must not be shorter than {least}; row {short[0]} of {x.count} is.")


def filled_lengths(name: str, x: Ragged) -> Any:
    """Return the lengths of rows, none of which may be empty."""
    require_elements(name, x)
    offsets = checked_offsets(x)
    lengths = offsets[1:] - offsets[:-1]
    return apply(runs.run_length_p, lengths - 1, extent=max(x.total, 1), allowed=None) + 1


def common_offsets(name: str, values: Sequence[Ragged]) -> Any:
    """Return the offsets of ragged values with the same lengths; raise ShapeError if they differ. Programs check
    offsets that they learn at run time."""
    first: Any = values[0].offsets
    for other in values[1:]:
        offsets = other.offsets
        if offsets is first:
            continue
        a, b = first.known(), offsets.known()
        both = a is not None and b is not None
        if offsets.shape != first.shape or (both and not np.array_equal(a, b)):
            raise ShapeError(f"[{name}] ragged values must have rows of the same lengths; got {values[0]} and {other}.")
        if not both:
            difference = apply(runs.run_offset_p, ops.cast(offsets, int64) - first, extent=1, allowed=None)
            first = first + difference
    return first


def column(per_row: Any, like: Any) -> Any:
    """Reshape one number for each row to broadcast against ``like`` (rows, ...)."""
    return ops.reshape(per_row, (per_row.shape[0], *(1,) * (like.ndim - 1)))


# Reductions over the ragged axis: (rows, ...) -------------------------------------------------------------------------


def summed(x: Ragged, dtype: Any = None) -> Any:
    """Return the sum of each row, in the dtypes of ``sum``."""
    kind = x.dtype if dtype is None else dtype
    wide = accumulated(kind)
    result = kind if dtype is not None or kind.is_inexact else wide
    return ops.cast(runs.total(ops.cast(x.values, wide), labels(x), x.count), result)


def averaged(x: Ragged, dtype: Any = None) -> Any:
    """Return the mean of each row; NaN for an empty one."""
    kind = x.dtype if dtype is None else dtype
    wide = kind if kind.is_inexact and kind.itemsize > 2 else float32
    total = runs.total(ops.cast(ops.cast(x.values, kind), wide), labels(x), x.count)
    mean = total / column(ops.cast(x.lengths, wide), total)
    return ops.cast(mean, kind) if kind.is_float else mean


def extreme(kind: str, x: Ragged) -> Any:
    """Return the "max" or "min" of each row. Rows must not be empty."""
    values = x.values
    if values.dtype.kind == "bool":
        return ops.not_equal(extreme(kind, Ragged.made(ops.cast(values, int64), x.offsets)), 0)
    found = runs.extreme(kind, values, labels(x), x.count)
    return ops.where(column(filled_lengths(kind, x), found) > 0, found, 0)


def place(kind: str, x: Ragged) -> Any:
    """Return the position in its row of the first "max" or "min"; NaN are extreme."""
    values = ops.cast(x.values, int64) if x.dtype.kind == "bool" else x.values
    found = runs.spread(extreme(kind, Ragged.made(values, x.offsets)), labels(x))
    hit = ops.logical_or(values == found, ops.isnan(values)) if values.dtype.is_float else values == found
    where = ops.where(hit, column(positions(x), values), x.total)
    return runs.extreme("min", where, labels(x), x.count)


def product(x: Ragged, dtype: Any = None) -> Any:
    """Return the product of each row, in the dtypes of ``prod``."""
    kind = x.dtype if dtype is None else dtype
    wide = accumulated(kind)
    result = kind if dtype is not None or kind.is_inexact else wide
    return ops.cast(ops.segment_prod(ops.cast(x.values, wide), labels(x), x.count), result)


def any_of(x: Ragged) -> Any:
    """Return whether an element of each row is not 0."""
    return runs.total(ops.cast(ops.not_equal(x.values, 0), int64), labels(x), x.count) > 0


def all_of(x: Ragged) -> Any:
    """Return whether no element of each row is 0."""
    return runs.total(ops.cast(ops.equal(x.values, 0), int64), labels(x), x.count) == 0


def variance(x: Ragged, correction: float = 0) -> Any:
    """Return the mean squared distance from the mean of each row, with divisor length - ``correction``."""
    wide, ids = ops.cast(x.values, wide_dtype(x)), labels(x)
    distance = wide - runs.spread(averaged(Ragged.made(wide, x.offsets)), ids)
    total = runs.total(distance * distance, ids, x.count)
    divisor = ops.maximum(ops.cast(x.lengths, wide.dtype) - correction, 0)
    return _rounded(total / column(divisor, total), x)


def deviation(x: Ragged, correction: float = 0) -> Any:
    """Return the square root of the variance of each row, with derivative 0 at 0."""
    square = variance(Ragged.made(ops.cast(x.values, wide_dtype(x)), x.offsets), correction)
    is_zero = square == 0
    return _rounded(ops.where(is_zero, 0, ops.sqrt(ops.where(is_zero, 1, square))), x)


def logsumexp(x: Ragged) -> Any:
    """Return log Σ exp of each row, without overflow; -∞ for an empty row."""
    wide, ids = ops.cast(x.values, wide_dtype(x)), labels(x)
    greatest = ops.stop_gradient(runs.extreme("max", wide, ids, x.count))
    shift = ops.where(ops.isfinite(greatest), greatest, 0)
    total = runs.total(ops.exp(wide - runs.spread(shift, ids)), ids, x.count)
    return _rounded(ops.log(total) + shift, x)


def _rounded(statistic: Any, x: Ragged) -> Any:
    return ops.cast(statistic, x.dtype) if x.dtype.is_float else statistic


# Over the ragged axis: (rows, length, ...) ----------------------------------------------------------------------------


def _shifted(values: Any, ids: Any, rows: int) -> Any:
    return values - runs.spread(ops.stop_gradient(runs.extreme("max", values, ids, rows)), ids)


def softmax(x: Ragged, dtype: Any = None) -> Any:
    """Return exp of the values divided by its sum over the row."""
    values, ids = (x.values if dtype is None else ops.cast(x.values, dtype)), labels(x)
    powers = ops.exp(_shifted(values, ids, x.count))
    return powers / runs.spread(_narrow_sum(powers, ids, x.count), ids)


def log_softmax(x: Ragged, dtype: Any = None) -> Any:
    """Return the logarithm of the softmax over the row."""
    values, ids = (x.values if dtype is None else ops.cast(x.values, dtype)), labels(x)
    below = _shifted(values, ids, x.count)
    return below - runs.spread(ops.log(_narrow_sum(ops.exp(below), ids, x.count)), ids)


def _narrow_sum(values: Any, ids: Any, rows: int) -> Any:
    """Return sums of rows in the dtype of the values, added in float32 if it is half precision."""
    return ops.cast(runs.total(ops.cast(values, accumulated(values.dtype)), ids, rows), values.dtype)
