"""PyTorch's factorizations of low rank, and a few of the eigenvalues of large matrices."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array
from runnel.ops.library.matrices import cholesky, solve_triangular
from runnel.ops.linalg import adjoint, eigh, qr, require_matrices, svd
from runnel.tensor.random import randn


def _basis(a: Array, count: int, iterations: int) -> Array:
    """An orthonormal basis near the span of the first ``count`` left singular vectors (N. Halko, P. Martinsson, J.
    Tropp, "Finding structure with randomness", 2011, algorithm 4.4)."""
    q = qr(ops.matmul(a, randn((*a.shape[:-2], a.shape[-1], count), dtype=a.dtype))).Q
    for _ in range(iterations):
        q = qr(ops.matmul(adjoint(a), q)).Q
        q = qr(ops.matmul(a, q)).Q
    return q


def svd_lowrank(
    A: Array, q: int | None = 6, niter: int | None = 2, M: Array | None = None
) -> tuple[Array, Array, Array]:
    """u, s and v with ``A`` (minus ``M``) near u·diag(s)·vᴴ, of rank ``q``, by random projections and ``niter``
    iterations of subspaces. Gradients flow through all of it."""
    count = 6 if q is None else q
    m, n = require_matrices("svd_lowrank", A)
    if not 0 <= count <= min(m, n):
        raise ShapeError(f"[svd_lowrank] matrices {m} × {n} have a rank from 0 to {min(m, n)}; received q={q}.")
    rest = A if M is None else ops.subtract(A, M)
    is_wide = m < n
    if is_wide:
        rest = adjoint(rest)
    basis = _basis(rest, count, 2 if niter is None else niter)
    u, s, vh = svd(ops.matmul(adjoint(basis), rest), full_matrices=False)
    u, v = ops.matmul(basis, u), adjoint(vh)
    return (v, s, u) if is_wide else (u, s, v)


def pca_lowrank(A: Array, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Array, Array, Array]:
    """:func:`svd_lowrank` of ``A`` less the means of its columns (unless ``center`` is False): v has the first ``q``
    principal directions, min(6, m, n) by default, and s²/(m - 1) their variances."""
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
    """The ``k`` largest (or smallest) eigenvalues and eigenvectors of symmetric matrices ``A``, or of A·x = λ·B·x for a
    positive definite ``B``. They are computed from all eigenvalues by LAPACK, so that they are exact, and have
    gradients; what says how to iterate (a first guess ``X``, but for its number of columns, ``iK``, ``niter``, ``tol``,
    …) has no effect."""
    count = k if k is not None else n if n is not None else 1 if X is None else X.shape[-1]
    size, _ = require_matrices("lobpcg", A, square=True)
    if not 1 <= count <= size:
        raise ShapeError(f"[lobpcg] matrices {size} × {size} have from 1 to {size} eigenvalues; received k={count}.")
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
