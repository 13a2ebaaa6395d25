"""PyTorch's linear algebra where its arguments differ from Runnel's, low-rank factorizations and older names."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from runnel import ops
from runnel.core.dtypes import Dtype
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, Axis
from runnel.ops.linear_algebra import matrices, products
from runnel.ops.linear_algebra.factorizations import adjoint, eigh, qr, require_matrices, solve as solved, svd
from runnel.ops.linear_algebra.matrices import cholesky, solve_triangular
from runnel.ops.shapes.diagonals import tril
from runnel.tensor.random import randn

LinAlgError = np.linalg.LinAlgError


def solve(A: Array, B: Array, *, left: bool = True) -> Array:
    """Solve ``A`` · X = ``B``, or X · ``A`` = ``B`` if ``left`` is False.

    ``B`` of the shape of ``A`` without its last axis is a vector for each matrix.
    """
    if B.ndim == 1 or (B.ndim + 1 == A.ndim and B.shape == A.shape[:-1]):
        return ops.squeeze(solved(A, ops.expand_dims(B, -1)), -1)
    if left:
        return solved(A, B)
    return ops.transpose(solved(ops.transpose(A), ops.transpose(B)))


_DRIVERS: Final = ("gels", "gelsy", "gelsd", "gelss")


def lstsq(input: Array, b: Array, rcond: float | None = None, *, driver: str | None = None) -> matrices.Lstsq:
    """Solve least squares like :func:`runnel.linalg.lstsq`, by singular values whatever the ``driver``.

    As with LAPACK's drivers ("gelsy" by default), the rank is empty with "gels", singular values except with "gelsd"
    and "gelss", and residuals with "gelsy".
    """
    if driver not in (None, *_DRIVERS):
        raise ValueError(f"[lstsq] driver must be one of {', '.join(_DRIVERS)}; got {driver!r}.")
    result = matrices.lstsq(input, b, rcond)
    nothing = result.singular_values.without_tape().reshape(-1)[:0]
    if driver in (None, "gelsy") or input.shape[-2] <= input.shape[-1]:
        result = result._replace(residuals=nothing)
    if driver == "gels":
        result = result._replace(rank=nothing.astype(result.rank.dtype))
    return result if driver in ("gelsd", "gelss") else result._replace(singular_values=nothing)


def pinv(input: Array, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Array:
    """Return the pseudoinverse: singular values up to the larger of ``atol`` and ``rtol`` times the largest count as 0.

    Without ``atol``, ``rtol`` (or ``rcond``) is max(m, n) times the dtype's eps. Only the lower triangle of
    ``hermitian`` matrices is read.
    """
    input = _from_lower(input) if hermitian else input
    return matrices.pinv(input, _share(input, atol, rcond if rtol is None else rtol))


def matrix_rank(input: Array, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Array:
    """Return the number of singular values above both ``atol`` (or ``tol``) and ``rtol`` times the largest: int64.

    Without ``atol``, ``rtol`` is max(m, n) times the dtype's eps. Only the lower triangle of ``hermitian`` matrices is
    read.
    """
    input = _from_lower(input) if hermitian else input
    return matrices.matrix_rank(input, _share(input, tol if atol is None else atol, rtol))


def _from_lower(x: Array) -> Array:
    """Return the Hermitian matrices with the lower triangles of ``x``."""
    return ops.add(tril(x), ops.conj(ops.transpose(tril(x, -1))))


def _share(x: Array, atol: Any, rtol: Any) -> Any:
    """Return the share of each matrix's largest singular value up to which singular values count as 0."""
    if atol is None:
        return rtol
    values = matrices.svdvals(x)
    if not values.shape[-1]:
        return rtol
    greatest = ops.max(values, -1)
    share = ops.where(ops.greater(greatest, 0), ops.divide(atol, greatest), 0)
    return share if rtol is None else ops.maximum(share, rtol)


def vector_norm(x: Array, ord: float = 2, dim: Axis = None, keepdim: bool = False, *, dtype: Dtype = None) -> Array:
    """Return the vector norm (Σ |x|^ord)^(1/ord) over ``dim``, computed in ``dtype``.

    Order 0 counts nonzero elements; ±∞ are the extremes.
    """
    return matrices.vector_norm(_in(dtype, x), ord, dim, keepdim)


def matrix_norm(
    input: Array, ord: Any = "fro", dim: Axis = (-2, -1), keepdim: bool = False, *, dtype: Dtype = None
) -> Array:
    """Return a norm of the matrices in two axes, computed in ``dtype``; orders as in ``runnel.linalg.matrix_norm``."""
    return matrices.matrix_norm(_in(dtype, input), ord, dim, keepdim)


def norm(input: Array, ord: Any = None, dim: Axis = None, keepdim: bool = False, *, dtype: Dtype = None) -> Array:
    """Return a vector norm (without ``dim``, or along one axis) or a matrix norm (a matrix, or two axes).

    Without ``ord`` and ``dim`` it is the vector norm of all elements. It is computed in ``dtype``.
    """
    return matrices.norm(_in(dtype, input), ord, dim, keepdim)


def _in(dtype: Any, x: Array) -> Array:
    return x if dtype is None else x.to(dtype)


def _basis(a: Array, count: int, iterations: int) -> Array:
    """Return an orthonormal basis near the span of the first ``count`` left singular vectors.

    N. Halko, P. Martinsson, J. Tropp, "Finding structure with randomness", 2011, algorithm 4.4.
    """
    q = qr(ops.matmul(a, randn((*a.shape[:-2], a.shape[-1], count), dtype=a.dtype))).Q
    for _ in range(iterations):
        q = qr(ops.matmul(adjoint(a), q)).Q
        q = qr(ops.matmul(a, q)).Q
    return q


def svd_lowrank(
    A: Array, q: int | None = 6, niter: int | None = 2, M: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return u, s and v with ``A`` - ``M`` ≈ u·diag(s)·vᴴ of rank ``q``.

    It uses random projections and ``niter`` subspace iterations. Gradients flow through all of it.
    """
    count = 6 if q is None else q
    m, n = require_matrices("svd_lowrank", A)
    if not 0 <= count <= min(m, n):
        raise ShapeError(f"[svd_lowrank] q must be from 0 to {min(m, n)} for matrices {m} × {n}; got {q}.")
    rest = A if M is None else ops.subtract(A, M)
    is_wide = m < n
    if is_wide:
        rest = adjoint(rest)
    basis = _basis(rest, count, 2 if niter is None else niter)
    u, s, vh = svd(ops.matmul(adjoint(basis), rest), full_matrices=False)
    u, v = ops.matmul(basis, u), adjoint(vh)
    return (v, s, u) if is_wide else (u, s, v)


def pca_lowrank(A: Array, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Array, Array, Array]:
    """Return :func:`svd_lowrank` of ``A`` with centered columns (unless ``center`` is False).

    v has the first ``q`` principal directions, min(6, m, n) by default, and s²/(m - 1) their variances.
    """
    count = min(6, *require_matrices("pca_lowrank", A)) if q is None else q
    centred = ops.subtract(A, ops.mean(A, -2, keepdims=True)) if center else A
    return svd_lowrank(centred, count, niter)


def lobpcg(
    A: Array,
    k: int | None = None,
    B: Array | None = None,
    X: Array | None = None,
    n: int | None = None,
    iK: Array | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Array, Array]:
    """Return the ``k`` largest (or smallest) eigenvalues and eigenvectors of symmetric matrices ``A``.

    With a positive definite ``B`` they solve A·x = λ·B·x. LAPACK computes all eigenvalues, so the results are exact and
    have gradients. Arguments of the iteration have no effect: ``iK``, ``niter``, ``tol``, and ``X`` except for its
    number of columns.
    """
    count = k if k is not None else n if n is not None else 1 if X is None else X.shape[-1]
    size, _ = require_matrices("lobpcg", A, square=True)
    if not 1 <= count <= size:
        raise ShapeError(f"[lobpcg] k must be from 1 to {size} for matrices {size} × {size}; got {count}.")
    own = A
    factor = None
    if B is not None:
        factor = cholesky(B)
        own = solve_triangular(factor, adjoint(solve_triangular(factor, A, upper=False)), upper=False)
    values, vectors = eigh(own)
    if factor is not None:
        vectors = solve_triangular(adjoint(factor), vectors, upper=True)
    if largest is False:
        return ops.narrow(values, -1, 0, count), ops.narrow(vectors, -1, 0, count)
    first = size - count
    return ops.flip(ops.narrow(values, -1, first, count), -1), ops.flip(ops.narrow(vectors, -1, first, count), -1)


def chain_matmul(*matrices: Array) -> Array:
    """Multiply the matrices in the cheapest order."""
    return matrices[0] if len(matrices) == 1 else products.multi_dot(matrices)
