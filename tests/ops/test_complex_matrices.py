"""Linear algebra of complex matrices: NumPy is the oracle, differences measure the gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from tests.ops.complex_checks import check, check_values, drawn, reals

L = rn.linalg


def hermitian(a: Any) -> Any:
    return (a + rn.conj(a).mT) / 2


def rebuilt(a: Any) -> Any:
    """A function of the singular values, with vectors whose phases cancel."""
    u, s, vh = L.svd(a, full_matrices=False)
    return u @ (vh * rn.exp(s)[..., None])


def of_eig(a: Any) -> Any:
    values, vectors = L.eig(a)
    return rn.sum(rn.abs(vectors) ** 4 * rn.abs(values))


POSITIVE = drawn(3, 3) @ drawn(3, 3).conj().T + np.eye(3)
CASES: dict[str, tuple[Callable[..., Any], Any]] = {
    "inv": (L.inv, drawn(3, 3)),
    "det": (L.det, drawn(3, 3)),
    "sign of slogdet": (lambda a: L.slogdet(a).sign, drawn(3, 3)),
    "slogdet": (lambda a: L.slogdet(a).logabsdet, drawn(3, 3)),
    "cholesky": (lambda a: L.cholesky(hermitian(a)), POSITIVE),
    "pinv": (L.pinv, drawn(2, 3)),
    "expm": (L.matrix_exp, drawn(2, 2)),
    "power": (lambda a: L.matrix_power(a, -3), drawn(3, 3)),
    "eigh": (lambda a: L.eigh(hermitian(a)).eigenvalues, POSITIVE),
    "vectors of eigh": (lambda a: rn.abs(L.eigh(hermitian(a)).eigenvectors) ** 2, POSITIVE),
    "qr": (lambda a: L.qr(a).R, drawn(3, 3)),
    "q": (lambda a: L.qr(a).Q, drawn(3, 2)),
    "wide qr": (lambda a: L.qr(a).R, drawn(2, 3)),
    "svd": (lambda a: L.svd(a, full_matrices=False).S, drawn(2, 3)),
    "vectors of svd": (rebuilt, drawn(2, 3)),
    "tall svd": (rebuilt, drawn(3, 2)),
    "norm": (L.matrix_norm, drawn(3, 3)),
    "nuclear norm": (lambda a: L.matrix_norm(a, ord="nuc"), drawn(3, 3)),
    "eigvals": (lambda a: rn.sum(L.eigvals(a) ** 3), drawn(3, 3)),
    "vectors of eig": (of_eig, drawn(3, 3)),
    "eig of reals": (lambda a: rn.sum(L.eig(a).eigenvalues ** 3 * 1j), reals(3, 3)),
    "vectors of reals": (of_eig, reals(3, 3)),
    "lower factor": (lambda a: L.lu(a).L, drawn(3, 3)),
    "upper factor": (lambda a: L.lu(a).U, drawn(3, 3)),
    "factors of tall matrices": (lambda a: L.lu_factor(a).LU, drawn(4, 2)),
    "factors of wide matrices": (lambda a: L.lu_factor(a).LU, drawn(2, 4)),
    "reflections": (lambda a: L.householder_product(a, a[0] * 0.3), drawn(4, 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    check(*CASES[name])


def test_derivatives_of_solve() -> None:
    check(L.solve, drawn(3, 3), drawn(3, 2, seed=1))
    for adjoint in (False, True):
        check(lambda a, b, adjoint=adjoint: L.lu_solve(*L.lu_factor(a), b, adjoint=adjoint), drawn(3, 3), drawn(3, 2))


@pytest.mark.parametrize("name", ["inv", "det", "pinv", "cholesky", "eigvalsh", "svdvals", "matrix_rank", "cond"])
def test_values_are_numpys(name: str) -> None:
    a = POSITIVE if name in ("cholesky", "eigvalsh") else drawn(2, 3, 3)
    check_values(getattr(L, name), getattr(np.linalg, name), a)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_eigenvectors(dtype: str) -> None:
    a = drawn(2, 4, 4)
    x = (a if dtype.startswith("complex") else a.real).astype(dtype)
    values, vectors = (y.numpy() for y in L.eig(rn.asarray(x)))
    assert values.dtype == vectors.dtype == np.result_type(x.dtype, np.complex64)
    np.testing.assert_allclose(x @ vectors, vectors * values[:, None, :], atol=1e-4)
    assert L.eigvals(rn.asarray(x)).numpy().tobytes() == values.tobytes()
