"""jvp and vmap over scan, while_loop, cond and checkpoint, in every nesting with grad, eagerly and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import GradientError, LevelError

pytestmark = pytest.mark.suite


X = np.random.default_rng(0).uniform(0.3, 1.5, (3, 4))
T = np.random.default_rng(2).uniform(-1.0, 1.0, (3, 4))
W = np.random.default_rng(1).uniform(-0.5, 0.5, (4, 4))


def recurrence(x: rn.Tensor) -> rn.Tensor:
    """Closed-over values have elements; carries get them during the scan."""
    weights, times = rn.asarray(W), rn.asarray(np.arange(5.0))
    first = rn.zeros(4, dtype="float64")
    c, ys = rn.scan(lambda c, u: (rn.tanh(weights @ c + u * x), (c * u).sum()), first, times)
    return rn.concat([c * x, ys])


def constant_ys(x: rn.Tensor) -> rn.Tensor:
    c, ys = rn.scan(lambda c, u: (c * u + x[0], rn.ones(2)), x.sum(), x)
    result: rn.Tensor = c + ys.sum()
    return result


def segments(x: rn.Tensor) -> rn.Tensor:
    c, ys = rn.scan(lambda c, u: (rn.sin(c) * u, c), x.sum(), x * 2, reverse=True, checkpoint_every=2)
    result: rn.Tensor = ys * c
    return result


def own_end(x: rn.Tensor) -> rn.Tensor:
    """Each element has its own number of steps."""
    actual: rn.Tensor = rn.while_loop(lambda c: c[0].sum() < 10, lambda c: (c[0] * 1.5, c[1] + 1), (x, rn.tensor(0)))[0]
    return actual


def common_end(x: rn.Tensor) -> rn.Tensor:
    n, y = rn.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, rn.sin(c[1]) * x), (rn.tensor(0), x))
    result: rn.Tensor = y + n
    return result


def choice(x: rn.Tensor) -> rn.Tensor:
    result: rn.Tensor = rn.cond(x[0] > 0.9, lambda x: rn.sin(x) * 2, lambda x: x * x, x)
    return result


def choice_in_a_loop(x: rn.Tensor) -> rn.Tensor:
    def step(c: rn.Tensor, u: rn.Tensor) -> Any:
        return rn.cond(c.sum() > 4, lambda c: c * 0.5, lambda c: rn.exp(c) * u, c), None

    return rn.scan(step, x, x)[0]  # type: ignore[no-any-return]


def recomputed(x: rn.Tensor) -> rn.Tensor:
    return rn.checkpoint(lambda x: rn.exp(rn.sin(x) * x) * recurrence(x).sum())(x)  # type: ignore[no-any-return]


FORWARD_ONLY = (own_end, common_end)
FUNCTIONS = (recurrence, constant_ys, segments, *FORWARD_ONLY, choice, choice_in_a_loop, recomputed)


def looped(f: Callable[..., rn.Tensor], *stacks: rn.Tensor) -> np.ndarray[Any, Any]:
    return np.stack([f(*xs).numpy() for xs in zip(*stacks, strict=True)])


def slope(f: Callable[..., rn.Tensor], x: rn.Tensor, t: rn.Tensor) -> np.ndarray[Any, Any]:
    h = 1e-5
    actual: np.ndarray[Any, Any] = (f(x + t * h).numpy() - f(x - t * h).numpy()) / (2 * h)
    return actual


def push(f: Callable[..., rn.Tensor]) -> Callable[..., rn.Tensor]:
    return lambda x, t: rn.jvp(f, (x,), (t,))[1]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_batches(f: Callable[[rn.Tensor], rn.Tensor]) -> None:
    x = rn.asarray(X)
    expected = looped(f, x)
    for mapped in (rn.vmap(f), rn.compile(rn.vmap(f)), rn.vmap(rn.compile(f))):
        np.testing.assert_array_equal(mapped(x).numpy(), expected)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_tangents(f: Callable[[rn.Tensor], rn.Tensor]) -> None:
    x, t = rn.asarray(X), rn.asarray(T)
    expected = looped(push(f), x, t)
    np.testing.assert_allclose(expected[0], slope(f, x[0], t[0]), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(rn.compile(push(f))(x[0], t[0]).numpy(), expected[0])
    np.testing.assert_array_equal(rn.vmap(push(f))(x, t).numpy(), expected)
    np.testing.assert_array_equal(push(rn.vmap(f))(x, t).numpy(), expected)
    with rn.no_grad():
        np.testing.assert_array_equal(push(f)(x[0], t[0]).numpy(), expected[0])


@pytest.mark.parametrize("f", [f for f in FUNCTIONS if f not in FORWARD_ONLY])
def test_gradients(f: Callable[[rn.Tensor], rn.Tensor]) -> None:
    x, t = rn.asarray(X), rn.asarray(T)

    def total(x: rn.Tensor) -> rn.Tensor:
        result: rn.Tensor = f(x).sum()
        return result

    gradient = rn.grad(total)
    expected = looped(gradient, x)
    np.testing.assert_array_equal(rn.vmap(gradient)(x).numpy(), expected)
    outer = rn.grad(lambda x: rn.vmap(f)(x).sum())
    np.testing.assert_array_equal(outer(x).numpy(), expected)
    np.testing.assert_array_equal(rn.compile(outer)(x).numpy(), expected)
    second = push(gradient)(x[0], t[0]).numpy()
    np.testing.assert_allclose(second, slope(gradient, x[0], t[0]), rtol=1e-6, atol=1e-6)
    over_forward = rn.grad(lambda x: push(total)(x, t[0]))(x[0])
    np.testing.assert_allclose(over_forward.numpy(), second, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose((rn.hessian(total)(x[0]) @ t[0]).numpy(), second, rtol=1e-9, atol=1e-9)


def test_scans_of_stacked_xs_and_trees() -> None:
    x = rn.asarray(X)

    def f(x: rn.Tensor, start: rn.Tensor) -> Any:
        return rn.scan(
            lambda c, u: ({"s": c["s"] + u, "n": c["n"] + 1}, u * c["s"]), {"s": start, "n": rn.tensor(0)}, x
        )

    carry, ys = rn.vmap(f, (1, None))(x, rn.tensor(0.5, "float64"))
    assert carry["n"].tolist() == [3] * 4
    np.testing.assert_array_equal(carry["s"].numpy(), 0.5 + X[0] + X[1] + X[2])
    np.testing.assert_array_equal(ys.numpy()[:, 1], X[1] * (0.5 + X[0]))


def test_a_variable_keeps_one_value() -> None:
    total = rn.Variable(np.zeros(()), name="total")

    def f(x: rn.Tensor) -> rn.Tensor:
        def step(c: rn.Tensor, u: rn.Tensor) -> Any:
            total.assign(total + u)
            return c, None

        rn.scan(step, rn.zeros(()), x)
        return x

    with pytest.raises(LevelError, match="'total' is assigned a value that differs"):
        rn.vmap(f)(rn.asarray(X))
    assert total.value.item() == 0.0


def test_custom_derivatives_inside_loops_are_refused() -> None:
    @rn.custom_vjp
    def own(x: rn.Tensor) -> rn.Tensor:
        return x * 2

    own.defvjp(lambda x: (x * 2, None), lambda saved, g: (g,))
    x = rn.asarray(X)

    def f(x: rn.Tensor) -> rn.Tensor:
        actual: rn.Tensor = rn.scan(lambda c, u: (own(c) + u, None), x.sum(), x)[0]
        return actual

    np.testing.assert_array_equal(rn.vmap(f)(x).numpy(), looped(f, x))
    for differentiated in (lambda: push(f)(x[0], x[0]), lambda: rn.grad(lambda x: rn.vmap(f)(x).sum())(x)):
        with pytest.raises(GradientError, match="has a custom derivative"):
            differentiated()
