"""grad, value_and_grad and vjp: values against finite differences in float64, nesting, trees, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import nn
from runnel.core.errors import GradientError
from runnel.nn import functional as F

pytestmark = pytest.mark.suite


X = np.random.default_rng(0).uniform(0.3, 1.5, (3, 4))


def slope(f: Callable[[np.ndarray], float], x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Central differences."""
    result = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        d = np.zeros_like(x)
        d[i] = step
        result[i] = (f(x + d) - f(x - d)) / (2 * step)
    return result


FUNCTIONS: dict[str, Callable[[rn.Tensor], rn.Tensor]] = {
    "polynomial": lambda x: (x**3 - 2 * x).sum(),
    "quotient": lambda x: (rn.sin(x) / (1 + x * x)).sum(),
    "softmax": lambda x: (rn.softmax(x, -1) * rn.arange(4).astype("float64")).sum(),
    "norm": lambda x: F.layer_norm(x, 4)[0].sum() + rn.log(rn.mean(rn.square(x))),
    "matmul": lambda x: rn.tanh(x @ x.T).sum(),
    "entropy": lambda x: rn.cross_entropy(x, rn.asarray(np.array([0, 3, 1]))),
    "gather": lambda x: rn.square(rn.take(x, rn.asarray(np.array([2, 0, 2])), 0)).sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_and_second_order(name: str) -> None:
    f = FUNCTIONS[name]
    actual = rn.grad(f)(rn.asarray(X)).numpy()
    np.testing.assert_allclose(actual, slope(lambda x: f(rn.asarray(x)).item(), X), rtol=1e-6, atol=1e-7)
    weights = rn.asarray(np.random.default_rng(1).standard_normal(X.shape))

    def directional(x: rn.Tensor) -> rn.Tensor:
        result: rn.Tensor = (rn.grad(f)(x) * weights).sum()
        return result

    second = rn.grad(directional)(rn.asarray(X)).numpy()
    np.testing.assert_allclose(second, slope(lambda x: directional(rn.asarray(x)).item(), X), rtol=1e-5, atol=1e-6)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 4), st.floats(-2, 2))
def test_derivatives_of_any_order(order: int, at: float) -> None:
    f: Callable[..., Any] = lambda x: rn.exp(x * 0.5)  # noqa: E731 - it is rebound
    for _ in range(order):
        f = rn.grad(f)
    assert f(rn.asarray(np.float64(at))).item() == pytest.approx(0.5**order * np.exp(at / 2), rel=1e-12)


def test_levels_do_not_mix() -> None:
    inner = lambda x: rn.grad(lambda y: (x * y).sum())(x)  # noqa: E731 - d/dy of x·y is x, wherever y comes from
    np.testing.assert_array_equal(rn.grad(lambda x: (x * inner(x)).sum())(rn.asarray(X)).numpy(), 2 * X)


def test_compiled_gradients_are_the_eager_ones() -> None:
    for name, f in FUNCTIONS.items():
        second = rn.grad(lambda x, f=f: rn.square(rn.grad(f)(x)).sum())
        for g in (rn.grad(f), second):
            np.testing.assert_array_equal(rn.compile(g)(rn.asarray(X)).numpy(), g(rn.asarray(X)).numpy(), err_msg=name)


def test_grad_of_a_compiled_function() -> None:
    f = rn.compile(lambda x: rn.sin(x).sum())
    f(rn.asarray(X))
    np.testing.assert_allclose(rn.grad(f)(rn.asarray(X)).numpy(), np.cos(X), rtol=1e-14)


# --- arguments ------------------------------------------------------------------------------------------------------


@dataclass
class Pair:
    """A tree node with names."""

    left: Any
    right: Any


def test_trees_and_unused_leaves() -> None:
    tree = {"a": rn.asarray(X), "b": [Pair(rn.asarray(X), rn.asarray(X[0]))]}
    value, g = rn.value_and_grad(lambda t, k: (t["a"] * t["b"][0].left).sum() * k)(tree, 3.0)
    assert value.item() == pytest.approx(3 * (X * X).sum()) and not value.requires_grad
    np.testing.assert_allclose(g["a"].numpy(), 3 * X)
    assert isinstance(g["b"][0], Pair)
    np.testing.assert_array_equal(g["b"][0].right.numpy(), np.zeros(4))


def test_several_arguments_auxiliary_values_and_keywords() -> None:
    def f(x: rn.Tensor, y: rn.Tensor, *, power: int) -> tuple[rn.Tensor, str]:
        return (x * y**power).sum(), "seen"

    (value, note), (gx, gy) = rn.value_and_grad(f, argnums=(0, -1), has_aux=True)(
        rn.asarray(X), rn.asarray(2 * X), power=2
    )
    assert note == "seen" and value.item() == pytest.approx((4 * X**3).sum())
    np.testing.assert_allclose(gx.numpy(), 4 * X**2)
    np.testing.assert_allclose(gy.numpy(), 4 * X**2)
    assert rn.grad(f, has_aux=True)(rn.asarray(X), rn.asarray(X), power=1)[1] == "seen"


def test_numbers_arrays_and_variables() -> None:
    assert rn.grad(lambda x: x * x)(3.0).item() == 6
    np.testing.assert_allclose(rn.grad(lambda x: (x * x).sum())(X).numpy(), 2 * X)
    variable = rn.Variable(X)
    np.testing.assert_allclose(rn.grad(lambda x: (x * x).sum())(variable).numpy(), 2 * X)
    assert variable.grad is None


def test_a_module_as_argument() -> None:
    net = nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 1, bias=False))
    x = rn.asarray(X.astype(np.float32))
    g = rn.grad(lambda net, x: net(x).sum())(net, x)
    net(x).sum().backward()
    assert list(g) == ["0.weight", "0.bias", "1.weight"]
    for name, p in net.named_parameters():
        np.testing.assert_array_equal(g[name].numpy(), p.grad.numpy())


def test_a_gradient_penalty_reaches_parameters() -> None:
    net = nn.Linear(4, 1, bias=False)
    g = rn.grad(lambda x: net(x).sum())(rn.asarray(X.astype(np.float32)))
    rn.square(g).sum().backward()
    np.testing.assert_allclose(net.weight.grad.numpy(), 6 * net.weight.numpy(), rtol=1e-6)


def test_refusals() -> None:
    x = rn.asarray(X)
    with pytest.raises(GradientError, match="dtype int64"):
        rn.grad(lambda n: n.sum())(rn.asarray(np.arange(3)))
    with pytest.raises(GradientError, match="must be floating-point tensors; got str"):
        rn.grad(lambda s: x.sum())("word")
    with pytest.raises(GradientError, match=r"got a tensor float64\[3,4\]"):
        rn.grad(lambda y: y * y)(x)
    with pytest.raises(GradientError, match="got a tensor int64"):
        rn.grad(lambda y: rn.argmax(y))(x)
    with pytest.raises(GradientError, match="argnums must be positions of the 1 arguments; got 3"):
        rn.grad(lambda y: y.sum(), 3)(x)


def test_stop_gradient_and_constants() -> None:
    np.testing.assert_array_equal(rn.grad(lambda x: (rn.stop_gradient(x) * x).sum())(rn.asarray(X)).numpy(), X)
    np.testing.assert_array_equal(rn.grad(lambda x: rn.asarray(2.0))(rn.asarray(X)).numpy(), np.zeros_like(X))


def test_vjp_of_a_tree_several_times() -> None:
    (total, pair), pull = rn.vjp(lambda a, b: (a.sum(), [a * b, 7]), rn.asarray(X), rn.asarray(X))
    assert total.item() == pytest.approx(X.sum()) and pair[1] == 7
    for scale in (1.0, 2.0):
        ga, gb = pull((scale, [np.full_like(X, scale), None]))
        np.testing.assert_allclose(ga.numpy(), scale * (1 + X))
        np.testing.assert_allclose(gb.numpy(), scale * X)
    with pytest.raises(GradientError, match="must have the structure"):
        pull(1.0)
