"""PyTorch's linear algebra where its arguments differ from those of the same name in ``runnel.linalg``."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from runnel import ops
from runnel.ops.arguments import Array, Axis
from runnel.ops.library import matrices
from runnel.ops.library.triangles import tril
from runnel.ops.linalg import solve as solved

LinAlgError = np.linalg.LinAlgError


def solve(A: Array, B: Array, *, left: bool = True) -> Array:
    """X with ``A`` · X = ``B``, or X · ``A`` = ``B`` unless ``left``. ``B`` of the shape of ``A`` without its last axis
    is a vector for each matrix."""
    if B.ndim == 1 or (B.ndim + 1 == A.ndim and B.shape == A.shape[:-1]):
        return ops.squeeze(solved(A, ops.expand_dims(B, -1)), -1)
    if left:
        return solved(A, B)
    return ops.transpose(solved(ops.transpose(A), ops.transpose(B)))


_DRIVERS: Final = ("gels", "gelsy", "gelsd", "gelss")


def lstsq(input: Array, b: Array, rcond: float | None = None, *, driver: str | None = None) -> matrices.Lstsq:
    """:func:`runnel.linalg.lstsq`, which computes by singular values whatever the ``driver`` of LAPACK ("gelsy" by
    default). What a driver does not know has no elements: the rank with "gels", singular values but with "gelsd" and
    "gelss", residuals with "gelsy"."""
    if driver not in (None, *_DRIVERS):
        raise ValueError(f"[lstsq] driver is one of {', '.join(_DRIVERS)}; received {driver!r}.")
    result = matrices.lstsq(input, b, rcond)
    nothing = result.singular_values.detach().reshape(-1)[:0]
    if driver in (None, "gelsy") or input.shape[-2] <= input.shape[-1]:
        result = result._replace(residuals=nothing)
    if driver == "gels":
        result = result._replace(rank=nothing.astype(result.rank.dtype))
    return result if driver in ("gelsd", "gelss") else result._replace(singular_values=nothing)


def pinv(input: Array, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Array:
    """The pseudoinverse: singular values up to the greater of ``atol`` and ``rtol`` times the greatest count as 0.
    Without ``atol``, ``rtol`` (or ``rcond``) is max(m, n) times the dtype's eps. Of ``hermitian`` matrices the lower
    triangle is read."""
    input = _from_lower(input) if hermitian else input
    return matrices.pinv(input, _share(input, atol, rcond if rtol is None else rtol))


def matrix_rank(input: Array, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Array:
    """How many singular values are greater than both ``atol`` (or ``tol``) and ``rtol`` times the greatest: int64.
    Without ``atol``, ``rtol`` is max(m, n) times the dtype's eps. Of ``hermitian`` matrices the lower triangle is
    read."""
    input = _from_lower(input) if hermitian else input
    return matrices.matrix_rank(input, _share(input, tol if atol is None else atol, rtol))


def _from_lower(x: Array) -> Array:
    """The Hermitian matrices of which ``x`` has the lower triangles."""
    return ops.add(tril(x), ops.conj(ops.transpose(tril(x, -1))))


def _share(x: Array, atol: Any, rtol: Any) -> Any:
    """The share of the greatest singular value of each matrix up to which one counts as 0."""
    if atol is None:
        return rtol
    values = matrices.svdvals(x)
    if not values.shape[-1]:
        return rtol
    greatest = ops.max(values, -1)
    share = ops.where(ops.greater(greatest, 0), ops.divide(atol, greatest), 0)
    return share if rtol is None else ops.maximum(share, rtol)


def vector_norm(x: Array, ord: float = 2, dim: Axis = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """The vector norm over ``dim``, computed in ``dtype``: (Σ |x|^ord)^(1/ord); 0 counts what is not 0, ±∞ are
    extremes."""
    return matrices.vector_norm(_in(dtype, x), ord, dim, keepdim)


def matrix_norm(
    input: Array, ord: Any = "fro", dim: Axis = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Array:
    """A norm of the matrices in two axes, computed in ``dtype``; orders are those of ``runnel.linalg.matrix_norm``."""
    return matrices.matrix_norm(_in(dtype, input), ord, dim, keepdim)


def norm(input: Array, ord: Any = None, dim: Axis = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """The vector norm of all elements (no ``ord`` and no ``dim``) or along one axis; the matrix norm for a matrix or
    along two axes; computed in ``dtype``."""
    return matrices.norm(_in(dtype, input), ord, dim, keepdim)


def _in(dtype: Any, x: Array) -> Array:
    return x if dtype is None else x.to(dtype)
