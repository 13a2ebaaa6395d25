"""Factorizations and linear systems by LAPACK through NumPy: host calls in programs, except small real systems, with
gradients.

Matrices are the last two axes; axes before them count matrices. Dtypes are float32, float64, complex64 and complex128.
LinAlgError says where there is no result. Gradients: M. Giles, "Collected matrix derivative results for forward and
reverse mode algorithmic differentiation", 2008; of QR: S. Walter, L. Lehmann, "Algorithmic differentiation of linear
algebra functions with application in optimum experimental design", 2010; of the SVD: J. Townsend, "Differentiating the
singular value decomposition", 2016. They are valid for functions that do not depend on the signs or phases (or, of
equal values, the bases) which LAPACK happens to choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.dispatch import apply
from runnel.core.dtypes import COMPLEX, float32, float64, real_of
from runnel.core.errors import GradientError, ShapeError
from runnel.core.lengths import fixed
from runnel.core.rules import NATIVE, TRANSPOSED
from runnel.core.tables import Op, abstract_eval, axes, complex_rules, cost, jvp, lower, reference, vjp
from runnel.loops.rules import HostCall, SmallSolve
from runnel.ops.arguments import Array, broadcast_shapes, require_dtype, require_same_dtype
from runnel.ops.conversion import cast
from runnel.ops.creation_like import iota, or_zeros
from runnel.ops.elementwise.arithmetic import add, divide, multiply, negative, subtract
from runnel.ops.elementwise.comparison import equal, greater_equal, where
from runnel.ops.elementwise.complex_parts import complex, conj, imag, real
from runnel.ops.linear_algebra.contraction import matmul
from runnel.ops.promotion import common_dtype
from runnel.ops.shapes.broadcasting import Stacked, broadcast_to
from runnel.ops.shapes.pieces import concat, narrow
from runnel.ops.shapes.views import expand_dims, permute, squeeze

_FIELDS: Final = (float32, float64, *COMPLEX)


def _lapack(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` with errors that name the op."""

    def called(*arrays: Any, **attrs: Any) -> Any:
        try:
            return function(*arrays, **attrs)
        except np.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(f"[{name}] {error}") from None

    return called


def host_op(op: Op, function: Callable[..., Any], flops: Callable[[int, int, int], int]) -> None:
    """Register the rules of an op that NumPy computes. ``flops(m, n, k)`` counts for m × n matrices, with k = min(m,
    n)."""
    matrix_op(op, function, flops, HostCall())


def matrix_op(op: Op, function: Callable[..., Any], flops: Callable[[int, int, int], int], rule: Any) -> None:
    """Do the same for an op whose programs are made by ``rule``."""
    lower.register(op, rule)
    complex_rules.register(op, NATIVE)
    axes.register(op, Stacked())
    jvp.register(op, TRANSPOSED)
    reference.register(op, _lapack(op.name, function))

    def count(x: ShapedArray, *others: ShapedArray, **attrs: Any) -> int:
        m, n = x.shape[-2:]
        return (x.size // max(m * n, 1)) * flops(m, n, min(m, n))

    cost.register(op, count)


def stacked(a: Any) -> Any:
    """NumPy's matrices with one axis in front of them; there may be none, and of no elements."""
    return a.reshape(math.prod(a.shape[:-2]), *a.shape[-2:])


def of_finite(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` for matrices of finite elements, and NaN for others, on some of which LAPACK's iterations for
    singular values do not end."""

    def called(a: Any, **attrs: Any) -> Any:
        others = ~np.isfinite(a).all((-2, -1))
        if not others.any():
            return function(a, **attrs)
        results = function(np.where(others[..., None, None], 0, a), **attrs)
        for result in results if isinstance(results, tuple) else (results,):
            result[others] = np.nan
        return results

    return called


def require_matrices(name: str, x: ShapedArray, *, square: bool = False) -> tuple[int, int]:
    require_dtype(name, x.dtype, _FIELDS)
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise ShapeError(f"[{name}] needs {'square ' * square}matrices in the last two axes; got shape {x.shape}.")
    return x.shape[-2], x.shape[-1]


def transposed(x: Array) -> Array:
    """Matrices transposed."""
    return permute(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint(x: Array) -> Array:
    """Matrices transposed and conjugated."""
    return transposed(conj(x))


def rows_and_columns(x: Array) -> tuple[Array, Array]:
    """Return the row number and the column number of each element."""
    return iota(x, x.shape, x.ndim - 2), iota(x, x.shape, x.ndim - 1)


def _apart(x: Array, values: Array) -> Array:
    """x[i, j] / (values[j] - values[i]), 0 on the diagonal."""
    i, j = rows_and_columns(x)
    same = equal(i, j)
    gaps = subtract(expand_dims(values, -2), expand_dims(values, -1))
    return where(same, 0, divide(x, where(same, 1, gaps)))


# --- solve --------------------------------------------------------------------------------------------------------

solve_p = Op("solve", "a, b", "x with a·x = b, for square a[..., n, n] and b[..., n, k], of the same leading axes.")
host_op(solve_p, np.linalg.solve, lambda m, n, k: 2 * n**3 // 3)


@abstract_eval.rule(solve_p)
def _solve_abstract_eval(a: ShapedArray, b: ShapedArray) -> ShapedArray:
    n, _ = require_matrices("solve", a, square=True)
    require_same_dtype("solve", a, b)
    if b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1]:
        raise ShapeError(f"[solve] matrices of shape {a.shape} need right sides of shape (..., {n}, k); got {b.shape}.")
    return b


small_solve_p = Op("small_solve", solve_p.signature, "The same, of few rows and columns, as a kernel of programs.")
matrix_op(small_solve_p, np.linalg.solve, lambda m, n, k: 2 * n**3 // 3, SmallSolve())
abstract_eval.register(small_solve_p, _solve_abstract_eval)
_SMALL: Final = 32  # rows, and columns of right sides


@vjp.rule(solve_p)
@vjp.rule(small_solve_p)
def _solve_vjp(g: Array, out: Array, a: Array, b: Array) -> tuple[Any, Any]:
    into_b = solved(adjoint(a), g)
    return (lambda: negative(matmul(into_b, adjoint(out))), into_b)


def solved(a: Array, b: Array) -> Array:
    """x with a·x = b, for operands that the op accepts."""
    is_small = not a.dtype.is_complex and all(0 < n <= _SMALL for n in fixed(b.shape[-2:]))
    return apply(small_solve_p if is_small else solve_p, a, b)


# --- eigh ---------------------------------------------------------------------------------------------------------


class Eigh(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


eigh_p = Op(
    "eigh", "a, *, lower", "Eigenvalues, ascending, and eigenvectors (columns) of Hermitian a, whose half is read.",
    multiple_results=True,
)  # fmt: skip
host_op(eigh_p, lambda a, *, lower: tuple(np.linalg.eigh(a, "L" if lower else "U")), lambda m, n, k: 9 * n**3)


@abstract_eval.rule(eigh_p)
def _eigh_abstract_eval(a: ShapedArray, *, lower: bool) -> tuple[ShapedArray, ShapedArray]:
    require_matrices("eigh", a, square=True)
    return aval(a.shape[:-1], real_of(a.dtype)), a


@vjp.rule(eigh_p)
def _eigh_vjp(gs: Any, outs: Any, a: Array, *, needs_grad: Any, lower: bool) -> tuple[Array]:
    values, vectors = outs
    g_values, g_vectors = or_zeros(gs, outs)
    i, j = rows_and_columns(vectors)
    inner = where(equal(i, j), expand_dims(g_values, -1), _apart(matmul(adjoint(vectors), g_vectors), values))
    half = matmul(matmul(vectors, inner), adjoint(vectors))
    return (multiply(add(half, adjoint(half)), 0.5),)


# --- qr -----------------------------------------------------------------------------------------------------------


class QR(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    Q: Array
    R: Array


qr_p = Op(
    "qr", "a, *, complete", "q with orthonormal columns and upper triangular r, a = q·r; complete: q is square.",
    multiple_results=True,
)  # fmt: skip
host_op(
    qr_p, lambda a, *, complete: tuple(np.linalg.qr(a, "complete" if complete else "reduced")),
    lambda m, n, k: 4 * m * n * k,
)  # fmt: skip


@abstract_eval.rule(qr_p)
def _qr_abstract_eval(a: ShapedArray, *, complete: bool) -> tuple[ShapedArray, ShapedArray]:
    m, n = require_matrices("qr", a)
    k = m if complete else min(m, n)
    return aval((*a.shape[:-2], m, k), a.dtype), aval((*a.shape[:-2], k, n), a.dtype)


@vjp.rule(qr_p)
def _qr_vjp(gs: Any, outs: Any, a: Array, *, needs_grad: Any, complete: bool) -> tuple[Array]:
    m, n = a.shape[-2:]
    if complete and m > n:
        raise GradientError("[qr] has a gradient in mode 'reduced', or of matrices that are not taller than wide.")
    (q, r), (g_q, g_r) = outs, or_zeros(gs, outs)
    if m >= n:
        return (_qr_tall(g_q, g_r, q, r),)
    left, right = narrow(g_r, -1, 0, m), narrow(g_r, -1, m, n - m)  # a = (x, y), r = (u, qᴴ·y)
    square = _qr_tall(add(g_q, matmul(narrow(a, -1, m, n - m), adjoint(right))), left, q, narrow(r, -1, 0, m))
    return (concat([square, matmul(q, right)], -1),)


def _qr_tall(g_q: Array, g_r: Array, q: Array, r: Array) -> Array:
    """Return the gradient for matrices with at least as many rows as columns."""
    inner = subtract(matmul(r, adjoint(g_r)), matmul(adjoint(g_q), q))
    i, j = rows_and_columns(inner)
    hermitian = where(greater_equal(i, j), inner, adjoint(inner))
    if hermitian.dtype.is_complex:
        hermitian = where(equal(i, j), real(hermitian), hermitian)
    return adjoint(solved(r, adjoint(add(g_q, matmul(q, hermitian)))))


# --- svd ----------------------------------------------------------------------------------------------------------


class SVD(NamedTuple):
    """Left singular vectors as columns, singular values in descending order, right singular vectors as rows."""

    U: Array
    S: Array
    Vh: Array


svd_p = Op(
    "svd", "a, *, full", "u, s and vᴴ with a = u·diag(s)·vᴴ, s in descending order; full: u and v are square.",
    multiple_results=True,
)  # fmt: skip
host_op(svd_p, of_finite(lambda a, *, full: tuple(np.linalg.svd(a, full))), lambda m, n, k: 20 * m * n * k)


@abstract_eval.rule(svd_p)
def _svd_abstract_eval(a: ShapedArray, *, full: bool) -> tuple[ShapedArray, ShapedArray, ShapedArray]:
    m, n = require_matrices("svd", a)
    k, batch = min(m, n), a.shape[:-2]
    u, vh = ((m, m), (n, n)) if full else ((m, k), (k, n))
    return aval((*batch, *u), a.dtype), aval((*batch, k), real_of(a.dtype)), aval((*batch, *vh), a.dtype)


@vjp.rule(svd_p)
def _svd_vjp(gs: Any, outs: Any, a: Array, *, needs_grad: Any, full: bool) -> tuple[Array]:
    m, n = a.shape[-2:]
    k = min(m, n)
    if gs[0] is None and gs[2] is None and not a.dtype.is_complex:  # no quotients of differences
        scaled = multiply(narrow(outs[0], -1, 0, k), expand_dims(gs[1], -2))
        return (matmul(scaled, narrow(outs[2], -2, 0, k)),)
    u, s, vh = narrow(outs[0], -1, 0, k), outs[1], narrow(outs[2], -2, 0, k)
    g_u, g_s, g_vh = or_zeros(gs, outs)
    g_u, g_v, v = narrow(g_u, -1, 0, k), adjoint(narrow(g_vh, -2, 0, k)), adjoint(vh)
    squares, column, row = multiply(s, s), expand_dims(s, -1), expand_dims(s, -2)
    of_u, of_v = matmul(adjoint(u), g_u), matmul(vh, g_v)
    inner = add(
        multiply(_apart(subtract(of_u, adjoint(of_u)), squares), row),
        multiply(column, _apart(subtract(of_v, adjoint(of_v)), squares)),
    )
    i, j = rows_and_columns(inner)
    on_diagonal = expand_dims(g_s, -1)
    if a.dtype.is_complex:  # the phases of u, which v shares
        turned = divide(imag(of_u), row)
        on_diagonal = complex(broadcast_to(on_diagonal, turned.shape), turned)
    g_a = matmul(matmul(u, add(inner, where(equal(i, j), on_diagonal, 0))), vh)
    if m > k:
        g_a = add(g_a, matmul(divide(subtract(g_u, matmul(u, of_u)), row), vh))
    if n > k:
        g_a = add(g_a, matmul(divide(u, row), adjoint(subtract(g_v, matmul(v, of_v)))))
    return (g_a,)


# --- functions ----------------------------------------------------------------------------------------------------


def solve(a: Array, b: Array) -> Array:
    """x with ``a`` · x = ``b``, for square matrices ``a`` (..., n, n) and ``b`` of shape (..., n, k), or (n,).

    Leading axes broadcast. LinAlgError where ``a`` is singular.
    """
    if b.ndim == 1:
        return squeeze(solve(a, expand_dims(b, -1)), -1)
    if a.dtype is not b.dtype:
        a, b = (cast(x, common_dtype(solve_p, (a, b))) for x in (a, b))
    if a.ndim > 1 and a.shape[:-2] != b.shape[:-2]:
        batch = broadcast_shapes("solve", a.shape[:-2], b.shape[:-2])
        a, b = (broadcast_to(x, batch + x.shape[-2:]) for x in (a, b))
    return solved(a, b)


def eigh(a: Array, UPLO: str = "L") -> Eigh:
    """Eigenvalues (..., n), ascending, and eigenvectors (..., n, n) as columns, of symmetric or Hermitian matrices
    (..., n, n), of which the lower triangle is read, or with ``UPLO="U"`` the upper one.

    The gradient is infinite where eigenvalues are equal and vectors are used.
    """
    return Eigh(*apply(eigh_p, a, lower=_is_lower(UPLO)))


def _is_lower(half: str) -> bool:
    if half not in ("L", "U"):
        raise ValueError(f"[eigh] UPLO must be 'L' or 'U'; got {half!r}.")
    return half == "L"


def qr(a: Array, mode: str = "reduced") -> QR:
    """Q (..., m, k) with orthonormal columns and upper triangular R (..., k, n), of matrices (..., m, n) = Q·R; k is
    min(m, n), or m in mode "complete". The gradient needs the first min(m, n) columns to be independent."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"[qr] mode must be 'reduced' or 'complete'; got {mode!r}.")
    return QR(*apply(qr_p, a, complete=mode == "complete"))


def svd(a: Array, full_matrices: bool = True) -> SVD:
    """Return U (..., m, m), S (..., min(m, n)) and Vh (..., n, n) of matrices (..., m, n) = U·diag(S)·Vh.

    Without ``full_matrices``, return min(m, n) columns of U and rows of Vh. Gradients treat the other columns and rows
    as constants. The gradient is infinite if singular values are equal and vectors are used.
    """
    return SVD(*apply(svd_p, a, full=bool(full_matrices)))
