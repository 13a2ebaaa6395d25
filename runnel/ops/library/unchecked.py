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
from runnel.ops.arguments import Array
from runnel.ops.arithmetic import divide, multiply
from runnel.ops.comparison import equal
from runnel.ops.conversion import cast, stop_gradient
from runnel.ops.creation_like import full_like, iota
from runnel.ops.library.elimination import FactorLU, lu_factor, lu_p
from runnel.ops.library.matrices import cholesky, inv, matrix_norm, svdvals
from runnel.ops.library.requirement import requiring
from runnel.ops.library.triangles import diagonal
from runnel.ops.linalg import host_op, require_matrices, rows_and_columns, solve, stacked
from runnel.ops.logic import where
from runnel.ops.optimization_barrier import optimization_barrier_p
from runnel.ops.reductions import max as greatest, min as least
from runnel.ops.views import expand_dims, moveaxis, reshape, squeeze

minors_p = Op(
    "minors", "a", "The number of the first leading minor that is not positive, from 1 on; 0 if all are.", is_late=True
)


def _minors(a: Any) -> Any:
    """By elimination without pivots, all matrices at a time."""
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
    """The number of the first pivot that is 0, from 1 on; 0 if none is."""
    pivots = diagonal(apply(lu_p, stop_gradient(x))[0], 0, -2, -1)
    count = pivots.shape[-1]
    if not count:
        return full_like(x, 0, pivots.shape[:-1], int32)
    numbers = where(equal(pivots, 0), iota(x, (count,), 0) + 1, count + 1)
    first = least(numbers, -1)
    return cast(where(equal(first, count + 1), 0, first), int32)


def _regular(x: Array, info: Array) -> Array:
    """``x``, with the identity for matrices that failed."""
    i, j = rows_and_columns(x)
    return where(expand_dims(equal(info, 0), (-2, -1)), x, cast(equal(i, j), x.dtype))


def _or_nan(x: Array, info: Array, axes: int = 2) -> Array:
    return where(expand_dims(equal(info, 0), tuple(range(-axes, 0))), x, math.nan)


def checked(name: str, info: Array, check_errors: bool) -> Array:
    """``info``, all of which is 0 where errors are to be checked."""
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
    """``cholesky``, NaN for matrices that are not positive definite, and for each an int32 ``info``: 0, or the number
    of the first leading minor that is not positive. LinAlgError with ``check_errors``."""
    info = apply(minors_p, stop_gradient(x))
    info = checked("cholesky_ex", info, check_errors)
    return CholeskyInfo(_or_nan(cholesky(_regular(x, info), upper=upper), info), info)


def inv_ex(x: Array, *, check_errors: bool = False) -> InverseInfo:
    """``inv``, NaN for singular matrices, and for each an int32 ``info``: 0, or the number of the first pivot of its
    elimination that is 0. LinAlgError with ``check_errors``."""
    info = _first_zero(x)
    info = checked("inv_ex", info, check_errors)
    return InverseInfo(_or_nan(inv(_regular(x, info)), info), info)


def solve_ex(a: Array, b: Array, *, left: bool = True, check_errors: bool = False) -> SolutionInfo:
    """``solve`` (or x·a = b, unless ``left``), NaN for singular matrices, with the ``info`` of :func:`inv_ex`."""
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
    """``lu_factor``, with the ``info`` of :func:`inv_ex`."""
    info = _first_zero(x)
    info = checked("lu_factor_ex", info, check_errors)
    packed, pivots, _ = apply(lu_p, x)
    return FactorLUInfo(apply(optimization_barrier_p, packed, info) if check_errors else packed, pivots, info)


def packed_lu(A: Array, pivot: bool = True, get_infos: bool = False) -> FactorLU | FactorLUInfo:
    """The factors of ``lu_factor``; with ``get_infos``, those of :func:`lu_factor_ex`."""
    return lu_factor_ex(A, pivot=pivot) if get_infos else lu_factor(A, pivot)


def cond(x: Array, p: float | str | None = None) -> Array:
    """The condition number in a norm of :func:`matrix_norm` (None: 2): |x|·|x⁻¹|, ∞ for singular
    matrices."""
    if p in (None, 2, -2):
        values = svdvals(x)
        low, high = least(values, -1), greatest(values, -1)
        return divide(low, high) if p == -2 else divide(high, low)
    inverse, info = inv_ex(x)
    both = multiply(matrix_norm(x, ord=p), matrix_norm(inverse, ord=p))
    return where(equal(info, 0), both, math.inf)


# --- more axes ----------------------------------------------------------------------------------------------------


def tensorinv(x: Array, ind: int = 2) -> Array:
    """The inverse of ``x`` as a map from its last axes to its first ``ind``: ``tensordot(tensorinv(x), x, ind)`` is the
    identity."""
    size = math.prod(x.shape[:ind])
    if ind < 1 or size != math.prod(x.shape[ind:]):
        raise ShapeError(f"[tensorinv] the first {ind} axes of shape {x.shape} have as many elements as the others.")
    return reshape(inv(reshape(x, (size, size))), (*x.shape[ind:], *x.shape[:ind]))


def tensorsolve(a: Array, b: Array, dims: Sequence[int] | None = None) -> Array:
    """x with ``tensordot(a, x, x.ndim)`` = ``b``, after the axes ``dims`` of ``a`` were moved to its end."""
    if dims is not None:
        a = moveaxis(a, tuple(dims), tuple(range(-len(dims), 0)))
    shape = a.shape[b.ndim :]
    if math.prod(shape) != b.size or a.size != b.size**2:
        raise ShapeError(f"[tensorsolve] shape {a.shape} is no square system for a right side of shape {b.shape}.")
    return reshape(solve(reshape(a, (b.size, b.size)), reshape(b, (b.size,))), shape)
