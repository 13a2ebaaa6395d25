"""Linear algebra beyond ``factorizations``: inverses, determinants, norms, powers, least squares.

Matrices are the last two axes; axes before them count matrices. Dtypes are as in ``factorizations``. Gradients:
M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation", 2008; of
Cholesky's factor: I. Murray, "Differentiation of the Cholesky decomposition", 2016; of the pseudoinverse: G. Golub and
V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate",
1973.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.dispatch import TensorLike, apply
from runnel.core.dtypes import int64, real_of
from runnel.core.errors import AxisError, ShapeError
from runnel.core.tables import Op, abstract_eval, vjp
from runnel.ops.arguments import Array, Axis, as_tuple, normalize_axes, normalize_axis
from runnel.ops.conversion import cast
from runnel.ops.creation_like import full_like, iota, or_zeros, zeros_like
from runnel.ops.elementwise.arithmetic import abs as abs_of, add, divide, multiply, negative, subtract
from runnel.ops.elementwise.comparison import equal, greater, greater_equal, less_equal, where
from runnel.ops.elementwise.complex_parts import complex, conj, imag
from runnel.ops.elementwise.exponential import log, square
from runnel.ops.linear_algebra.contraction import matmul
from runnel.ops.linear_algebra.factorizations import (
    adjoint,
    eigh,
    host_op,
    of_finite,
    require_matrices,
    rows_and_columns,
    solve,
    solved,
    svd,
    transposed,
)
from runnel.ops.reductions.primitives import max, min, sum
from runnel.ops.reductions.statistics import norm as norm_along, rounded_as, wide_dtype
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.diagonals import diagonal as diagonal_of, powers
from runnel.ops.shapes.pieces import concat, narrow
from runnel.ops.shapes.views import expand_dims, moveaxis, reshape, squeeze, with_axis

# --- inverse and determinant --------------------------------------------------------------------------------------


def _identity(x: Array, n: int) -> Array:
    one = cast(equal(iota(x, (n, 1), 0), iota(x, (1, n), 1)), x.dtype)
    return broadcast_to(one, (*x.shape[:-2], n, n))


def inv(x: Array) -> Array:
    """Return the inverse of square matrices; LinAlgError if one is singular."""
    n, _ = require_matrices("inv", x, square=True)
    return solved(x, _identity(x, n))


det_p = Op("det", "a", "The determinants of square matrices.", is_late=True)
host_op(det_p, lambda a: np.asarray(np.linalg.det(a), a.dtype), lambda m, n, k: 2 * n**3 // 3)


@abstract_eval.rule(det_p)
def _det_abstract_eval(a: ShapedArray) -> ShapedArray:
    require_matrices("det", a, square=True)
    return aval(a.shape[:-2], a.dtype)


cofactors_p = Op("cofactors", "a", "det(a)·(a⁻¹)ᵀ, which singular matrices have, too.", is_late=True)


def _of_square(name: str) -> Callable[[ShapedArray], ShapedArray]:
    """Return the rule of an op that returns a matrix for each square matrix."""

    def rule(a: ShapedArray) -> ShapedArray:
        require_matrices(name, a, square=True)
        return a

    return rule


def _cofactors(a: Any) -> Any:
    """Return the cofactors by way of singular values, each of which has the product of the others as cofactor: with a =
    u·s·vᴴ, they are det(u)·det(vᴴ) times conj(u)·(those products)·conj(vᴴ). This uses double precision, since the
    factors may cancel."""
    u, s, vh = np.linalg.svd(a.astype(np.result_type(a.dtype, np.float64)))
    n = a.shape[-1]
    others = np.broadcast_to(s[..., None, :], (*s.shape, n)).copy()
    others[..., np.arange(n), np.arange(n)] = 1
    phase = np.linalg.det(u) * np.linalg.det(vh)
    products = phase[..., None] * np.prod(others, axis=-1)
    return np.asarray((np.conj(u) * products[..., None, :]) @ np.conj(vh), a.dtype)


host_op(cofactors_p, of_finite(_cofactors), lambda m, n, k: 20 * n**3)

abstract_eval.register(cofactors_p, _of_square("det"))


@vjp.rule(cofactors_p)
def _cofactors_vjp(g: Array, out: Array, a: Array) -> tuple[Array]:
    """Return (Σ g·c - c·gᵀ)·a⁻ᵀ, the gradient of c = det(a)·a⁻ᵀ for invertible a."""
    inverse, g = transposed(inv(a)), conj(g)
    along = expand_dims(sum(multiply(g, out), (-2, -1)), (-2, -1))
    return (conj(subtract(multiply(along, inverse), matmul(matmul(out, transposed(g)), inverse))),)


@vjp.rule(det_p)
def _det_vjp(g: Array, out: Array, a: Array) -> tuple[Array]:
    return (multiply(expand_dims(g, (-2, -1)), conj(apply(cofactors_p, a))),)


class Slogdet(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


slogdet_p = Op(
    "slogdet", "a", "Signs and logarithms of the absolute values of determinants.", multiple_results=True, is_late=True
)


def _slogdet(a: Any) -> tuple[Any, Any]:
    result = np.linalg.slogdet(a)
    return np.asarray(result[0], a.dtype), np.asarray(result[1], a.real.dtype)


host_op(slogdet_p, _slogdet, lambda m, n, k: 2 * n**3 // 3)


@abstract_eval.rule(slogdet_p)
def _slogdet_abstract_eval(a: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    require_matrices("slogdet", a, square=True)
    return aval(a.shape[:-2], a.dtype), aval(a.shape[:-2], real_of(a.dtype))


@vjp.rule(slogdet_p)
def _slogdet_vjp(gs: Any, outs: Any, a: Array, *, needs_grad: Any) -> tuple[Array]:
    g_sign, g = or_zeros(gs, outs)
    if a.dtype.is_complex:  # the sign is a phase
        g = complex(g, negative(imag(multiply(conj(g_sign), outs[0]))))
    return (multiply(expand_dims(g, (-2, -1)), adjoint(inv(a))),)


def det(x: Array) -> Array:
    """Return the determinants.

    Second derivatives need non-singular matrices; LinAlgError otherwise."""
    return apply(det_p, x)


def slogdet(x: Array) -> Slogdet:
    """Return the signs of determinants and the logarithms of their absolute values: (sign, logabsdet)."""
    return Slogdet(*apply(slogdet_p, x))


def logdet(x: Array) -> Array:
    """Return the logarithms of determinants: -∞ at 0, NaN below 0, complex for complex matrices."""
    result = slogdet(x)
    if x.dtype.is_complex:
        return add(log(result.sign), result.logabsdet)
    return where(less_equal(result.sign, -1), math.nan, result.logabsdet)


# --- Cholesky -----------------------------------------------------------------------------------------------------

cholesky_p = Op("cholesky", "a", "Lower triangular l with a = l·lᴴ, of the lower triangle of a.", is_late=True)
host_op(cholesky_p, np.linalg.cholesky, lambda m, n, k: n**3 // 3)

abstract_eval.register(cholesky_p, _of_square("cholesky"))


@vjp.rule(cholesky_p)
def _cholesky_vjp(g: Array, out: Array, a: Array) -> tuple[Array]:
    inner = matmul(adjoint(out), g)
    i, j = rows_and_columns(inner)
    below = where(greater(i, j), inner, 0)
    whole = multiply(add(add(below, adjoint(below)), where(equal(i, j), inner, 0)), 0.5)
    left = solved(adjoint(out), whole)
    return (adjoint(solved(adjoint(out), adjoint(left))),)


def cholesky(x: Array, upper: bool = False) -> Array:
    """Lower triangular L with ``x`` = L·Lᴴ, of Hermitian positive definite matrices, whose lower triangle is read;
    with ``upper`` Lᴴ. LinAlgError where ``x`` is not positive definite."""
    lower = apply(cholesky_p, x)
    return adjoint(lower) if upper else lower


def cholesky_solve(b: Array, factor: Array, upper: bool = False) -> Array:
    """Solve a·x = ``b`` for a = l·lᴴ, where ``factor`` is the lower triangular l (``upper``: lᴴ)."""
    lower = adjoint(factor) if upper else factor
    inside = solve_triangular(lower, b, upper=False)
    return solve_triangular(adjoint(lower), inside, upper=True)


def cholesky_inverse(factor: Array, upper: bool = False) -> Array:
    """Return the inverses of l·lᴴ, where ``factor`` is the lower triangular l (``upper``: lᴴ)."""
    n, _ = require_matrices("cholesky_inverse", factor, square=True)
    return cholesky_solve(_identity(factor, n), factor, upper)


def solve_triangular(a: Array, b: Array, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Array:
    """Return x with a·x = b (or x·a = b, unless ``left``) for triangular matrices. The other triangle is not read; with
    ``unitriangular`` the diagonal counts as 1 and is not read."""
    require_matrices("solve_triangular", a, square=True)
    i, j = rows_and_columns(a)
    half = where((less_equal if upper else greater_equal)(i, j), a, 0)
    if unitriangular:
        half = where(equal(i, j), 1, half)
    if left:
        return solve(half, b)
    return transposed(solve(transposed(half), transposed(b)))


# --- pseudoinverse and least squares ------------------------------------------------------------------------------

pinv_p = Op(
    "pinv", "a, *, rtol", "The pseudoinverse; singular values up to rtol times the greatest are 0.", is_late=True
)
host_op(pinv_p, of_finite(lambda a, *, rtol: np.linalg.pinv(a, rtol).astype(a.dtype)), lambda m, n, k: 20 * m * n * k)


@abstract_eval.rule(pinv_p)
def _pinv_abstract_eval(a: ShapedArray, *, rtol: float) -> ShapedArray:
    m, n = require_matrices("pinv", a)
    return aval((*a.shape[:-2], n, m), a.dtype)


@vjp.rule(pinv_p)
def _pinv_vjp(g: Array, out: Array, a: Array, *, rtol: float) -> tuple[Array]:
    p, gt = adjoint(out), adjoint(g)
    outside = subtract(gt, matmul(matmul(a, out), gt))
    inside = subtract(gt, matmul(gt, matmul(out, a)))
    turned = negative(matmul(matmul(p, g), p))
    return (add(turned, add(matmul(outside, matmul(out, p)), matmul(matmul(p, out), inside))),)


def _cutoff(x: Array, rtol: float | None) -> float:
    """Return the fraction of the largest singular value up to which one counts as 0."""
    if rtol is not None:
        return float(rtol)
    return int(np.max(x.shape[-2:], initial=1)) * float(np.finfo(x.dtype.numpy).eps)


def pinv(x: Array, rtol: float | Array | None = None) -> Array:
    """Return the pseudoinverse (E. Moore, R. Penrose) of each matrix.

    Singular values up to ``rtol`` times the largest count as 0; by default ``rtol`` is max(m, n) times the dtype's eps.
    An array ``rtol`` has a number for each matrix; the gradient then goes through the singular value decomposition.
    """
    require_matrices("pinv", x)
    if not isinstance(rtol, (TensorLike, np.ndarray)):
        return apply(pinv_p, x, rtol=_cutoff(x, rtol))
    u, values, vh = svd(x, full_matrices=False)
    if not values.shape[-1]:
        return transposed(x)
    counts = greater(values, multiply(max(values, -1, keepdims=True), expand_dims(rtol, -1)))
    inverse = where(counts, divide(1, where(counts, values, 1)), 0)
    return matmul(multiply(adjoint(vh), cast(expand_dims(inverse, -2), x.dtype)), adjoint(u))


class Lstsq(NamedTuple):
    """Least-squares solutions, the sums of squared residuals, ranks, singular values."""

    solution: Array
    residuals: Array
    rank: Array
    singular_values: Array


def lstsq(a: Array, b: Array, rcond: float | None = None) -> Lstsq:
    """Return the x of least norm that minimizes |a·x - b|, for matrices ``a`` (..., m, n) and ``b`` (..., m, k) or
    (m,): a named tuple (solution, residuals, rank, singular_values). Residuals are empty unless m > n."""
    m, n = require_matrices("lstsq", a)
    columns = expand_dims(b, -1) if b.ndim == 1 else b
    solution = matmul(pinv(a, rcond), columns)
    rest = subtract(matmul(a, solution), columns)
    residuals = sum(square(abs_of(rest)), -2) if m > n else narrow(reshape(rest, (rest.size,)), 0, 0, 0)
    solution = squeeze(solution, -1) if b.ndim == 1 else solution
    return Lstsq(solution, residuals, matrix_rank(a, rcond), svdvals(a))


def svdvals(x: Array) -> Array:
    """Return the singular values in descending order."""
    return svd(x, full_matrices=False).S


def eigvalsh(x: Array, UPLO: str = "L") -> Array:
    """Return the eigenvalues, ascending, of symmetric matrices; reads the lower (or upper) triangle."""
    return eigh(x, UPLO).eigenvalues


def matrix_rank(x: Array, rtol: float | Array | None = None) -> Array:
    """Count the singular values above ``rtol`` times the largest, as int64; the default is as in :func:`pinv`."""
    values = svdvals(x)
    if not values.shape[-1]:
        return full_like(values, 0, values.shape[:-1], int64)
    share: Any = _cutoff(x, None) if rtol is None else rtol
    greatest = max(values, -1, keepdims=True)
    limit = multiply(greatest, expand_dims(share, -1) if getattr(share, "ndim", 0) else share)
    return sum(greater(values, limit), -1)


# --- powers and exponential ---------------------------------------------------------------------------------------


def matrix_power(x: Array, n: int) -> Array:
    """Return power ``n`` of matrices; negative powers use the inverse."""
    times = operator.index(n)
    size, _ = require_matrices("matrix_power", x, square=True)
    if abs(times) >= 1 << 62:
        raise ShapeError(f"[matrix_power] the power must have at most 62 bits; got {n}.")
    if times < 0:
        return matrix_power(inv(x), -times)
    result, square_of = None, x
    while times:
        if times & 1:
            result = square_of if result is None else matmul(result, square_of)
        times >>= 1
        square_of = matmul(square_of, square_of) if times else square_of
    return _identity(x, size) if result is None else result


expm_p = Op("expm", "a", "The exponentials Σ aᵏ/k! of square matrices.", is_late=True)


def _expm(a: Any) -> Any:
    """Scaling, a Padé approximant of order 13, and squaring (N. Higham, "The scaling and squaring method for the matrix
    exponential revisited", 2005), in float64."""
    wide, n = a.astype(np.result_type(a.dtype, np.float64)), a.shape[-1]
    if not a.size:
        return a
    size = np.abs(wide).sum(-2).max(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        squarings = np.nan_to_num(np.ceil(np.log2(size / 5.371920351148152)), nan=0.0, posinf=0.0, neginf=0.0)
    squarings = np.maximum(squarings, 0).astype(int)
    x = wide / (2.0**squarings)[..., None, None]
    terms = [math.comb(13, k) * math.factorial(26 - k) / math.factorial(26) for k in range(14)]
    even, odd, power = np.zeros_like(x), np.zeros_like(x), np.broadcast_to(np.eye(n), x.shape)
    square_of = x @ x
    for k in range(0, 14, 2):
        even, odd = even + terms[k] * power, odd + terms[k + 1] * power
        power = power @ square_of
    odd = x @ odd
    exponential = np.linalg.solve(even - odd, even + odd)
    for step in range(int(squarings.max(initial=0))):
        exponential = np.where((step < squarings)[..., None, None], exponential @ exponential, exponential)
    return exponential.astype(a.dtype)


host_op(expm_p, _expm, lambda m, n, k: 40 * n**3)

abstract_eval.register(expm_p, _of_square("matrix_exp"))


@vjp.rule(expm_p)
def _expm_vjp(g: Array, out: Array, a: Array) -> tuple[Array]:
    """Return the upper right part of the exponential of ((aᴴ, g), (0, aᴴ))."""
    n, turned = a.shape[-1], adjoint(a)
    whole = concat([concat([turned, g], -1), concat([zeros_like(a), turned], -1)], -2)
    return (narrow(narrow(apply(expm_p, whole), -2, 0, n), -1, n, n),)


def matrix_exp(x: Array) -> Array:
    """Return the exponentials Σ xᵏ/k! of square matrices; half precision is computed in float32."""
    return rounded_as(apply(expm_p, cast(x, wide_dtype(x))), x)


# --- norms --------------------------------------------------------------------------------------------------------


def vector_norm(x: Array, ord: float = 2, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the vector norm over ``axis``: (Σ |x|^ord)^(1/ord).

    Order 0 counts non-zero elements, ±∞ are extremes."""
    return norm_along(x, axis=axis, ord=ord, keepdims=keepdims)


_SINGULAR: Final[dict[Any, Callable[[Array], Array]]] = {
    "nuc": lambda s: sum(s, -1), 2: lambda s: max(s, -1), -2: lambda s: min(s, -1),
}  # fmt: skip
_ORDERS: Final = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


def matrix_norm(x: Array, ord: float | str | None = "fro", axis: Axis = (-2, -1), keepdims: bool = False) -> Array:
    """Return a norm of the matrices in two axes.

    ``ord`` is "fro", the root of the sum of squares; "nuc", the sum of singular values; 2 or -2, the largest or
    smallest singular value; 1 or -1, the largest or smallest sum of a column's absolute values; or ±∞, likewise for
    rows.
    """
    if x.ndim < 2:
        raise ShapeError(f"[matrix_norm] needs matrices in two axes; got shape {x.shape}.")
    axes = [normalize_axis("matrix_norm", a, x.ndim) for a in as_tuple(() if axis is None else axis)]
    if len(axes) != 2 or axes[0] == axes[1]:
        raise AxisError(f"[matrix_norm] matrices must have two axes; got axis={axis}.")
    x = moveaxis(x, axes, (-2, -1))
    if ord is None:
        ord = "fro"
    if not isinstance(ord, (str, int, float)) or ord not in _ORDERS:
        raise ValueError(f"[matrix_norm] ord must be one of {', '.join(map(str, _ORDERS))}; got {ord!r}.")
    if ord == "fro":
        norms = norm_along(x, axis=(-2, -1))
    elif ord in _SINGULAR:
        norms = _SINGULAR[ord](svdvals(x))
    else:
        sums = norm_along(x, axis=-2 if abs(float(ord)) == 1 else -1, ord=1)
        norms = (max if float(ord) > 0 else min)(sums, -1)
    return expand_dims(norms, axes) if keepdims else norms


def norm(x: Array, ord: float | str | None = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the vector norm of all elements (without ``ord`` and ``axis``) or along one axis; the matrix norm of a
    matrix or along two axes."""
    if axis is None and ord is not None and x.ndim == 2:
        return matrix_norm(x, ord, keepdims=keepdims)
    axes = normalize_axes("norm", axis, x.ndim)
    if len(axes) == 2 and ord is not None and axis is not None:
        return matrix_norm(x, ord, axis, keepdims)
    if isinstance(ord, str):
        raise ValueError(f"[norm] {ord!r} is an order for matrices; name two axes.")
    return norm_along(x, axis=axis, ord=2 if ord is None else ord, keepdims=keepdims)


def diagonal(x: Array, offset: int = 0, *, axis1: int = -2, axis2: int = -1) -> Array:
    """Return diagonal ``offset`` of each matrix in two axes, as the last axis."""
    return diagonal_of(x, offset, axis1, axis2)


def vander(x: Array, N: int | None = None) -> Array:
    """Return ``N`` powers of each element along a new last axis, from 0 up (None: as many as elements)."""
    x = with_axis(x)
    return powers(x, x.shape[-1] if N is None else operator.index(N), True)
