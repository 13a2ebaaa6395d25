"""Diagonals and triangles of matrices, windows along an axis, and powers."""

from __future__ import annotations

import builtins
import operator

import numpy as np

from runnel.core.avals import Shape
from runnel.core.dispatch import ViewStep, apply
from runnel.core.dtypes import Dtype, int64
from runnel.core.errors import ArgumentError, AxisError, ShapeError
from runnel.ops.arguments import Array, Operand, as_sizes, normalize_axis
from runnel.ops.creation_like import full_like, iota, ones_like
from runnel.ops.elementwise.arithmetic import add, multiply, remainder
from runnel.ops.elementwise.comparison import equal, greater_equal, less, less_equal, logical_and, where
from runnel.ops.indexing.assignment import put
from runnel.ops.indexing.gather import take
from runnel.ops.reductions.primitives import sum
from runnel.ops.shapes.pieces import flip, narrow, slice_p, stack
from runnel.ops.shapes.views import expand_dims, moveaxis, reshape, with_axis


def _require_matrices(name: str, x: Array) -> None:
    if x.ndim < 2:
        raise ShapeError(f"[{name}] needs matrices in the last two axes; got shape {x.shape}.")


def _rows_and_columns(x: Array) -> tuple[Array, Array]:
    m, n = x.shape[-2:]
    return iota(x, (m, 1), 0), iota(x, (1, n), 1)


def tril(x: Array, k: int = 0) -> Array:
    """Keep the elements on and below diagonal ``k`` (0: main, positive: above it); the others become 0."""
    _require_matrices("tril", x)
    i, j = _rows_and_columns(x)
    return where(less_equal(j, add(i, operator.index(k))), x, False)


def triu(x: Array, k: int = 0) -> Array:
    """Keep the elements on and above diagonal ``k`` (0: main, positive: above it); the others become 0."""
    _require_matrices("triu", x)
    i, j = _rows_and_columns(x)
    return where(greater_equal(j, add(i, operator.index(k))), x, False)


def diagonal(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return the elements x[…, i, i + offset, …] of the axes ``axis1`` and ``axis2`` as the last axis, a view."""

    def put(x: Array, new: Array) -> Array:
        return diagonal_scatter(x, new, offset, axis1, axis2)

    def layout(shape: Shape, strides: Shape) -> tuple[Shape, Shape]:
        first, second = (normalize_axis("diagonal", axis, len(shape)) for axis in (axis1, axis2))
        rest = [i for i in range(len(shape)) if i not in (first, second)]
        row, column = max(-offset, 0), max(offset, 0)
        count = max(min(shape[first] - row, shape[second] - column), 0)
        return (*[shape[i] for i in rest], count), (*[strides[i] for i in rest], strides[first] + strides[second])

    offset = operator.index(offset)
    result: Array = x.view_by(ViewStep(lambda x: _diagonal(x, offset, axis1, axis2), put, layout))
    return result


def _diagonal(x: Array, offset: int, axis1: int, axis2: int) -> Array:
    first, second = normalize_axis("diagonal", axis1, x.ndim), normalize_axis("diagonal", axis2, x.ndim)
    if first == second:
        raise AxisError(f"[diagonal] axes {axis1} and {axis2} of shape {x.shape} are the same; name two.")
    lines = moveaxis(x, (first, second), (-2, -1))
    m, n = lines.shape[-2:]
    row, column = max(-operator.index(offset), 0), max(operator.index(offset), 0)
    count = max(min(m - row, n - column), 0)
    if not count:
        return narrow(reshape(lines, (*lines.shape[:-2], m * n)), -1, 0, 0)
    square = narrow(narrow(lines, -2, row, count), -1, column, count)
    flat = reshape(square, (*square.shape[:-2], count * count))
    starts, sizes, steps = [0] * flat.ndim, list(flat.shape), [1] * flat.ndim
    sizes[-1], steps[-1] = count, count + 1
    return apply(slice_p, flat, starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))


def diagonal_scatter(x: Array, src: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Replace ``diagonal(x, offset, axis1, axis2)`` by ``src``, of the same shape."""
    shape = _diagonal(x, offset, axis1, axis2).shape
    if src.shape != shape:
        raise ShapeError(f"[diagonal_scatter] the diagonal has shape {shape}, src {src.shape}; make them equal.")
    if not src.size:
        return x.handle()
    axes = [normalize_axis("diagonal_scatter", axis, x.ndim) for axis in (axis1, axis2)]
    lines = moveaxis(x, axes, (-2, -1))
    m, n = lines.shape[-2:]
    k = operator.index(offset)
    places = np.clip(np.arange(n) - max(k, 0), 0, shape[-1] - 1)  # in src, of the element in each column
    spread = expand_dims(take(src, src.lift(places, int64), -1), -2)
    is_on = equal(iota(x, (1, n), 1), add(iota(x, (m, 1), 0), k))
    return moveaxis(where(is_on, spread, lines), (-2, -1), axes)


def diag_embed(x: Array, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Array:
    """Return matrices, in the axes ``axis1`` and ``axis2``, with the last axis of ``x`` on diagonal ``offset``,
    zeros elsewhere."""
    count, k = x.shape[normalize_axis("diag_embed", -1, x.ndim)], operator.index(offset)
    n = count + abs(k)
    as_sizes("diag_embed", (*x.shape[:-1], n, n))
    if not count:
        return moveaxis(full_like(x, 0, (*x.shape[:-1], n, n)), (-2, -1), (axis1, axis2))
    at = np.clip(np.arange(n) - max(-k, 0), 0, count - 1)
    spread = expand_dims(take(x, x.lift(at, int64), -1), -1)
    on_diagonal = equal(iota(x, (1, n), 1), add(iota(x, (n, 1), 0), k))
    return moveaxis(where(on_diagonal, spread, False), (-2, -1), (axis1, axis2))


def diag(x: Array, k: int = 0) -> Array:
    """Return diagonal ``k`` of a matrix, or the matrix with a vector on diagonal ``k``."""
    if x.ndim not in (1, 2):
        raise ShapeError(f"[diag] takes a vector or a matrix; got shape {x.shape}. Use diagonal() or diag_embed().")
    return diag_embed(x, k) if x.ndim == 1 else diagonal(x, k).separate()


def diagflat(x: Array, k: int = 0) -> Array:
    """Return the matrix with all elements of ``x`` on diagonal ``k``, zeros elsewhere."""
    return diag_embed(reshape(x, (x.size,)), k)


def trace(x: Array, offset: int = 0, dtype: Dtype = None) -> Array:
    """Sum diagonal ``offset`` of each matrix, in the dtypes of ``sum``."""
    _require_matrices("trace", x)
    return sum(diagonal(x, offset, -2, -1), -1, dtype=dtype)


def unfold(x: Array, axis: int, size: int, step: int = 1) -> Array:
    """Return the windows of ``size`` elements along ``axis``, ``step`` apart.

    The windows are counted along the axis, and their elements lie along a new last axis."""
    if not x.ndim:
        return narrow(unfold(with_axis(x), axis, 1, step)[0], 0, 0, size)
    place, width, by = normalize_axis("unfold", axis, x.ndim), operator.index(size), operator.index(step)
    n = x.shape[place]
    if not 0 <= width <= n or by < 1:
        raise ShapeError(
            f"[unfold] windows of {size} elements, {step} apart, along axis {axis} of shape {x.shape}; "
            f"a window has from 0 to {n} elements and the step is positive."
        )
    elements = np.arange(0, n - width + 1, by)[:, None] + np.arange(width)

    def look(x: Array) -> Array:
        return moveaxis(take(x, x.lift(elements, int64), place), place + 1, -1)

    def written(x: Array, new: Array) -> Array:
        if by < width:
            raise ArgumentError(
                f"[unfold] a write to windows must not reach an element several times; got windows of {width} "
                f"elements, {by} apart. Write to a copy (x.clone())."
            )
        return put(x, (slice(None),) * place + (x.lift(elements, int64),), moveaxis(new, -1, place + 1))

    def layout(shape: Shape, strides: Shape) -> tuple[Shape, Shape]:
        sizes = (*shape[:place], len(elements), *shape[place + 1 :], width)
        return sizes, (*strides[:place], strides[place] * by, *strides[place + 1 :], strides[place])

    windows: Array = x.view_by(ViewStep(look, written, layout))
    return windows


def vander(x: Array, n: int | None = None, increasing: bool = False) -> Array:
    """Return the powers of each element of the vector ``x`` as a row, ``n`` of them (None: as many as elements).

    The highest power is first, or the lowest with ``increasing``."""
    if x.ndim != 1:
        raise ShapeError(f"[vander] takes a vector; got shape {x.shape}.")
    return powers(x, x.size if n is None else operator.index(n), increasing)


def powers(x: Array, n: int, increasing: bool) -> Array:
    """Return ``n`` powers of each element along a new last axis."""
    if n < 0:
        raise ShapeError(f"[vander] the number of columns must not be negative; got {n}.")
    as_sizes("vander", (x.size, n, 1 << 20))  # so many powers that no program computes them are refused
    columns = [ones_like(x)]
    while len(columns) < n:
        columns.append(multiply(columns[-1], x))
    result = narrow(stack(columns, x.ndim), -1, 0, n)
    return result if increasing else flip(result, -1)


def fill_diagonal(x: Array, value: Operand, wrap: bool = False) -> Array:
    """Write ``value`` to the main diagonal.

    For a matrix, ``wrap`` continues the diagonal after a row is skipped. With more axes, which must have one size,
    it writes where all positions are equal."""
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError(f"[fill_diagonal] x must be a matrix, or have more axes of one size; got shape {x.shape}.")
    size = x.size
    step = x.shape[-1] + 1 if x.ndim == 2 else builtins.sum(x.shape[0] ** axis for axis in range(x.ndim))
    flat = iota(x, (size,), 0)
    is_on = equal(remainder(flat, step), 0)
    if x.ndim == 2 and not wrap:
        is_on = logical_and(is_on, less(flat, x.shape[-1] * x.shape[-1]))
    return where(reshape(is_on, x.shape), value, x)
