"""QR factorizations as products of Householder reflections 1 - τ·v·vᴴ (A. Householder, "Unitary triangularization of a
nonsymmetric matrix", 1958)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.dispatch import apply
from runnel.core.errors import ShapeError
from runnel.core.tables import Op, abstract_eval
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast
from runnel.ops.creation_like import iota
from runnel.ops.elementwise.arithmetic import multiply, subtract
from runnel.ops.elementwise.comparison import equal, less, where
from runnel.ops.elementwise.complex_parts import conj
from runnel.ops.linear_algebra.contraction import matmul
from runnel.ops.linear_algebra.factorizations import adjoint, host_op, require_matrices
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.pieces import narrow

geqrf_p = Op(
    "geqrf", "a", "R above the vectors of reflections, and their factors.", multiple_results=True, is_late=True
)


def _geqrf(a: Any) -> tuple[Any, Any]:
    if not a.size:
        return a, np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    packed, tau = np.linalg.qr(a, mode="raw")
    return packed.swapaxes(-1, -2), tau


host_op(geqrf_p, _geqrf, lambda m, n, k: 2 * m * n * k)


@abstract_eval.rule(geqrf_p)
def _geqrf_abstract_eval(a: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    m, n = require_matrices("geqrf", a)
    return a, aval((*a.shape[:-2], min(m, n)), a.dtype)


class FactorQR(NamedTuple):
    """R above the vectors of reflections in one matrix, and the factors of the reflections."""

    a: Array
    tau: Array


def geqrf(x: Array) -> FactorQR:
    """Return R on and above the diagonal, the vectors of reflections below it, and their factors ``tau``, as in LAPACK.

    Use the result with :func:`rn.linalg.householder_product` and :func:`ormqr`. It has no gradient, as in PyTorch;
    :func:`rn.linalg.qr` has one."""
    packed, tau = apply(geqrf_p, x)
    return FactorQR(packed, tau)


def _reflected(vectors: Array, tau: Array, x: Array, *, last_first: bool) -> Array:
    """Reflect ``x`` by each column of ``vectors``, taken as 0 above the diagonal and 1 on it."""
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
    if tau.ndim != x.ndim - 1 or tau.shape[:-1] != x.shape[:-2] or tau.shape[-1] > min(m, n):
        raise ShapeError(
            f"[{name}] matrices (..., m, n) must have factors of shape (..., k) with k ≤ min(m, n); got shapes "
            f"{x.shape} and {tau.shape}."
        )
    return m, n


def householder_product(x: Array, tau: Array) -> Array:
    """Return the first n columns of H₁·H₂·…·H_k for matrices ``x`` (…, m, n), where Hᵢ = 1 - τᵢ·v·vᴴ.

    v is column i of ``x`` below the diagonal, 1 on it and 0 above it; τᵢ is ``tau[..., i]``."""
    m, n = _require("householder_product", x, tau)
    if n > m:
        raise ShapeError(f"[householder_product] x must be matrices (..., m, n) with m ≥ n; got shape {x.shape}.")
    identity = cast(equal(iota(x, (m, n), 0), iota(x, (m, n), 1)), x.dtype)
    return _reflected(x, tau, broadcast_to(identity, x.shape), last_first=True)


def ormqr(x: Array, tau: Array, other: Array, left: bool = True, transpose: bool = False) -> Array:
    """Return Q·``other``, or ``other``·Q unless ``left``, with all m columns of the Q of
    :func:`rn.linalg.householder_product`.

    With ``transpose``, Q is replaced by its adjoint."""
    _require("ormqr", x, tau)
    if not left:
        return adjoint(_reflected(x, tau, adjoint(other), last_first=transpose))
    return _reflected(x, tau, other, last_first=not transpose)
