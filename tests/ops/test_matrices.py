"""Linear algebra of ``runnel.linalg`` against NumPy, its gradients against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import runnel as rn
import runnel.compat.torch as torch
from runnel.core.errors import MissingRuleError, ShapeError

RNG = np.random.default_rng(21)
A = RNG.normal(size=(2, 4, 4)) + 3 * np.eye(4)
B = RNG.normal(size=(2, 4, 3))
TALL = RNG.normal(size=(5, 3))
LOW = RNG.normal(size=(5, 2)) @ RNG.normal(size=(2, 4))  # of rank 2
SPD = A @ A.swapaxes(-1, -2)
LINALG = rn.linalg

CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "inv": (LINALG.inv, np.linalg.inv, (A,)), "det": (LINALG.det, np.linalg.det, (A,)),
    "logabsdet": (lambda x: LINALG.slogdet(x).logabsdet, lambda x: np.linalg.slogdet(x)[1], (A,)),
    "logdet": (torch.logdet, lambda x: np.linalg.slogdet(x)[1], (SPD,)),
    "cholesky": (lambda x: LINALG.cholesky(x + x.mT), lambda x: np.linalg.cholesky(x + x.swapaxes(-1, -2)), (SPD,)),
    "cholesky_upper": (
        lambda x: LINALG.cholesky(x + x.mT, upper=True),
        lambda x: np.linalg.cholesky(x + x.swapaxes(-1, -2)).swapaxes(-1, -2), (SPD,),
    ),
    "solve": (LINALG.solve, np.linalg.solve, (A, B)), "solve_broadcast": (LINALG.solve, np.linalg.solve, (A[0], B)),
    "solve_triangular": (
        lambda a, b: LINALG.solve_triangular(a, b, upper=True), lambda a, b: np.linalg.solve(np.triu(a), b), (A, B),
    ),
    "solve_triangular_right": (
        lambda a, b: LINALG.solve_triangular(a, b.mT, upper=False, left=False, unitriangular=True).mT,
        lambda a, b: np.linalg.solve((np.tril(a, -1) + np.eye(4)).swapaxes(-1, -2), b), (A, B),
    ),
    "pinv": (LINALG.pinv, np.linalg.pinv, (TALL,)), "pinv_wide": (LINALG.pinv, np.linalg.pinv, (TALL.T,)),
    "lstsq": (lambda a, b: LINALG.lstsq(a, b).solution, lambda a, b: np.linalg.lstsq(a, b)[0], (TALL, LOW)),
    "residuals": (lambda a, b: LINALG.lstsq(a, b).residuals, lambda a, b: np.linalg.lstsq(a, b)[1], (TALL, LOW)),
    "svdvals": (LINALG.svdvals, lambda x: np.linalg.svd(x, compute_uv=False), (B,)),
    "eigvalsh": (lambda x: LINALG.eigvalsh(x + x.mT), lambda x: np.linalg.eigvalsh(x + x.swapaxes(-1, -2)), (A,)),
    "matrix_power": (lambda x: LINALG.matrix_power(x, 5), lambda x: np.linalg.matrix_power(x, 5), (A,)),
    "matrix_power_-2": (lambda x: LINALG.matrix_power(x, -2), lambda x: np.linalg.matrix_power(x, -2), (A,)),
    "matrix_exp": (LINALG.matrix_exp, scipy.linalg.expm, (A,)),
    "matrix_exp_small": (LINALG.expm, scipy.linalg.expm, (A / 50,)),
    "cond": (LINALG.cond, np.linalg.cond, (A,)), "vector_norm": (LINALG.vector_norm, np.linalg.vector_norm, (B,)),
    "diagonal": (lambda x: LINALG.diagonal(x, 1), lambda x: np.linalg.diagonal(x, offset=1), (A,)),
    "vander": (LINALG.vander, lambda x: np.vander(x, increasing=True), (TALL[0],)),
    **{
        f"matrix_norm_{ord}": (
            lambda x, ord=ord: LINALG.matrix_norm(x, ord=ord),
            lambda x, ord=ord: np.linalg.matrix_norm(x, ord=ord), (B,)
        )
        for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str) -> None:
    function, oracle, arrays = CASES[name]
    tensors = [rn.asarray(x).requires_grad_() for x in arrays]
    actual, expected = function(*tensors), oracle(*arrays)
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-9, atol=1e-10)
    compiled = rn.compile(function)(*(x.detach() for x in tensors))
    np.testing.assert_array_equal(compiled.numpy(), actual.numpy())
    rng = np.random.default_rng(5)
    weight = rng.normal(size=actual.shape)
    (actual * rn.asarray(weight)).sum().backward()
    step = 1e-6
    for k, x in enumerate(arrays):
        way = rng.normal(size=x.shape)
        ends = [oracle(*(y + s * way if i == k else y for i, y in enumerate(arrays))) for s in (step, -step)]
        slope = ((ends[0] - ends[1]) * weight).sum() / (2 * step)
        np.testing.assert_allclose((tensors[k].grad.numpy() * way).sum(), slope, rtol=2e-5, atol=1e-6)


def test_what_has_no_gradient() -> None:
    assert LINALG.matrix_rank(rn.asarray(LOW)).item() == 2
    assert LINALG.slogdet(rn.asarray(-np.eye(3))).sign.item() == -1
    assert LINALG.lstsq(rn.asarray(LOW), rn.asarray(TALL)).rank.item() == 2
    assert LINALG.matrix_power(rn.asarray(A), 0).tolist() == np.stack([np.eye(4)] * 2).tolist()
    assert np.isnan(torch.logdet(rn.asarray(np.diag([1.0, -1.0]))).item())


def test_second_derivatives_and_batches() -> None:
    x = rn.asarray(A[0])
    once = rn.grad(lambda y: LINALG.slogdet(y).logabsdet)
    np.testing.assert_allclose(once(x).numpy(), np.linalg.inv(A[0]).T, rtol=1e-10)
    twice = rn.grad(lambda y: (once(y) ** 2).sum())(x).numpy()
    step, way = 1e-6, np.random.default_rng(2).normal(size=(4, 4))
    slope = [(np.linalg.inv(A[0] + s * way) ** 2).sum() for s in (step, -step)]
    np.testing.assert_allclose((twice * way).sum(), (slope[0] - slope[1]) / (2 * step), rtol=1e-5)
    np.testing.assert_allclose(rn.vmap(LINALG.inv)(rn.asarray(A)).numpy(), np.linalg.inv(A), rtol=1e-10)


def test_what_is_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError, match=r"\[cholesky\]"):
        LINALG.cholesky(rn.asarray(-np.eye(2)))
    with pytest.raises(ShapeError, match=r"\[det\] needs square matrices"):
        LINALG.det(rn.ones((2, 3)))
    with pytest.raises(ValueError, match="ord must be one of fro, nuc"):
        LINALG.matrix_norm(rn.ones((2, 3)), ord=3)


def test_symmetric_matrices_that_are_not_definite() -> None:
    rng = np.random.default_rng(31)
    for n in (0, 1, 2, 7):
        a = rng.normal(size=(2, n, n))
        a += a.swapaxes(-1, -2)
        a[1, range(n), range(n)] = 0 if n > 1 else 1  # blocks of two rows
        factors = LINALG.ldl_factor(rn.asarray(a))
        assert (factors.pivots.numpy()[1] < 0).any() == (n > 1)
        b = rng.normal(size=(2, n, 3))
        np.testing.assert_allclose(a @ LINALG.ldl_solve(*factors, rn.asarray(b)).numpy(), b, atol=1e-10)
        z = a + 1j * rng.normal(size=a.shape)
        for hermitian in (False, True):
            whole = z + (z.conj() if hermitian else z).swapaxes(-1, -2)
            factors = LINALG.ldl_factor(rn.asarray(whole), hermitian=hermitian)
            x = LINALG.ldl_solve(*factors, rn.asarray(b + 0j), hermitian=hermitian)
            np.testing.assert_allclose(whole @ x.numpy(), b, atol=1e-10)
    singular = rn.asarray([[1.0, 1.0], [1.0, 1.0]])
    assert LINALG.ldl_factor_ex(singular).info.item() == 2
    with pytest.raises(np.linalg.LinAlgError, match=r"\[ldl_factor\] a matrix has no result: its info is 2"):
        LINALG.ldl_factor(singular)
    with pytest.raises(ShapeError, match=r"\[ldl_solve\] matrices 2 × 2 need right sides of shape"):
        LINALG.ldl_solve(singular, rn.asarray([1, 2]), rn.ones((3, 1)))


def test_reflections_of_a_factorization() -> None:
    packed, tau = torch.geqrf(rn.asarray(TALL))
    upper = np.triu(packed.numpy()[:3])
    np.testing.assert_allclose(LINALG.householder_product(packed, tau).numpy() @ upper, TALL, atol=1e-14)
    assert torch.geqrf(rn.zeros((2, 0, 3))).tau.shape == (2, 0)
    with pytest.raises(MissingRuleError, match=r"\[geqrf\]"):
        rn.grad(lambda x: torch.geqrf(x).tau.sum())(rn.asarray(TALL))


def test_factors_of_matrices_without_elements() -> None:
    empty = rn.zeros((2, 0, 0))
    assert LINALG.lu_factor(empty).LU.shape == (2, 0, 0) and LINALG.cholesky_ex(empty).info.tolist() == [0, 0]
    assert LINALG.lu_solve(*LINALG.lu_factor(rn.zeros((0, 0))), rn.zeros((0, 2))).shape == (0, 2)


def test_few_eigenvalues_of_pytorchs_names() -> None:
    a = SPD[0] + 3 * np.eye(4)
    for largest in (True, False):
        values, vectors = torch.lobpcg(rn.asarray(SPD[0]), 2, rn.asarray(a), largest=largest)
        np.testing.assert_allclose(SPD[0] @ vectors.numpy(), a @ vectors.numpy() * values.numpy(), atol=1e-10)
        assert values.tolist() == sorted(values.tolist(), reverse=largest)
    u, s, v = torch.svd_lowrank(rn.asarray(LOW), 2)
    np.testing.assert_allclose((u * s).numpy() @ v.numpy().T, LOW, atol=1e-12)
    u, s, v = torch.pca_lowrank(rn.asarray(LOW.T), 2)
    np.testing.assert_allclose((u * s).numpy() @ v.numpy().T, LOW.T - LOW.T.mean(0), atol=1e-12)
    with pytest.raises(ShapeError, match=r"\[svd_lowrank\] q must be from 0 to 4 for matrices 5 × 4; got 5"):
        torch.svd_lowrank(rn.asarray(LOW), 5)
