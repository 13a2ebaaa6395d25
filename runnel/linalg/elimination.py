"""Gaussian elimination with partial pivoting: matrices as P·L·U, and systems of equations by these factors.

G. Golub, C. Van Loan, "Matrix Computations", 3.4; factors and pivots as LAPACK's ``getrf`` leaves them. By NumPy, a
rank-one update of all matrices at a time. Gradients: S. Axen, "Differentiating the LU decomposition", 2021. They are
those at fixed pivots.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.dispatch import apply
from runnel.core.dtypes import int32, int64
from runnel.core.errors import DTypeError, ShapeError
from runnel.core.rules import TRANSPOSED
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.loops.rules import HostCall
from runnel.ops.arguments import Array, broadcast_shapes
from runnel.ops.conversion import cast
from runnel.ops.creation_like import iota
from runnel.ops.elementwise.arithmetic import add, subtract
from runnel.ops.elementwise.comparison import equal, greater, less_equal, where
from runnel.ops.indexing.gather import take_along_axis
from runnel.ops.linear_algebra.contraction import matmul
from runnel.ops.linear_algebra.factorizations import (
    adjoint as adjoint_of,
    host_op,
    require_matrices,
    rows_and_columns,
    stacked,
    transposed,
)
from runnel.ops.linear_algebra.matrices import solve_triangular
from runnel.ops.shapes.broadcasting import Stacked, broadcast_to
from runnel.ops.shapes.pieces import concat, narrow
from runnel.ops.shapes.views import expand_dims
from runnel.ops.sorting.sort import argsort

lu_p = Op(
    "lu", "a", "L (1 on the diagonal) below U, the pivots (from 1 on), and the rows of a in the order of L·U.",
    multiple_results=True, is_late=True,
)  # fmt: skip


def _lu(a: Any) -> tuple[Any, Any, Any]:
    m, n = a.shape[-2:]
    k, batch = min(m, n), a.shape[:-2]
    lu = stacked(a).copy()
    each = np.arange(len(lu))
    pivots, order = np.zeros((len(lu), k), np.int32), np.tile(np.arange(m), (len(lu), 1))
    with np.errstate(all="ignore"):
        for j in range(k):
            column = lu[:, j:, j]
            size = np.abs(column.real) + np.abs(column.imag) if np.iscomplexobj(a) else np.abs(column)
            best = j + size.argmax(1)
            pivots[:, j] = best + 1
            for rows in (lu, order):
                first, second = rows[each, best].copy(), rows[:, j].copy()
                rows[each, best], rows[:, j] = second, first
            pivot = lu[:, j, j][:, None]
            lu[:, j + 1 :, j] = np.where(pivot == 0, lu[:, j + 1 :, j], lu[:, j + 1 :, j] / pivot)
            lu[:, j + 1 :, j + 1 :] -= lu[:, j + 1 :, j, None] * lu[:, j, None, j + 1 :]
    return lu.reshape(a.shape), pivots.reshape(*batch, k), order.reshape(*batch, m)


host_op(lu_p, _lu, lambda m, n, k: m * n * k)


@abstract_eval.rule(lu_p)
def _lu_abstract_eval(a: ShapedArray) -> tuple[ShapedArray, ShapedArray, ShapedArray]:
    m, n = require_matrices("lu", a)
    return a, aval((*a.shape[:-2], min(m, n)), int32), aval((*a.shape[:-2], m), int64)


@vjp.rule(lu_p)
def _lu_vjp(gs: Any, outs: Any, a: Array, *, needs_grad: Any) -> tuple[Array]:
    """Differentiate the first min(m, n) rows and columns; the rest solves a system of equations with their factors."""
    (g, _, _), (lu, _, order) = gs, outs
    (m, n), k = a.shape[-2:], min(a.shape[-2:])
    lower_one, upper_one = _lower(lu), _upper(lu)
    g_l, g_u = _below(narrow(g, -1, 0, k)), _above(narrow(g, -2, 0, k))
    square_l, square_u = narrow(lower_one, -2, 0, k), narrow(upper_one, -1, 0, k)
    right, below = None, None
    gl, gu = narrow(g_l, -2, 0, k), narrow(g_u, -1, 0, k)
    if n > k:
        right = solve_triangular(adjoint_of(square_l), narrow(g_u, -1, k, n - k), upper=True, unitriangular=True)
        gl = subtract(gl, matmul(right, adjoint_of(narrow(upper_one, -1, k, n - k))))
    if m > k:
        below = adjoint_of(solve_triangular(square_u, adjoint_of(narrow(g_l, -2, k, m - k)), upper=True))
        gu = subtract(gu, matmul(adjoint_of(narrow(lower_one, -2, k, m - k)), below))
    inner = add(_below(matmul(adjoint_of(square_l), gl)), _above(matmul(gu, adjoint_of(square_u))))
    left = solve_triangular(adjoint_of(square_l), inner, upper=True, unitriangular=True)
    ordered = adjoint_of(solve_triangular(square_u, adjoint_of(left), upper=True))
    if right is not None:
        ordered = concat([ordered, right], -1)
    if below is not None:
        ordered = concat([ordered, below], -2)
    return (rows_of(ordered, argsort(order)),)


def rows_of(x: Array, order: Array) -> Array:
    """Reorder the rows of matrices."""
    return take_along_axis(x, broadcast_to(expand_dims(order, -1), x.shape), -2)


def _below(x: Array) -> Array:
    i, j = rows_and_columns(x)
    return where(greater(i, j), x, 0)


def _above(x: Array) -> Array:
    i, j = rows_and_columns(x)
    return where(less_equal(i, j), x, 0)


def _lower(lu: Array) -> Array:
    """Return L (m, k), with 1 on the diagonal."""
    part = narrow(lu, -1, 0, min(lu.shape[-2:]))
    i, j = rows_and_columns(part)
    return where(equal(i, j), 1, _below(part))


def _upper(lu: Array) -> Array:
    """Return U (k, n)."""
    return _above(narrow(lu, -2, 0, min(lu.shape[-2:])))


def _permutation(order: Array, like: Array) -> Array:
    """Return P with P·x = the rows of x in the order ``order``: P[order[i], i] = 1."""
    m = order.shape[-1]
    return cast(equal(iota(order, (m, 1), 0), expand_dims(order, -2)), like.dtype)


# --- pivots -------------------------------------------------------------------------------------------------------

row_order_p = Op("row_order", "pivots, *, rows", "The order of rows after exchanges with pivots.", is_late=True)


def _row_order(pivots: Any, *, rows: int) -> Any:
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    order, each = np.tile(np.arange(rows), (len(flat), 1)), np.arange(len(flat))
    for j in range(flat.shape[1]):
        other = np.clip(flat[:, j].astype(np.int64) - 1, 0, rows - 1)
        order[each, other], order[:, j] = order[:, j].copy(), order[each, other].copy()
    return order.reshape(*pivots.shape[:-1], rows)


lower.register(row_order_p, HostCall())
reference.register(row_order_p, _row_order)
axes.register(row_order_p, Stacked())
jvp.register(row_order_p, TRANSPOSED)
cost.register(row_order_p, lambda pivots, *, rows: pivots.size)


@abstract_eval.rule(row_order_p)
def _row_order_abstract_eval(pivots: ShapedArray, *, rows: int) -> ShapedArray:
    if not pivots.dtype.is_integer or not pivots.ndim or pivots.shape[-1] > rows:
        raise DTypeError(f"[lu] pivots must be at most {rows} integers for each matrix; got {pivots}.")
    return aval((*pivots.shape[:-1], rows), int64)


# --- functions ----------------------------------------------------------------------------------------------------


class LU(NamedTuple):
    """A permutation, a lower triangle with 1 on the diagonal, and an upper triangle: P·L·U."""

    P: Array
    L: Array
    U: Array


class FactorLU(NamedTuple):
    """L below U in one matrix, and the pivots: row i was exchanged with row pivots[i], counted from 1."""

    LU: Array
    pivots: Array


def _require_pivots(name: str, pivot: bool) -> None:
    if not pivot:
        raise ValueError(f"[{name}] rows are always exchanged for the greatest pivots; pivot=False is not supported.")


def lu(x: Array, pivot: bool = True) -> LU:
    """Factor matrices (m, n) as P·L·U, with k = min(m, n).

    Returns a named tuple: P (m, m), L (m, k) with 1 on the diagonal, and U (k, n). The gradient requires that the
    first k pivots are not 0."""
    _require_pivots("lu", pivot)
    packed, _, order = apply(lu_p, x)
    return LU(_permutation(order, x), _lower(packed), _upper(packed))


def lu_factor(x: Array, pivot: bool = True) -> FactorLU:
    """Return the factors of :func:`lu` in one matrix, and the int32 pivots, for :func:`lu_solve` and ``lu_unpack``."""
    _require_pivots("lu_factor", pivot)
    packed, pivots, _ = apply(lu_p, x)
    return FactorLU(packed, pivots)


def lu_unpack(
    LU_data: Array, LU_pivots: Array, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Array | None, Array | None, Array | None]:
    """Return P, L and U from the result of :func:`rn.linalg.lu_factor`; None for a part that is not requested."""
    order = apply(row_order_p, LU_pivots, rows=LU_data.shape[-2]) if unpack_pivots else None
    return (
        None if order is None else _permutation(order, LU_data),
        _lower(LU_data) if unpack_data else None,
        _upper(LU_data) if unpack_data else None,
    )


def lu_solve(LU: Array, pivots: Array, B: Array, *, left: bool = True, adjoint: bool = False) -> Array:
    """Solve a·x = ``B``, or x·a = ``B`` unless ``left``, where ``LU`` and ``pivots`` are the :func:`lu_factor` of a.

    With ``adjoint``, a is replaced by its adjoint. Leading axes broadcast."""
    if not left:
        return adjoint_of(lu_solve(LU, pivots, adjoint_of(B), adjoint=not adjoint))
    n, _ = require_matrices("lu_solve", LU, square=True)
    if B.ndim < 2 or B.shape[-2] != n:
        raise ShapeError(f"[lu_solve] matrices {n} × {n} need right sides of shape (..., {n}, k); got {B.shape}.")
    batch = broadcast_shapes("lu_solve", LU.shape[:-2], B.shape[:-2])
    factors, sides = (broadcast_to(x, batch + x.shape[-2:]) for x in (LU, B))
    order = broadcast_to(apply(row_order_p, pivots, rows=n), (*batch, n))
    if adjoint:
        first = solve_triangular(transposed(_conjugate(factors)), sides, upper=False)
        second = solve_triangular(transposed(_conjugate(factors)), first, upper=True, unitriangular=True)
        return rows_of(second, argsort(order))
    first = solve_triangular(factors, rows_of(sides, order), upper=False, unitriangular=True)
    return solve_triangular(factors, first, upper=True)


def lu_solution(b: Array, LU_data: Array, LU_pivots: Array) -> Array:
    """Solve a·x = ``b``, given the :func:`lu_factor` of a."""
    return lu_solve(LU_data, LU_pivots, b)


def _conjugate(x: Array) -> Array:
    return transposed(adjoint_of(x))
