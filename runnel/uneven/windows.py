"""Convolutions and pooling along the rows of ragged values, whose features are the last axis.

Rows are set apart by padding as wide as the one at their ends, and one dense call computes all windows at distance 1.
The windows that cross rows, and those that a stride leaves out, are not kept.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel import ops
from runnel.core.dispatch import apply, required
from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError, UnsupportedError
from runnel.ops.convolution.windows import padding_pairs, per_axis
from runnel.ops.indexing import runs
from runnel.tensor.creation import asarray
from runnel.uneven import rows
from runnel.uneven.value import Ragged


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(inspect.unwrap(function))


def windowed(fill: float, kernel_of: Callable[[dict[str, Any]], Any], **unchanged: Any) -> Any:
    """Return the row of a function of (1, features, length) with windows. ``fill`` is what padding contains,
    ``kernel_of`` returns the size of the windows, and ``unchanged`` are arguments that have one value here."""

    def row(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Ragged:
        name = function.__name__
        bound = _signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        x: Any = next(iter(given.values()))
        if not isinstance(x, Ragged) or x.ndim != 3 or isinstance(x.values, Ragged):
            raise UnsupportedError(f"[{name}] x must be a ragged value (rows, length, features) with one ragged axis.")
        for key, value in unchanged.items():
            if given.get(key, value) != value and not (key == "count_include_pad" and not given["padding"]):
                raise UnsupportedError(f"[{name}] {key} must be {value} for ragged values; got {given[key]}.")
        (kernel,) = per_axis(name, "kernel_size", kernel_of(given), 1)
        (stride,) = per_axis(name, "stride", kernel if given["stride"] is None else given["stride"], 1)
        (dilation,) = per_axis(name, "dilation", given.get("dilation", 1), 1)
        ((left, right),) = padding_pairs(name, given["padding"], (kernel,), (stride,), (dilation,))
        given |= {next(iter(given)): None, "stride": 1, "padding": 0}

        def dense(values: Any) -> Any:
            given[next(iter(given))] = ops.expand_dims(ops.permute(values, (1, 0)), 0)
            return ops.permute(function(*bound.args, **bound.kwargs)[0], (1, 0))

        reach = dilation * (kernel - 1)
        return _over_rows(x, dense, left, right, reach, stride, fill)

    return row


def _over_rows(
    x: Ragged, dense: Callable[[Any], Any], left: int, right: int, reach: int, stride: int, fill: float
) -> Ragged:
    """Apply ``dense`` (a function of vectors one after another, from which each result sees ``reach`` further ones)
    to padded rows."""
    count, more, gap, values = x.count, left + right - reach, max(left, right), x.values
    offsets = rows.checked_offsets(x)
    first = ops.iota(offsets, offsets.shape, 0) * gap + offsets  # where the rows begin when they are set apart
    if gap:
        apart = ops.full_like(values, fill, (x.total + (count + 1) * gap, *values.shape[1:]))
        if x.total:
            place = ops.iota(offsets, (x.total,), 0, int64) + (rows.labels(x) + 1) * gap
            apart = ops.put(apart, place, values)
        values = apart
    if stride > 1:
        known = np.asarray(required(offsets, f"[windows] stride must be 1 in a compiled function; got {stride}."))
        _require_windows(np.diff(known) + more)
        sizes = -(-(np.diff(known) + more) // stride)
        ends = asarray(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
        total: Any = int(sizes.sum())
    else:
        extent = x.total + count * abs(more) + 1
        sizes = apply(runs.run_length_p, offsets[1:] - offsets[:-1] + more, extent=extent, allowed=None)
        ends = ops.concat([offsets[:1], offsets[:-1] + sizes - more]) + ops.iota(offsets, offsets.shape, 0) * more
        total = x.total + count * more
    if not total:
        values = ops.full_like(values, 0, (reach + 1, *values.shape[1:]))
        return Ragged.made(ops.narrow(dense(values), 0, 0, 0), ends)
    every = dense(values)
    if more or gap or stride > 1:
        ids = rows.labels_between(ends, total)
        within = ops.iota(ends, (total,), 0, int64) - ops.take(ends, ids, 0)
        every = ops.take(every, ops.take(first, ids, 0) + (gap - left) + within * stride, 0)
    return Ragged.made(every, ends)


def _require_windows(counts: np.ndarray) -> None:
    if counts.size and counts.min() < 0:
        raise ShapeError(f"[windows] rows must be as long as a window; row {int(counts.argmin())} is shorter.")


def kernel_of_weight(given: dict[str, Any]) -> Any:
    """Return the size of the windows of a convolution."""
    return given["weight"].shape[-1]


def kernel_size(given: dict[str, Any]) -> Any:
    """Return the size of the windows of pooling."""
    return given["kernel_size"]


CONVOLUTION = windowed(0.0, kernel_of_weight)
MAXIMUM = windowed(-math.inf, kernel_size, ceil_mode=False, return_indices=False)
AVERAGE = windowed(0.0, kernel_size, ceil_mode=False, count_include_pad=True, divisor_override=None)
