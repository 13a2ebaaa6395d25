"""Gather and scatter with PyTorch's arguments; segment reductions of rows."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

from runnel.core.composed import composed
from runnel.core.dispatch import TensorLike, apply
from runnel.core.dtypes import bool_, int64
from runnel.core.errors import DTypeError, ShapeError
from runnel.core.viewing import viewing
from runnel.ops.arguments import Array, Operand, broadcast_shapes, normalize_axis, require_same_dtype
from runnel.ops.conversion import cast
from runnel.ops.creation_like import full_like, iota
from runnel.ops.elementwise.arithmetic import add, divide, floor_divide, maximum, multiply, subtract
from runnel.ops.elementwise.comparison import equal, greater, where
from runnel.ops.indexing.assignment import add_at, put
from runnel.ops.indexing.gather import (
    from_the_front,
    require_in_range,
    scatter_add as added_rows,
    take,
    take_along_axis,
)
from runnel.ops.indexing.items import getitem
from runnel.ops.indexing.runs import extreme
from runnel.ops.promotion import lifted
from runnel.ops.reductions.cumulative import Rows, cumsum, running
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.pieces import concat, narrow
from runnel.ops.shapes.views import moveaxis, of_axisless, reshape, with_axis
from runnel.ops.sorting.sets import known
from runnel.ops.sorting.sort import sort_p

Scatter = TypeVar("Scatter", bound=Callable[..., Any])


@composed
@of_axisless
def index_select(x: Array, dim: int, index: Array) -> Array:
    """Return the rows at ``index``, a vector of integers, along the axis ``dim``."""
    if index.ndim > 1:
        raise ShapeError(f"[index_select] the index must be a vector; got shape {index.shape}.")
    return take(x, reshape(index, (index.size,)), dim)


@composed
def gather(x: Array, dim: int, index: Array) -> Array:
    """result[i, j, …] = x[index[i, j, …], j, …] for ``dim`` 0, and so for other axes: of the shape of ``index``, which
    has as many axes as ``x`` and is no larger along the others. An array without axes has one of size 1 here, and an
    index without elements may have any shape."""
    if not index.size:
        normalize_axis("gather", dim, x.ndim or 1)
        return reshape(narrow(reshape(x, (x.size,)), 0, 0, 0), index.shape)
    places = with_axis(index)
    axis, window = _window("gather", with_axis(x), dim, places)
    return reshape(take_along_axis(window, places, axis), index.shape)


def _window(name: str, x: Array, dim: int, index: Array) -> tuple[int, Array]:
    """Return the axis, and the part of ``x`` that an index array reaches."""
    if not index.dtype.is_integer:
        raise DTypeError(f"[{name}] the index must hold integers; got {index.dtype.name}.")
    axis = normalize_axis(name, dim, x.ndim)
    fits = index.ndim == x.ndim and all(
        a == axis or n <= m for a, (n, m) in enumerate(zip(index.shape, x.shape, strict=True))
    )
    if not fits:
        raise ShapeError(f"[{name}] an index of shape {index.shape} does not fit shape {x.shape} along axis {dim}.")
    for a, n in enumerate(index.shape):
        x = x if a == axis else narrow(x, a, 0, n)
    return axis, x


def _if_indexed(scatters: Scatter) -> Scatter:
    """Make a function return ``x`` for an index without elements, whatever its shape."""

    @functools.wraps(scatters)
    def called(x: Array, dim: int, index: Array, *args: Any, **kwargs: Any) -> Array:
        if not index.size:
            normalize_axis(scatters.__name__, dim, x.ndim or 1)
            return x.handle()
        return scatters(x, dim, index, *args, **kwargs)

    return called  # type: ignore[return-value]


def _source(name: str, x: Array, index: Array, source: Operand) -> Array:
    """Return the values to scatter, in the shape of the index."""
    if not isinstance(source, TensorLike) or not source.ndim:
        return broadcast_to(lifted(x, source, x.dtype, index.ndim), index.shape)
    require_same_dtype(name, x, source)
    if source.ndim != index.ndim or any(n > m for n, m in zip(index.shape, source.shape, strict=True)):
        raise ShapeError(f"[{name}] a source of shape {source.shape} does not cover an index of shape {index.shape}.")
    for a, n in enumerate(index.shape):
        source = narrow(source, a, 0, n)
    return source


def _key(x: Array, axis: int, index: Array) -> tuple[Array, ...]:
    """Return the key of the elements: the index along its axis, positions along the others."""
    return tuple(index if a == axis else iota(x, _thin(index.shape, a), a) for a in range(index.ndim))


def _thin(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(n if a == axis else 1 for a, n in enumerate(shape))


@composed
@_if_indexed
@of_axisless
def scatter(x: Array, dim: int, index: Array, src: Operand, reduce: str | None = None) -> Array:
    """Return ``x`` with src[i, j, …] at (index[i, j, …], j, …) for ``dim`` 0, and likewise for other axes. The last of
    several sources for one position counts. With ``reduce`` "add" or "multiply", sources are combined with the present
    elements."""
    if reduce is not None:
        if reduce not in ("add", "multiply"):
            raise ValueError(f"[scatter] reduce must be None, 'add' or 'multiply'; got {reduce!r}.")
        return scatter_reduce(x, dim, index, _source("scatter", x, index, src), {"add": "sum"}.get(reduce, "prod"))
    axis, _ = _window("scatter", x, dim, index)
    require_in_range("scatter", index, axis, x.shape)
    return put(x, _key(x, axis, index), _source("scatter", x, index, src))


@composed
@_if_indexed
@of_axisless
def scatter_add(x: Array, dim: int, index: Array, src: Operand) -> Array:
    """Add src[i, j, …] at (index[i, j, …], j, …) for ``dim`` 0, and likewise for other axes."""
    axis, _ = _window("scatter_add", x, dim, index)
    require_in_range("scatter_add", index, axis, x.shape)
    return add_at(x, _key(x, axis, index), _source("scatter_add", x, index, src))


_REDUCTIONS: Final = ("sum", "prod", "mean", "amax", "amin")


@_if_indexed
@of_axisless
def scatter_reduce(x: Array, dim: int, index: Array, src: Operand, reduce: str, include_self: bool = True) -> Array:
    """Return ``x`` with the ``reduce`` ("sum", "prod", "mean", "amax", "amin") of all src[i, j, …] for a position at
    (index[i, j, …], j, …) for ``dim`` 0, and likewise for other axes. ``include_self`` includes the present element.
    Equal extremes share the gradient."""
    if x.dtype is bool_:  # or, and
        source = _source("scatter_reduce", x, index, src)
        return cast(scatter_reduce(cast(x, int64), dim, index, cast(source, int64), reduce, include_self), bool_)
    if reduce not in _REDUCTIONS:
        raise ValueError(f"[scatter_reduce] reduce must be one of {', '.join(_REDUCTIONS)}; got {reduce!r}.")
    axis, _ = _window("scatter_reduce", x, dim, index)
    require_in_range("scatter_reduce", index, axis, x.shape)
    segment_ids = _flat_places(x, axis, index)
    values = reshape(_source("scatter_reduce", x, index, src), (index.size,))
    flat = reshape(x, (x.size,))
    if include_self:
        segment_ids, values = concat([iota(x, (x.size,), 0), segment_ids]), concat([flat, values])
    reduced = combined(reduce, values, segment_ids, x.size)
    named = added_rows(segment_ids, full_like(segment_ids, 1), x.size)
    return reshape(where(greater(named, 0), reduced, flat), x.shape)


def _flat_places(x: Array, axis: int, index: Array) -> Array:
    """Return the row-major position in ``x`` of each element of an index array."""
    total = None
    for a, part in enumerate(_key(x, axis, index)):
        stride = math.prod(x.shape[a + 1 :])
        term = multiply(from_the_front(part, x.shape[a]) if a == axis else part, stride)
        total = term if total is None else add(total, term)
    return reshape(broadcast_to(total, index.shape), (index.size,))


@of_axisless
def index_reduce(x: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True) -> Array:
    """Return ``x`` with row k along ``dim`` replaced by the ``reduce`` ("prod", "mean", "amax", "amin", "sum") of all
    rows i of ``source`` with index[i] = k. ``include_self`` includes the present row."""
    axis = normalize_axis("index_reduce", dim, x.ndim)
    if index.ndim > 1 or source.shape != (*x.shape[:axis], index.size, *x.shape[axis + 1 :]):
        raise ShapeError(
            f"[index_reduce] an index of shape {index.shape} and a source of shape {source.shape} do not fit shape "
            f"{x.shape} along axis {dim}: there is one row of the source for each index."
        )
    column = reshape(index, _thin(source.shape, axis))
    return scatter_reduce(x, axis, broadcast_to(column, source.shape), source, reduce, include_self)


def put_along_axis(x: Array, indices: Array, values: Operand, axis: int) -> Array:
    """Write ``values`` at the positions that ``take_along_axis(x, indices, axis)`` reads."""
    place = normalize_axis("put_along_axis", axis, x.ndim)
    if indices.ndim != x.ndim or not indices.dtype.is_integer:
        raise ShapeError(
            f"[put_along_axis] indices must be integers with as many axes as the array; got {indices.aval} for shape "
            f"{x.shape}."
        )
    shape = tuple(indices.shape[a] if a == place else n for a, n in enumerate(x.shape))
    wide = broadcast_to(indices, shape)
    filled = values if not isinstance(values, TensorLike) else broadcast_to(values, shape)
    return scatter(x, place, wide, filled)


def masked_scatter(x: Array, mask: Array, source: Array) -> Array:
    """Return ``x`` with the elements of ``source``, in order, where ``mask`` is True. ``x`` and ``mask`` broadcast.
    Raise AxisError if ``source`` has too few elements."""
    if mask.dtype is not bool_:
        raise DTypeError(f"[masked_scatter] the mask must be bool; got {mask.dtype.name}.")
    require_same_dtype("masked_scatter", x, source)
    shape = broadcast_shapes("masked_scatter", x.shape, mask.shape)
    x, chosen = broadcast_to(x, shape), broadcast_to(mask, shape)
    if not source.size or not x.size:
        return x.handle()
    flat = reshape(chosen, (x.size,))
    number = where(flat, subtract(cumsum(flat), 1), 0)
    values = take(reshape(source, (source.size,)), number)
    return where(chosen, reshape(values, x.shape), x)


@viewing
def select(x: Array, dim: int, index: int) -> Array:
    """Return the part at ``index`` along the axis ``dim``, without that axis."""
    axis = normalize_axis("select", dim, x.ndim)
    return getitem(x, (*[slice(None)] * axis, operator.index(index)))


def select_scatter(x: Array, src: Array, dim: int, index: int) -> Array:
    """Replace the part at ``index`` along the axis ``dim`` by ``src``."""
    axis = normalize_axis("select_scatter", dim, x.ndim)
    return put(x, (*[slice(None)] * axis, operator.index(index)), src)


def slice_scatter(
    x: Array, src: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    """Replace the slice start:end:step along the axis ``dim`` by ``src``."""
    axis = normalize_axis("slice_scatter", dim, x.ndim)
    if not step:
        raise ValueError("[slice_scatter] the step is not 0.")
    return put(x, (*[slice(None)] * axis, slice(start, end, step)), src)


# --- segments -----------------------------------------------------------------------------------------------------


def combined(reduce: str, values: Array, segment_ids: Array, rows: int) -> Array:
    """Return the reduction of the rows of ``values`` with each label below ``rows``. A label without rows has the
    reduction's initial value, or 0 for extremes."""
    if reduce in ("sum", "mean"):
        total = added_rows(segment_ids, values, rows)
        if reduce == "sum":
            return total
        count = reshape(
            maximum(added_rows(segment_ids, full_like(segment_ids, 1), rows), 1), (rows, *(1,) * (values.ndim - 1))
        )
        return (divide if values.dtype.is_float else floor_divide)(total, cast(count, total.dtype))
    if reduce == "prod":
        return _products(values, segment_ids, rows)
    shape = (rows, *values.shape[1:])
    if 0 in (rows, values.size):
        return full_like(values, 0, shape)
    extremes = extreme(reduce.removeprefix("a"), values, segment_ids, rows)
    counts = added_rows(segment_ids, full_like(segment_ids, 1), rows)
    return where(reshape(greater(counts, 0), (rows, *(1,) * (values.ndim - 1))), extremes, 0)


def _products(values: Array, segment_ids: Array, rows: int) -> Array:
    """Sort rows by label, then multiply each with the rows of the same label before it."""
    if not values.size:
        return full_like(values, 1, (rows, *values.shape[1:]))
    ordered, order = apply(sort_p, cast(segment_ids, int64), descending=False)
    lines = moveaxis(take(values, order, 0), 0, -1)
    marks = broadcast_to(ordered, lines.shape)

    def within(old: Rows, new: Rows) -> Rows:
        return where(equal(old[1], new[1]), multiply(old[0], new[0]), new[0]), new[1]

    so_far = moveaxis(running((lines, marks), within, (1, 0))[0], -1, 0)
    counts = added_rows(segment_ids, full_like(segment_ids, 1, dtype=int64), rows)
    last = maximum(subtract(cumsum(counts), 1), 0)
    is_empty = reshape(equal(counts, 0), (rows, *(1,) * (values.ndim - 1)))
    return where(is_empty, 1, take(so_far, last, 0))


def _segments(name: str, reduce: str, data: Array, segment_ids: Array, num_segments: int | None) -> Array:
    if segment_ids.ndim != 1 or not data.ndim or segment_ids.size != data.shape[0]:
        raise ShapeError(
            f"[{name}] segment ids of shape {segment_ids.shape} do not fit data of shape {data.shape}: there is one "
            "for each row."
        )
    rows = (
        1 + int(known(name, segment_ids).astype(np.int64).max(initial=-1))
        if num_segments is None
        else operator.index(num_segments)
    )
    require_in_range(name, segment_ids, 0, (rows,))
    return combined(reduce, data, segment_ids, rows)


def segment_sum(data: Array, segment_ids: Array, num_segments: int | None = None) -> Array:
    """Sum the rows of ``data`` with each id below ``num_segments``, by default the largest id plus 1; 0 for none."""
    return _segments("segment_sum", "sum", data, segment_ids, num_segments)


def segment_mean(data: Array, segment_ids: Array, num_segments: int | None = None) -> Array:
    """Return the mean of the rows of each segment, as :func:`segment_sum`; 0 for none."""
    return _segments("segment_mean", "mean", data, segment_ids, num_segments)


def segment_prod(data: Array, segment_ids: Array, num_segments: int | None = None) -> Array:
    """Return the product of the rows of each segment, as :func:`segment_sum`; 1 for none."""
    return _segments("segment_prod", "prod", data, segment_ids, num_segments)


def segment_max(data: Array, segment_ids: Array, num_segments: int | None = None) -> Array:
    """Return the largest elements of each segment, as :func:`segment_sum`; 0 for none.

    Equal largest elements share the gradient."""
    return _segments("segment_max", "amax", data, segment_ids, num_segments)


def segment_min(data: Array, segment_ids: Array, num_segments: int | None = None) -> Array:
    """Return the smallest elements of each segment, as :func:`segment_sum`; 0 for none.

    Equal smallest elements share the gradient."""
    return _segments("segment_min", "amin", data, segment_ids, num_segments)


def segment_reduce(
    data: Array,
    reduce: str,
    *,
    lengths: Array | None = None,
    indices: Array | None = None,
    offsets: Array | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Array:
    """Return the ``reduce`` ("sum", "mean", "max", "min", "prod") of each run of rows of ``data``. Give the runs as
    ``lengths``, or as ``offsets``, between which they are.

    ``initial`` counts as one more element. Without it, the result of an empty run is 0, NaN, -∞, ∞ or 1. ``axis`` must
    be 0, and ``indices`` None.
    """
    names = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin", "prod": "prod"}
    if reduce not in names:
        raise ValueError(f"[segment_reduce] reduce must be one of {', '.join(names)}; got {reduce!r}.")
    if axis != 0 or indices is not None or (lengths is None) == (offsets is None):
        raise ValueError("[segment_reduce] takes either lengths or offsets, vectors for the runs along axis 0.")
    sizes = known("segment_reduce", lengths) if offsets is None else np.diff(known("segment_reduce", offsets))
    if sizes.ndim != 1 or sizes.sum() != data.shape[0] or sizes.min(initial=0) < 0:
        raise ShapeError(f"[segment_reduce] lengths {sizes.tolist()} do not add up to the {data.shape[0]} rows.")
    rows = len(sizes)
    ids = data.lift(np.repeat(np.arange(rows), sizes), int64)
    values = data
    if initial is not None and reduce != "mean":
        values = concat([full_like(data, initial, (rows, *data.shape[1:])), data], 0)
        ids = concat([iota(data, (rows,), 0), ids], 0)
    reduced = combined(names[reduce], values, ids, rows)
    if initial is not None and reduce != "mean":
        return reduced
    nothing = {"sum": 0.0, "mean": math.nan, "max": -math.inf, "min": math.inf, "prod": 1.0}[reduce]
    is_empty = data.lift((sizes == 0).reshape(rows, *(1,) * (data.ndim - 1)), bool_)
    return where(is_empty, nothing if initial is None else initial, reduced)
