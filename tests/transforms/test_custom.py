"""custom_vjp: its derivative is used, nests, compiles, takes trees; mistakes in it are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import GradientError

X = np.array([0.5, 1.0, 2.0])


def cube() -> Any:
    """x³ with a derivative written out by hand."""

    @rn.custom_vjp
    def f(x: rn.Tensor) -> rn.Tensor:
        """The cube."""
        return x * x * x

    f.defvjp(lambda x: (x * x * x, x), lambda x, g: (g * 3 * x * x,))
    return f


def test_given_derivative_is_used() -> None:
    @rn.custom_vjp
    def f(x: rn.Tensor) -> rn.Tensor:
        return x * 2

    f.defvjp(lambda x: (x * 2, None), lambda saved, g: (g * 100,))
    np.testing.assert_array_equal(rn.grad(lambda x: f(x).sum())(rn.asarray(X)).numpy(), np.full(3, 100.0))
    np.testing.assert_array_equal(f(rn.asarray(X)).numpy(), 2 * X)
    assert not f(rn.asarray(X)).requires_grad


def test_metadata_comes_from_the_function() -> None:
    assert cube().__doc__ == "The cube." and cube().__name__ == "f"


def test_second_and_third_order() -> None:
    f = cube()
    first = rn.grad(lambda x: f(x).sum())
    second = rn.grad(lambda x: first(x).sum())
    third = rn.grad(lambda x: second(x).sum())
    for g, expected in ((first, 3 * X**2), (second, 6 * X), (third, np.full(3, 6.0))):
        np.testing.assert_allclose(g(rn.asarray(X)).numpy(), expected, rtol=1e-14)
        np.testing.assert_array_equal(rn.compile(g)(rn.asarray(X)).numpy(), g(rn.asarray(X)).numpy())


def test_backward_through_it() -> None:
    x = rn.tensor(X, requires_grad=True)
    (cube()(x * 2) * 0.5).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 12 * X**2)


def test_trees_several_results_and_arguments_without_gradient() -> None:
    @rn.custom_vjp
    def f(parts: dict[str, rn.Tensor], labels: rn.Tensor, scale: float) -> tuple[rn.Tensor, rn.Tensor]:
        return parts["a"] * scale, parts["a"] + parts["b"]

    def backward(scale: float, g: tuple[rn.Tensor, rn.Tensor]) -> tuple[Any, None, None]:
        return {"a": g[0] * scale + g[1], "b": g[1]}, None, None

    f.defvjp(lambda p, labels, scale: ((p["a"] * scale, p["a"] + p["b"]), scale), backward)

    def loss(parts: dict[str, rn.Tensor]) -> rn.Tensor:
        first, second = f(parts, rn.asarray(np.arange(3)), 3.0)
        result: rn.Tensor = (first + 10 * second).sum()
        return result

    g = rn.grad(loss)({"a": rn.asarray(X), "b": rn.asarray(X)})
    np.testing.assert_array_equal(g["a"].numpy(), np.full(3, 13.0))
    np.testing.assert_array_equal(g["b"].numpy(), np.full(3, 10.0))


def test_mistakes_are_reported() -> None:
    @rn.custom_vjp
    def f(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        return x * y

    call = rn.grad(lambda x: f(x, x).sum())
    with pytest.raises(GradientError, match="f must have a derivative"):
        call(rn.asarray(X))
    f.defvjp(lambda x, y: (x * y, None), lambda saved, g: (g,))
    with pytest.raises(GradientError, match="must return 2 cotangents"):
        call(rn.asarray(X))
    f.defvjp(lambda x, y: (x * y, None), lambda saved, g: ([g], g))
    with pytest.raises(GradientError, match="a cotangent of the structure"):
        call(rn.asarray(X))
    f.defvjp(lambda x, y: (x * y, None), lambda saved, g: (g.sum(), g))
    with pytest.raises(GradientError, match=r"a cotangent of shape \(\) reached"):
        call(rn.asarray(X))
