"""Factorizations that say for each matrix whether they succeeded, and raise nothing; and systems of more axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.dispatch import apply
from runnel.core.dtypes import int32
from runnel.core.errors import ShapeError
from runnel.core.tables import Op, abstract_eval
from runnel.linalg.elimination import FactorLU, lu_factor, lu_p
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast, optimization_barrier_p, stop_gradient
from runnel.ops.creation_like import full_like, iota
from runnel.ops.elementwise.arithmetic import divide, multiply
from runnel.ops.elementwise.comparison import equal, where
from runnel.ops.linear_algebra.factorizations import host_op, require_matrices, rows_and_columns, solve, stacked
from runnel.ops.linear_algebra.matrices import cholesky, inv, matrix_norm, svdvals
from runnel.ops.reductions.primitives import max as greatest, min as least
from runnel.ops.requirement import requiring
from runnel.ops.shapes.diagonals import diagonal
from runnel.ops.shapes.views import expand_dims, moveaxis, reshape, squeeze

minors_p = Op(
    "minors", "a", "The number of the first leading minor that is not positive, from 1 on; 0 if all are.", is_late=True
)


def _minors(a: Any) -> Any:
    """Eliminate without pivoting, all matrices at a time."""
    n = a.shape[-1]
    rest = stacked(np.tril(a)).astype(np.result_type(a.dtype, np.float64))
    first = np.zeros(len(rest), np.int32)
    with np.errstate(all="ignore"):
        for j in range(n):
            pivot = rest[:, j, j].real
            first = np.where((first == 0) & ~(pivot > 0), j + 1, first)
            column = rest[:, j + 1 :, j]
            rest[:, j + 1 :, j + 1 :] -= column[:, :, None] * np.conj(column)[:, None, :] / pivot[:, None, None]
    return first.astype(np.int32).reshape(a.shape[:-2])


host_op(minors_p, _minors, lambda m, n, k: n**3 // 3)


@abstract_eval.rule(minors_p)
def _minors_abstract_eval(a: ShapedArray) -> ShapedArray:
    require_matrices("cholesky_ex", a, square=True)
    return aval(a.shape[:-2], int32)


def _first_zero(x: Array) -> Array:
    """Return the number of the first pivot that is 0, from 1 on; 0 if there is none."""
    pivots = diagonal(apply(lu_p, stop_gradient(x))[0], 0, -2, -1)
    count = pivots.shape[-1]
    if not count:
        return full_like(x, 0, pivots.shape[:-1], int32)
    numbers = where(equal(pivots, 0), iota(x, (count,), 0) + 1, count + 1)
    first = least(numbers, -1)
    return cast(where(equal(first, count + 1), 0, first), int32)


def _regular(x: Array, info: Array) -> Array:
    """Replace matrices that failed by the identity."""
    i, j = rows_and_columns(x)
    return where(expand_dims(equal(info, 0), (-2, -1)), x, cast(equal(i, j), x.dtype))


def _or_nan(x: Array, info: Array, axes: int = 2) -> Array:
    return where(expand_dims(equal(info, 0), tuple(range(-axes, 0))), x, math.nan)


def checked(name: str, info: Array, check_errors: bool) -> Array:
    """Return ``info``; with ``check_errors``, raise LinAlgError unless all of it is 0 (at run time in a program)."""
    if not check_errors:
        return info
    known = info.known()
    if known is None:
        return requiring(info, equal(info, 0), f"[{name}] a matrix has no result: its info is not 0")
    if known.any():
        raise np.linalg.LinAlgError(f"[{name}] a matrix has no result: its info is {int(known.max())}.")
    return info


class CholeskyInfo(NamedTuple):
    """A lower (or upper) triangle, and 0, or the number of the first minor that is not positive."""

    L: Array
    info: Array


class InverseInfo(NamedTuple):
    """An inverse, and 0, or the number of the first pivot that is 0."""

    inverse: Array
    info: Array


class SolutionInfo(NamedTuple):
    """A solution, and 0, or the number of the first pivot that is 0."""

    result: Array
    info: Array


class FactorLUInfo(NamedTuple):
    """The factors of ``lu_factor``, and 0, or the number of the first pivot that is 0."""

    LU: Array
    pivots: Array
    info: Array


def cholesky_ex(x: Array, *, upper: bool = False, check_errors: bool = False) -> CholeskyInfo:
    """Return ``cholesky``, NaN for matrices that are not positive definite, and an int32 ``info`` for each matrix.

    ``info`` is 0, or the number of the first leading minor that is not positive. ``check_errors`` raises LinAlgError
    in that case."""
    info = apply(minors_p, stop_gradient(x))
    info = checked("cholesky_ex", info, check_errors)
    return CholeskyInfo(_or_nan(cholesky(_regular(x, info), upper=upper), info), info)


def inv_ex(x: Array, *, check_errors: bool = False) -> InverseInfo:
    """Return ``inv``, NaN for singular matrices, and an int32 ``info`` for each matrix.

    ``info`` is 0, or the number of the first pivot of the elimination that is 0. ``check_errors`` raises LinAlgError
    in that case."""
    info = _first_zero(x)
    info = checked("inv_ex", info, check_errors)
    return InverseInfo(_or_nan(inv(_regular(x, info)), info), info)


def solve_ex(a: Array, b: Array, *, left: bool = True, check_errors: bool = False) -> SolutionInfo:
    """Return ``solve`` (of x·a = b unless ``left``), NaN for singular matrices, and the ``info`` of :func:`inv_ex`."""
    info = _first_zero(a)
    info = checked("solve_ex", info, check_errors)
    if not left:
        result = solve(moveaxis(_regular(a, info), -1, -2), moveaxis(b, -1, -2))
        return SolutionInfo(_or_nan(moveaxis(result, -1, -2), info), info)
    is_vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    if is_vector:
        return SolutionInfo(_or_nan(squeeze(solve(_regular(a, info), expand_dims(b, -1)), -1), info, 1), info)
    return SolutionInfo(_or_nan(solve(_regular(a, info), b), info), info)


def lu_factor_ex(x: Array, *, pivot: bool = True, check_errors: bool = False) -> FactorLUInfo:
    """Return ``lu_factor``, and the ``info`` of :func:`inv_ex`."""
    info = _first_zero(x)
    info = checked("lu_factor_ex", info, check_errors)
    packed, pivots, _ = apply(lu_p, x)
    return FactorLUInfo(apply(optimization_barrier_p, packed, info) if check_errors else packed, pivots, info)


def packed_lu(A: Array, pivot: bool = True, get_infos: bool = False) -> FactorLU | FactorLUInfo:
    """Return the factors of ``lu_factor``, or with ``get_infos`` the result of :func:`lu_factor_ex`."""
    return lu_factor_ex(A, pivot=pivot) if get_infos else lu_factor(A, pivot)


def cond(x: Array, p: float | str | None = None) -> Array:
    """Return the condition number |x|·|x⁻¹| in a norm of :func:`matrix_norm` (None: 2), ∞ for singular matrices."""
    if p in (None, 2, -2):
        values = svdvals(x)
        low, high = least(values, -1), greatest(values, -1)
        return divide(low, high) if p == -2 else divide(high, low)
    inverse, info = inv_ex(x)
    both = multiply(matrix_norm(x, ord=p), matrix_norm(inverse, ord=p))
    return where(equal(info, 0), both, math.inf)


# --- more axes ----------------------------------------------------------------------------------------------------


def tensorinv(x: Array, ind: int = 2) -> Array:
    """Return the inverse of ``x`` as a map from its last axes to its first ``ind`` axes.

    ``tensordot(tensorinv(x), x, ind)`` is the identity."""
    size = math.prod(x.shape[:ind])
    if ind < 1 or size != math.prod(x.shape[ind:]):
        raise ShapeError(f"[tensorinv] the first {ind} axes of shape {x.shape} have as many elements as the others.")
    return reshape(inv(reshape(x, (size, size))), (*x.shape[ind:], *x.shape[:ind]))


def tensorsolve(a: Array, b: Array, dims: Sequence[int] | None = None) -> Array:
    """Solve ``tensordot(a, x, x.ndim)`` = ``b``, after moving the axes ``dims`` of ``a`` to its end."""
    if dims is not None:
        a = moveaxis(a, tuple(dims), tuple(range(-len(dims), 0)))
    shape = a.shape[b.ndim :]
    if math.prod(shape) != b.size or a.size != b.size**2:
        raise ShapeError(f"[tensorsolve] shape {a.shape} is no square system for a right side of shape {b.shape}.")
    return reshape(solve(reshape(a, (b.size, b.size)), reshape(b, (b.size,))), shape)
