"""Products of Householder reflections 1 - τ·v·vᴴ, as QR factorizations leave them (A. Householder, 1958)."""

from __future__ import annotations

from runnel.core.errors import ShapeError
from runnel.core.surface import offered
from runnel.ops.arguments import Array
from runnel.ops.arithmetic import multiply, subtract
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.comparison import equal, less
from runnel.ops.contraction import matmul
from runnel.ops.conversion import cast
from runnel.ops.creation_like import iota
from runnel.ops.linalg import adjoint, require_matrices
from runnel.ops.logic import where
from runnel.ops.parts import conj
from runnel.ops.pieces import narrow


def _reflected(vectors: Array, tau: Array, x: Array, *, last_first: bool) -> Array:
    """``x`` reflected by each column of ``vectors``: 0 above the diagonal, 1 on it, and below what stands there."""
    m, count = vectors.shape[-2], tau.shape[-1]
    rows = iota(vectors, (m, 1), 0)
    for i in reversed(range(count)) if last_first else range(count):
        column = narrow(vectors, -1, i, 1)
        v = where(less(rows, i), 0, where(equal(rows, i), 1, column))
        factor = narrow(tau, -1, i, 1)
        factor = factor if last_first else conj(factor)
        x = subtract(x, multiply(multiply(v, factor[..., None]), matmul(adjoint(v), x)))
    return x


def _require(name: str, x: Array, tau: Array) -> tuple[int, int]:
    m, n = require_matrices(name, x)
    if tau.ndim != x.ndim - 1 or tau.shape[:-1] != x.shape[:-2] or tau.shape[-1] > n or n > m:
        raise ShapeError(
            f"[{name}] matrices (..., m, n) with m ≥ n need factors of shape (..., k) with k ≤ n; received shapes "
            f"{x.shape} and {tau.shape}."
        )
    return m, n


@offered("linalg", "torch: orgqr", "Tensor: orgqr")
def householder_product(x: Array, tau: Array) -> Array:
    """The first n columns of H₁·H₂·…·H_k for matrices ``x`` (…, m, n), where Hᵢ = 1 - τᵢ·v·vᴴ: v is column i of ``x``
    below the diagonal, 1 on it and 0 above, and τᵢ is ``tau[..., i]``."""
    m, n = _require("householder_product", x, tau)
    identity = cast(equal(iota(x, (m, n), 0), iota(x, (m, n), 1)), x.dtype)
    return _reflected(x, tau, broadcast_to(identity, x.shape), last_first=True)


@offered("rn", "Tensor")
def ormqr(x: Array, tau: Array, other: Array, left: bool = True, transpose: bool = False) -> Array:
    """Q·``other``, or ``other``·Q unless ``left``, with all m columns of the Q of
    :func:`rn.linalg.householder_product`; with ``transpose``, of its adjoint."""
    _require("ormqr", x, tau)
    if not left:
        return adjoint(_reflected(x, tau, adjoint(other), last_first=transpose))
    return _reflected(x, tau, other, last_first=not transpose)
