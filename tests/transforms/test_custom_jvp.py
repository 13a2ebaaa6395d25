"""custom_jvp: its rule is used forwards and backwards, nests, compiles; arguments without derivative; mistakes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import GradientError

X = np.array([0.5, -1.0, 2.0])
S = 1 / (1 + np.exp(-X))


@rn.custom_jvp
def log1pexp(x: rn.Tensor) -> rn.Tensor:
    """log(1 + eˣ)."""
    return rn.log(1 + rn.exp(x))


@log1pexp.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return log1pexp(x), rn.sigmoid(x) * t


def total(x: rn.Tensor) -> rn.Tensor:
    return log1pexp(x).sum()


def along(function: Callable[[rn.Tensor], Any], x: rn.Tensor) -> Any:
    return rn.jvp(function, (x,), (rn.ones_like(x),))[1]


DERIVATIVES: dict[str, tuple[Callable[[rn.Tensor], Any], np.ndarray]] = {
    "grad": (rn.grad(total), S),
    "jvp": (lambda x: along(log1pexp, x), S),
    "vmap of grad": (rn.vmap(rn.grad(log1pexp)), S),
    "vmap of jvp": (rn.vmap(lambda x: along(log1pexp, x)), S),
    "grad of vmap": (rn.grad(lambda x: rn.vmap(log1pexp)(x).sum()), S),
    "jvp of vmap": (lambda x: along(rn.vmap(log1pexp), x), S),
    "vmap of vmap of grad": (lambda x: rn.vmap(rn.vmap(rn.grad(log1pexp)))(x[None])[0], S),
    "grad of grad": (rn.grad(lambda x: rn.grad(total)(x).sum()), S * (1 - S)),
    "jvp of grad": (lambda x: along(rn.grad(total), x), S * (1 - S)),
    "grad of jvp": (rn.grad(lambda x: along(log1pexp, x).sum()), S * (1 - S)),
    "grad of grad of vmap": (
        rn.grad(lambda x: rn.grad(lambda y: rn.vmap(log1pexp)(y).sum())(x).sum()), S * (1 - S),
    ),
    "hessian": (lambda x: rn.hessian(total)(x).sum(0), S * (1 - S)),
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVATIVES)
def test_the_rule_serves_every_level(name: str) -> None:
    function, expected = DERIVATIVES[name]
    actual = function(rn.asarray(X)).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-14)
    np.testing.assert_array_equal(rn.compile(lambda x: function(x))(rn.asarray(X)).numpy(), actual)


def test_the_rule_is_used_and_not_the_function() -> None:
    double = rn.custom_jvp(lambda x: x * 2)
    double.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 100))
    x = rn.tensor(X, requires_grad=True)
    double(x).sum().backward()
    assert x.grad.tolist() == [100.0] * 3 and not double(rn.asarray(X)).requires_grad
    assert along(double, rn.asarray(X)).tolist() == [100.0] * 3
    assert log1pexp.__doc__ == "log(1 + eˣ)." and log1pexp.__name__ == "log1pexp"


def test_a_rule_by_argument() -> None:
    @rn.custom_jvp
    def product(x: rn.Tensor, y: rn.Tensor, scale: float) -> rn.Tensor:
        return x * y * scale

    product.defjvps(lambda t, out, x, y, scale: 5 * t * y, lambda t, out, x, y, scale: 7 * t * x, None)
    gradients = rn.grad(lambda x, y: product(x, y, scale=2.0).sum(), (0, 1))(rn.asarray(X), rn.asarray(X + 1))
    np.testing.assert_array_equal(gradients[0].numpy(), 5 * (X + 1))
    np.testing.assert_array_equal(gradients[1].numpy(), 7 * X)
    assert along(lambda x: product(x, rn.asarray(X), 2.0), rn.asarray(X)).tolist() == (5 * X).tolist()


def test_trees_and_integers() -> None:
    @rn.custom_jvp
    def chosen(parts: dict[str, rn.Tensor], index: rn.Tensor) -> tuple[rn.Tensor, rn.Tensor]:
        return parts["a"][index] * parts["b"][index], index + 1

    @chosen.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (parts, index), (t, _) = primals, tangents
        return chosen(parts, index), (10 * t["a"][index] + t["b"][index], None)

    index = rn.asarray(np.array([2, 0]))
    parts = {"a": rn.asarray(X), "b": rn.asarray(X)}
    g = rn.grad(lambda p: chosen(p, index)[0].sum())(parts)
    assert g["a"].tolist() == [10.0, 0.0, 10.0] and g["b"].tolist() == [1.0, 0.0, 1.0]
    (_, following), (t, _) = rn.jvp(lambda p: chosen(p, index), (parts,), (parts,))
    assert following.tolist() == [3, 1] and t.tolist() == [22.0, 5.5]


@pytest.mark.parametrize("derivative", [rn.custom_jvp, rn.custom_vjp])
def test_arguments_without_a_derivative(derivative: Any) -> None:
    @functools.partial(derivative, nondiff_argnums=(0, 2))
    def applied(function: Callable[[rn.Tensor], rn.Tensor], x: rn.Tensor, count: int) -> rn.Tensor:
        return function(x) * count

    if derivative is rn.custom_jvp:
        applied.defjvp(
            lambda function, count, primals, tangents: (function(*primals) * count, tangents[0] * count * 50)
        )
    else:
        applied.defvjp(lambda f, x, count: (f(x) * count, None), lambda f, count, saved, g: (g * count * 50,))

    def loss(x: rn.Tensor) -> Any:
        return applied(rn.sin, x, count=3).sum()

    for differentiated in (rn.grad(loss), rn.compile(rn.grad(loss)), rn.vmap(rn.grad(loss))):
        assert differentiated(rn.asarray(X)).tolist() == [150.0] * 3
    assert along(lambda x: applied(rn.sin, x, 3), rn.asarray(X)).tolist() == [150.0] * 3
    with pytest.raises(GradientError, match="nondiff_argnums"):
        rn.grad(lambda x: applied(rn.sin, x))(rn.asarray(1.0))


MISTAKES: dict[str, tuple[Callable[..., Any], str]] = {
    "no pair": (
        lambda primals, tangents: primals[0],
        r"must return the pair \(result, tangent\); got Tensor",
    ),
    "another structure": (lambda primals, tangents: (primals[0], tangents), "a tangent of the structure"),
    "another shape": (lambda primals, tangents: (primals[0], tangents[0].sum()), r"float64\[3\]; got float64\[\]"),
    "another dtype": (lambda primals, tangents: (primals[0], tangents[0].float()), r"float64\[3\]; got float32"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_the_rule(name: str) -> None:
    rule, message = MISTAKES[name]
    function = rn.custom_jvp(lambda x: x)
    function.defjvp(rule)
    for use in (rn.grad(lambda x: function(x).sum()), lambda x: along(function, x)):
        with pytest.raises(GradientError, match=rf"\[custom_jvp\].*{message}"):
            use(rn.asarray(X))


def test_a_function_without_a_rule() -> None:
    function = rn.custom_jvp(lambda x: x * 2)
    assert function(rn.asarray(3.0)).item() == 6
    with pytest.raises(GradientError, match=r"\[custom_jvp\].*must have a derivative; set it with defjvp"):
        rn.grad(function)(rn.asarray(3.0))
