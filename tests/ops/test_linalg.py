"""Factorizations and systems of equations: NumPy is the oracle, differences measure the gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import DTypeError, GradientError, ShapeError

Array = np.ndarray[Any, Any]


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def weighted(x: Any) -> Any:
    m, n = x.shape[-2:]
    return (x * rn.cos(rn.arange(m * n, dtype="float64") * 1.7).reshape(m, n)).sum()


def of_eigh(a: Any) -> Any:
    values, vectors = rn.linalg.eigh((a + a.mT) * 0.5)
    return (values * rn.arange(1, values.shape[-1] + 1, dtype="float64")).sum() + weighted(vectors * vectors)


def of_qr(a: Any) -> Any:
    q, r = rn.linalg.qr(a)
    return weighted(q) + weighted(r) * 0.5


def of_svd(a: Any) -> Any:
    u, s, vh = rn.linalg.svd(a, full_matrices=False)
    return weighted(u * u) + (s**3).sum() + weighted(vh * vh) + weighted((u * s[..., None, :]) @ vh)


def of_solve(a: Any) -> Any:
    return weighted(rn.linalg.solve(a, a @ a + 1.0))


CASES = {
    "eigh": (of_eigh, (4, 4)), "eigh of several": (of_eigh, (2, 3, 3)), "qr tall": (of_qr, (5, 3)),
    "qr square": (of_qr, (3, 3)), "qr wide": (of_qr, (3, 5)), "qr of several": (of_qr, (2, 4, 3)),
    "svd tall": (of_svd, (5, 3)), "svd wide": (of_svd, (3, 5)), "svd square": (of_svd, (3, 3)),
    "svd of several": (of_svd, (2, 4, 3)), "solve": (of_solve, (2, 4, 4)),
}  # fmt: skip


def differences(function: Callable[[Any], Any], x: Array, step: float = 1e-6) -> Array:
    actual = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        ends = []
        for h in (step, -step):
            moved = x.copy()
            moved[place] += h
            ends.append(function(rn.asarray(moved)).item())
        actual[place] = (ends[0] - ends[1]) / (2 * step)
    return actual


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    function, shape = CASES[name]
    x = drawn(*shape)
    actual = rn.grad(function)(rn.asarray(x)).numpy()
    np.testing.assert_allclose(actual, differences(function, x), rtol=1e-5, atol=1e-6)
    compiled = rn.compile(rn.grad(function))(rn.asarray(x)).numpy()
    assert compiled.tobytes() == actual.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_are_numpys(dtype: str) -> None:
    a = drawn(2, 4, 3).astype(dtype)
    square = a @ a.swapaxes(-1, -2)
    for actual, expected in (
        (rn.linalg.eigh(rn.asarray(square)), np.linalg.eigh(square)),
        (rn.linalg.eigh(rn.asarray(square), "U"), np.linalg.eigh(square, "U")),
        (rn.linalg.qr(rn.asarray(a)), np.linalg.qr(a)),
        (rn.linalg.qr(rn.asarray(a), "complete"), np.linalg.qr(a, "complete")),
        (rn.linalg.svd(rn.asarray(a)), np.linalg.svd(a)),
        (rn.linalg.svd(rn.asarray(a), False), np.linalg.svd(a, False)),
    ):
        for x, y in zip(actual, expected, strict=True):
            assert x.numpy().tobytes() == np.ascontiguousarray(y).tobytes()
    b = drawn(4, seed=1).astype(dtype)
    assert rn.linalg.solve(rn.asarray(square[0] + np.eye(4, dtype=dtype)), rn.asarray(b)).shape == (4,)
    assert rn.linalg.eigh(rn.asarray(square)).eigenvalues.shape == (2, 4)
    assert rn.linalg.svd(rn.zeros((0, 3))).Vh.shape == (3, 3)


def test_transposed_views_in_programs_and_loops() -> None:
    a = drawn(5, 4, 4)

    def whitened(xs: Any) -> Any:
        def step(total: Any, x: Any) -> Any:
            values, vectors = rn.linalg.eigh(x.mT @ x)
            return total + values, vectors.mT

        return rn.scan(step, rn.zeros((4,), "float64"), xs)

    for compiled, eager in zip(rn.compile(whitened)(rn.asarray(a)), whitened(rn.asarray(a)), strict=True):
        assert compiled.numpy().tobytes() == eager.numpy().tobytes()


def test_a_training_step_with_an_eigenvalue() -> None:
    start = drawn(4, 4).astype(np.float32)

    def trained(compiled: bool) -> list[bytes]:
        w = rn.nn.Parameter(start)
        rule = rn.optim.SGD([w], 0.1)

        def step(x: Any) -> Any:
            rule.zero_grad()
            values, _ = rn.linalg.eigh(w @ w.mT + x)
            loss = values[-1] - values[0]
            loss.backward()
            rule.step()
            return loss

        run = rn.compile(step) if compiled else step
        losses = [run(rn.eye(4)).numpy().tobytes() for _ in range(3)]
        return [*losses, w.numpy().tobytes()]

    assert trained(True) == trained(False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (11, 2), (12, 1), (32, 32), (32, 33), (33, 2)])
def test_small_systems_are_solved_by_the_program(shape: tuple[int, int], dtype: Any) -> None:
    n, k = shape
    rng = np.random.default_rng(n + k)
    a = rng.standard_normal((2, 3, n, n)).astype(dtype)
    a[..., 0, 0] = 0 if n > 1 else 1  # a pivot is to be found
    b = rng.standard_normal((2, 3, n, k)).astype(dtype)
    x = rn.linalg.solve(rn.asarray(a), rn.asarray(b))
    exact = np.linalg.solve(a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(x.numpy(), exact, rtol=1e-4 if dtype is np.float32 else 1e-9)
    compiled = rn.compile(rn.linalg.solve, dynamic=False)
    np.testing.assert_array_equal(compiled(rn.asarray(a), rn.asarray(b)).numpy(), x.numpy())
    transposed = rn.asarray(a.swapaxes(-1, -2).copy()).mT
    np.testing.assert_array_equal(rn.linalg.solve(transposed, rn.asarray(b)).numpy(), x.numpy())
    batched = rn.vmap(rn.linalg.solve)(rn.asarray(a), rn.asarray(b))
    np.testing.assert_array_equal(batched.numpy(), x.numpy())


def test_matrices_without_a_number_are_not_singular() -> None:
    a = rn.asarray([[float("nan"), 1.0], [1.0, 2.0]])
    assert np.isnan(rn.linalg.solve(a, rn.ones((2, 1))).numpy()).all()


def test_singular_matrices_change_nothing() -> None:
    w = rn.Variable(np.zeros((2, 2)))

    @rn.compile
    def step(b: Any) -> Any:
        before = w.read()
        w.assign(before + 1.0)
        return rn.linalg.solve(before, b)

    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match=r"\[solve\] Singular"):
            step(rn.ones((2, 1), "float64"))
        assert not w.numpy().any()


def test_what_is_refused() -> None:
    with pytest.raises(ShapeError, match="square matrices"):
        rn.linalg.eigh(rn.zeros((2, 3)))
    with pytest.raises(ShapeError, match="matrices in the last two axes"):
        rn.linalg.qr(rn.zeros((3,)))
    with pytest.raises(DTypeError):
        rn.linalg.svd(rn.zeros((2, 3), "float16"))
    with pytest.raises(ShapeError, match="right sides"):
        rn.linalg.solve(rn.zeros((2, 2)), rn.zeros((3, 1)))
    with pytest.raises(ValueError, match="UPLO must be 'L' or 'U'"):
        rn.linalg.eigh(rn.zeros((2, 2)), "X")
    with pytest.raises(GradientError, match="mode 'reduced'"):
        rn.grad(lambda a: rn.linalg.qr(a, "complete").Q.sum())(rn.asarray(drawn(3, 2)))


@pytest.mark.parametrize("element", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("function", [rn.linalg.svdvals, rn.linalg.pinv, lambda x: rn.linalg.svd(x).U])
def test_singular_values_of_what_is_not_finite_are_nan(function: Any, element: float) -> None:
    x = np.array([[[1e-40, -0.5, element, -3], [-1, 0.5, 2.5, 1.5], [2, -3, 0.5, 3]], np.eye(3, 4)], np.float32)
    actual = function(rn.asarray(x)).numpy()
    assert np.isnan(actual[0]).all()
    np.testing.assert_array_equal(actual[1], function(rn.asarray(x[1:])).numpy()[0])
