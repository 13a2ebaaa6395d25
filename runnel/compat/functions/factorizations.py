"""PyTorch's older names for factorizations, with other arguments or results than in ``runnel.linalg``."""

from __future__ import annotations

from typing import NamedTuple

from runnel.ops.arguments import Array
from runnel.ops.creation_like import zeros_like
from runnel.ops.linear_algebra.factorizations import QR, adjoint, qr as orthogonal, svd as singular, transposed
from runnel.ops.linear_algebra.matrices import solve_triangular


def svd(x: Array, some: bool = True, compute_uv: bool = True) -> tuple[Array, Array, Array]:
    """Return u, s and v with ``x`` = u·diag(s)·vᴴ; u and v are square unless ``some``, and zeros unless
    ``compute_uv``."""
    u, s, vh = singular(x, full_matrices=not some or not compute_uv)
    if compute_uv:
        return u, s, adjoint(vh)
    return zeros_like(u), s, zeros_like(vh)


def qr(x: Array, some: bool = True) -> QR:
    """Return Q with orthonormal columns and an upper triangle R; Q is square unless ``some``."""
    return orthogonal(x, "reduced" if some else "complete")


class TriangularSolve(NamedTuple):
    """The solution, and the triangular matrix."""

    solution: Array
    cloned_coefficient: Array


def triangular_solve(
    b: Array, A: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolve:
    """Solve A·x = ``b``, or Aᵀ·x = ``b`` with ``transpose``, for one triangle of ``A``; return x and ``A``.

    ``upper`` selects the triangle, and ``unitriangular`` sets its diagonal to 1."""
    factor, is_upper = (transposed(A), not upper) if transpose else (A, upper)
    return TriangularSolve(solve_triangular(factor, b, upper=is_upper, unitriangular=unitriangular), A.handle())
