"""Factorizations of symmetric matrices that need not be definite: P·L·D·Lᵀ·Pᵀ with D of blocks of one or two rows.

J. Bunch, L. Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems", 1977.
Factors and pivots have the layout of LAPACK's ``sytrf`` and ``hetrf`` for the lower triangle: rows are not exchanged
in the columns before them. Gradients hold the pivots fixed: the part of L⁻¹·dA·L⁻ᴴ below the blocks belongs to dL,
the blocks to dD.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.dispatch import apply
from runnel.core.dtypes import int32, int64
from runnel.core.errors import DTypeError, ShapeError
from runnel.core.rules import TRANSPOSED
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.linalg.elimination import rows_of
from runnel.linalg.unchecked import checked
from runnel.loops.rules import HostCall
from runnel.ops.arguments import Array, broadcast_shapes
from runnel.ops.conversion import optimization_barrier_p
from runnel.ops.elementwise.arithmetic import add, multiply
from runnel.ops.elementwise.comparison import equal, greater, greater_equal, less, logical_and, logical_not, where
from runnel.ops.indexing.gather import take_along_axis
from runnel.ops.linear_algebra.contraction import matmul
from runnel.ops.linear_algebra.factorizations import (
    adjoint,
    host_op,
    require_matrices,
    rows_and_columns,
    solve,
    stacked,
    transposed,
)
from runnel.ops.linear_algebra.matrices import solve_triangular
from runnel.ops.shapes.broadcasting import Stacked, broadcast_to
from runnel.ops.shapes.views import expand_dims
from runnel.ops.sorting.sort import argsort

_ALPHA: Final = (1 + math.sqrt(17)) / 8  # bounds the growth of elements

ldl_p = Op(
    "ldl", "a, *, hermitian", "L below D, the pivots, and the number of the first block of D that is 0.",
    multiple_results=True, is_late=True,
)  # fmt: skip


def _pivot(a: Any, k: int, size: Any) -> tuple[int, int]:
    """Return the row that is exchanged for row k, or for the next one, and the number of rows of the block."""
    n = len(a)
    own = size(a[k, k])
    below = size(a[k + 1 :, k])
    if not below.size or own >= _ALPHA * below.max():
        return k, 1
    largest = below.max()
    row = k + 1 + int(below.argmax())
    others = max(size(a[row, k:row]).max(), size(a[row + 1 :, row]).max() if row + 1 < n else 0)
    if own * others >= _ALPHA * largest * largest:
        return k, 1
    return (row, 1) if size(a[row, row]) >= _ALPHA * others else (row, 2)


def _one_ldl(a: Any, conj: Any) -> tuple[Any, int]:
    """Overwrites the lower triangle of ``a``."""

    def size(x: Any) -> Any:
        return np.abs(x.real) + np.abs(x.imag)

    n = len(a)
    pivots, info, k = np.zeros(n, np.int32), 0, 0
    while k < n:
        row, count = _pivot(a, k, size)
        to = k + count - 1
        if row != to:  # of the symmetric rest, of which the lower triangle is kept
            a[row + 1 :, [to, row]] = a[row + 1 :, [row, to]]
            middle = a[to + 1 : row, to].copy()
            a[to + 1 : row, to] = conj(a[row, to + 1 : row])
            a[row, to + 1 : row] = conj(middle)
            a[row, to] = conj(a[row, to])
            a[to, to], a[row, row] = a[row, row], a[to, to]
            if count == 2:
                a[to, k], a[row, k] = a[row, k], a[to, k]
        block = a[k : k + count, k : k + count].copy()
        pivots[k : k + count] = row + 1 if count == 1 else -(row + 1)
        if count == 2:
            block[0, 1] = conj(block[1, 0])
        rest = a[k + count :, k : k + count]
        if count == 1 and block[0, 0] == 0:
            info = info or k + 1
        elif len(rest):
            scaled = rest @ np.linalg.inv(block)
            a[k + count :, k + count :] -= np.tril(scaled @ conj(rest).T)
            rest[...] = scaled
        k += count
    return pivots, info


def _ldl(a: Any, *, hermitian: bool) -> tuple[Any, Any, Any]:
    n = a.shape[-1]
    factors = stacked(np.tril(a))
    if hermitian:
        factors[:, range(n), range(n)] = factors[:, range(n), range(n)].real
    conj = np.conj if hermitian else np.asarray
    each = [_one_ldl(one, conj) for one in factors]
    pivots = np.array([p for p, _ in each], np.int32).reshape(a.shape[:-1])
    return factors.reshape(a.shape), pivots, np.array([i for _, i in each], np.int32).reshape(a.shape[:-2])


host_op(ldl_p, _ldl, lambda m, n, k: n**3 // 3)


@abstract_eval.rule(ldl_p)
def _ldl_abstract_eval(a: ShapedArray, *, hermitian: bool) -> tuple[ShapedArray, ShapedArray, ShapedArray]:
    require_matrices("ldl_factor", a, square=True)
    return a, aval(a.shape[:-1], int32), aval(a.shape[:-2], int32)


# --- what stands where --------------------------------------------------------------------------------------------

layout_p = Op(
    "ldl_layout", "pivots", "The row in which each element of L stands, the order of rows, and the block of each.",
    multiple_results=True, is_late=True,
)  # fmt: skip


def _layout(pivots: Any) -> tuple[Any, Any, Any]:
    n = pivots.shape[-1]
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), n).astype(np.int64)
    rows = np.tile(np.arange(n)[:, None], (len(flat), 1, n))
    order, blocks = np.tile(np.arange(n), (len(flat), 1)), np.zeros((len(flat), n), np.int64)
    for one, places, own, block in zip(flat, rows, order, blocks, strict=True):
        k = 0
        while k < n:
            count = 2 if one[k] < 0 and k + 1 < n else 1
            to, row = k + count - 1, min(max(abs(int(one[k])) - 1, 0), n - 1)
            own[[to, row]] = own[[row, to]]
            places[[to, row], :k] = places[[row, to], :k]
            block[k : k + count] = k
            k += count
    batch = pivots.shape[:-1]
    return rows.reshape(*batch, n, n), order.reshape(*batch, n), blocks.reshape(*batch, n)


lower.register(layout_p, HostCall())
reference.register(layout_p, _layout)
axes.register(layout_p, Stacked())
jvp.register(layout_p, TRANSPOSED)
cost.register(layout_p, lambda pivots: pivots.size)


@abstract_eval.rule(layout_p)
def _layout_abstract_eval(pivots: ShapedArray) -> tuple[ShapedArray, ShapedArray, ShapedArray]:
    if not pivots.dtype.is_integer or not pivots.ndim:
        raise DTypeError(f"[ldl_solve] pivots must be integers, a vector for each matrix; got {pivots}.")
    vector = aval(pivots.shape, int64)
    return aval((*pivots.shape, pivots.shape[-1]), int64), vector, vector


class _Parts(NamedTuple):
    L: Array
    D: Array
    rows: Array
    order: Array
    is_block: Array
    is_below: Array  # under the blocks


def _parts(packed: Array, pivots: Array, hermitian: bool) -> _Parts:
    rows, order, blocks = apply(layout_p, pivots)
    i, j = rows_and_columns(packed)
    is_block = equal(expand_dims(blocks, -1), expand_dims(blocks, -2))
    is_below = logical_and(greater(i, j), logical_not(is_block))
    factor = where(equal(i, j), 1, where(is_below, take_along_axis(packed, rows, -2), 0))
    block = where(is_block, where(less(i, j), _flipped(packed, hermitian), packed), 0)
    return _Parts(factor, block, rows, order, is_block, is_below)


def _flipped(x: Array, hermitian: bool) -> Array:
    return adjoint(x) if hermitian else transposed(x)


@vjp.rule(ldl_p)
def _ldl_vjp(gs: Any, outs: Any, a: Array, *, hermitian: bool, needs_grad: Any) -> tuple[Array]:
    """With F = L⁻¹·dA·L⁻ᴴ, L⁻¹·dL = F·D⁻¹ below the blocks, and dD = F in them."""
    parts = _parts(outs[0], outs[1], hermitian)
    g = take_along_axis(gs[0], parts.rows, -2)
    i, j = rows_and_columns(g)
    upper = adjoint(parts.L)
    left = where(parts.is_below, matmul(upper, where(parts.is_below, g, 0)), 0)
    slope = where(parts.is_below, adjoint(solve(parts.D, adjoint(left))), 0)
    inner = add(slope, where(logical_and(parts.is_block, greater_equal(i, j)), g, 0))
    outer = solve_triangular(upper, inner, upper=True, unitriangular=True)
    outer = solve_triangular(upper, _flipped(outer, hermitian), upper=True, unitriangular=True)
    back = argsort(parts.order)
    outer = rows_of(transposed(rows_of(transposed(outer), back)), back)
    total = add(outer, _flipped(outer, hermitian))
    return (where(equal(i, j), multiply(total, 0.5), where(greater(i, j), total, 0)),)


# --- functions ----------------------------------------------------------------------------------------------------


class FactorLDL(NamedTuple):
    """L below D in one matrix, and the pivots."""

    LD: Array
    pivots: Array


class FactorLDLEx(NamedTuple):
    """L below D in one matrix, the pivots, and the number of the first block of D that is 0 (0: none)."""

    LD: Array
    pivots: Array
    info: Array


def ldl_factor_ex(x: Array, *, hermitian: bool = False, check_errors: bool = False) -> FactorLDLEx:
    """Return :func:`ldl_factor`, and ``info``: 0, or the number of the first 1 × 1 block of D that is 0.

    A matrix with such a block has no solution; ``check_errors`` raises LinAlgError for it."""
    packed, pivots, info = apply(ldl_p, x, hermitian=hermitian)
    info = checked("ldl_factor_ex", info, check_errors)
    return FactorLDLEx(packed, pivots, info)


def ldl_factor(x: Array, *, hermitian: bool = False) -> FactorLDL:
    """Factor symmetric matrices as P·L·D·Lᵀ·Pᵀ, or with ``hermitian`` Hermitian ones as P·L·D·Lᴴ·Pᵀ, for
    :func:`ldl_solve`.

    Reads the lower triangle of ``x``. The result has LAPACK's layout: L, with an implicit diagonal of 1, below the
    blocks of D in one matrix, and int32 pivots, which count rows from 1 and are negative for blocks of two rows."""
    packed, pivots, info = apply(ldl_p, x, hermitian=hermitian)
    return FactorLDL(packed, apply(optimization_barrier_p, pivots, checked("ldl_factor", info, True)))


def ldl_solve(LD: Array, pivots: Array, B: Array, *, hermitian: bool = False) -> Array:
    """Solve a·x = ``B`` for right-hand sides (…, n, k), where ``LD`` and ``pivots`` are the :func:`ldl_factor` of a.

    Leading axes broadcast. Gradients flow to ``LD`` and ``B``."""
    n, _ = require_matrices("ldl_solve", LD, square=True)
    if B.ndim < 2 or B.shape[-2] != n or pivots.shape[-1:] != (n,):
        raise ShapeError(
            f"[ldl_solve] matrices {n} × {n} need right sides of shape (..., {n}, k) and {n} pivots each; got shapes "
            f"{B.shape} and {pivots.shape}."
        )
    batch = broadcast_shapes("ldl_solve", LD.shape[:-2], B.shape[:-2])
    packed, sides = (broadcast_to(x, batch + x.shape[-2:]) for x in (LD, B))
    parts = _parts(packed, broadcast_to(pivots, (*batch, n)), hermitian)
    first = solve_triangular(parts.L, rows_of(sides, parts.order), upper=False, unitriangular=True)
    second = solve(parts.D, first)
    third = solve_triangular(_flipped(parts.L, hermitian), second, upper=True, unitriangular=True)
    return rows_of(third, argsort(parts.order))
