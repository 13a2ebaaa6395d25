"""Diagonals that are replaced."""

from __future__ import annotations

import operator

import numpy as np

from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, Operand, normalize_axis
from runnel.ops.arithmetic import add, remainder
from runnel.ops.comparison import equal, less
from runnel.ops.creation_like import iota
from runnel.ops.indexing import take
from runnel.ops.library.triangles import diagonal
from runnel.ops.logic import logical_and, where
from runnel.ops.views import expand_dims, moveaxis, reshape


def diagonal_scatter(x: Array, src: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """``x`` with ``src`` in the place of ``diagonal(x, offset, axis1, axis2)``, whose shape it has."""
    shape = diagonal(x, offset, axis1, axis2).shape
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


def fill_diagonal(x: Array, value: Operand, wrap: bool = False) -> Array:
    """``x`` with ``value`` on the main diagonal: of a matrix, of which ``wrap`` goes on after a row is left out; of
    more axes, which have one size, where all positions are equal."""
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError(f"[fill_diagonal] takes a matrix, or more axes of one size; received shape {x.shape}.")
    size = x.size
    step = x.shape[-1] + 1 if x.ndim == 2 else sum(x.shape[0] ** axis for axis in range(x.ndim))
    flat = iota(x, (size,), 0)
    is_on = equal(remainder(flat, step), 0)
    if x.ndim == 2 and not wrap:
        is_on = logical_and(is_on, less(flat, x.shape[-1] * x.shape[-1]))
    return where(reshape(is_on, x.shape), value, x)
