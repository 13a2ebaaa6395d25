"""jvp, linearize and Jacobians: nesting, trees, what is refused. Each op: tests/suites/test_tangents.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel.core.dispatch import apply
from runnel.core.errors import DTypeError, GradientError, LevelError, MissingRuleError, ShapeError
from runnel.core.tables import Op, abstract_eval, reference, vjp

X = np.random.default_rng(0).uniform(0.3, 1.5, (3,))
AXIS = np.eye(3)


def f(x: rn.Tensor) -> rn.Tensor:
    """A function of three numbers, smooth and without symmetries."""
    result: rn.Tensor = rn.sin(x[0] * x[1]) * rn.exp(x[2]) + x[1] ** 3 / x[0]
    return result


def partial(along: tuple[int, ...], at: np.ndarray = X) -> float:
    """The partial derivative of ``f`` along several axes, by nested central differences."""
    if not along:
        x, y, z = at
        return float(np.sin(x * y) * np.exp(z) + y**3 / x)
    step = 2e-3 * AXIS[along[0]]
    near = partial(along[1:], at + step) - partial(along[1:], at - step)
    far = partial(along[1:], at + 2 * step) - partial(along[1:], at - 2 * step)
    return (8 * near - far) / (12 * 2e-3)


def forward(g: Callable[..., Any], axis: int) -> Callable[..., Any]:
    return lambda x: rn.jvp(g, (x,), (rn.asarray(AXIS[axis]),))[1]


def reverse(g: Callable[..., Any], axis: int) -> Callable[..., Any]:
    return lambda x: rn.grad(g)(x)[axis]


def batch(g: Callable[..., Any], axis: int) -> Callable[..., Any]:
    """The derivative along all axes at once, of which one is taken."""
    return lambda x: rn.vmap(lambda t: rn.jvp(g, (x,), (t,))[1])(rn.asarray(AXIS))[axis]


def batched_reverse(g: Callable[..., Any], axis: int) -> Callable[..., Any]:
    return lambda x: rn.vmap(rn.grad(g))(rn.stack([x, x + 1]))[0, axis]


def checkpointed(g: Callable[..., Any], axis: int) -> Callable[..., Any]:
    return reverse(rn.checkpoint(g), axis)


def linear(g: Callable[..., Any], axis: int) -> Callable[..., Any]:
    return lambda x: rn.linearize(g, x)[1](rn.asarray(AXIS[axis]))


def inside(g: Callable[..., Any], axis: int) -> Callable[..., Any]:
    """The derivative of a function that adds a value from outside: the value's other tangent does not count."""
    return lambda x: rn.jvp(lambda y: g(y) + 0 * g(x), (x,), (rn.asarray(AXIS[axis]),))[1]


WAYS = [forward, reverse, batch, batched_reverse, checkpointed, linear, inside]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(WAYS), st.integers(0, 2)), min_size=1, max_size=3))
def test_nestings(ways: list[tuple[Any, int]]) -> None:
    g: Callable[..., Any] = f
    for way, axis in ways:
        g = way(g, axis)
    actual = g(rn.asarray(X)).item()
    np.testing.assert_allclose(actual, partial(tuple(axis for _, axis in ways)), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("ways", [(forward, reverse), (reverse, batch), (batched_reverse, forward), (batch, batch)])
def test_nestings_compiled(ways: tuple[Any, Any]) -> None:
    g = ways[1](ways[0](f, 0), 2)
    np.testing.assert_allclose(rn.compile(g)(rn.asarray(X)).item(), g(rn.asarray(X)).item(), rtol=1e-14)
    h = ways[1](ways[0](rn.compile(f), 0), 2)
    np.testing.assert_allclose(h(rn.asarray(X)).item(), g(rn.asarray(X)).item(), rtol=1e-14)


def test_levels_keep_their_tangents_apart() -> None:
    one = rn.tensor(1.0)

    def slope(g: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x: rn.jvp(g, (x,), (one,))[1]

    x = rn.tensor(3.0)
    assert slope(lambda x: x * slope(lambda y: x + y)(one))(x).item() == 1.0
    assert slope(lambda x: x * slope(lambda y: x * y)(one))(x).item() == 6.0
    assert rn.grad(lambda x: x * slope(lambda y: x * y)(one))(x).item() == 6.0
    assert slope(lambda x: x * rn.grad(lambda y: x * y)(one))(x).item() == 6.0
    assert rn.vmap(lambda x: x * slope(lambda y: x * y)(one))(rn.tensor([3.0, 4.0])).tolist() == [9.0, 16.0]
    assert slope(lambda x: rn.stop_gradient(x) * x)(x).item() == 3.0
    assert slope(lambda x: x.detach() * x)(x).item() == 3.0
    assert rn.grad(lambda x: rn.vmap(lambda y: y.detach() * x)(rn.tensor([2.0, 3.0])).sum())(x).item() == 5.0


def test_trees_and_what_has_no_tangent() -> None:
    def g(p: dict[str, Any], k: Any) -> Any:
        return {"y": p["a"] * p["b"] * k, "same": k, "big": p["a"] > 1}, "aux"

    a, b, k = rn.tensor([1.0, 2.0]), rn.tensor(3.0), rn.tensor(2)
    out, tangent, aux = rn.jvp(g, ({"a": a, "b": b}, k), ({"a": a, "b": None}, None), has_aux=True)
    assert (out["y"].tolist(), tangent["y"].tolist(), aux) == ([6.0, 12.0], [6.0, 12.0], "aux")
    assert (tangent["same"].item(), tangent["big"].tolist()) == (0, [False, False])
    assert rn.jvp(lambda x: rn.zeros(2), (a,), (a,))[1].tolist() == [0.0, 0.0]
    assert rn.jvp(lambda x: x if float(x.sum()) > 2 else -x, (a,), (a,))[1].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda x: rn.jvp(f, x, x), GradientError, "primals must be a tuple"),
        (lambda x: rn.jvp(f, (x,), (x, x)), GradientError, "structure of the primals"),
        (lambda x: rn.jvp(f, (x,), (x[:2],)), ShapeError, "must have the shape"),
        (lambda x: rn.jvp(f, (x,), (x.astype("float32"),)), DTypeError, "must have the dtype"),
        (lambda x: rn.jvp(f, (x > 1,), (x,)), DTypeError, "must be None"),
        (lambda x: rn.jvp(f, (x,), (x,), has_aux=True), GradientError, "must return a pair"),
        (lambda x: rn.jacfwd(f, 1)(x), GradientError, "argnums must be positions of the 1 arguments; got 1"),
        (lambda x: rn.jacrev(f)(x > 1), GradientError, "dtype bool"),
        (lambda x: rn.linearize(f, x)[1](x, x), GradientError, "structure of the primals"),
    ],
)
def test_refusals(call: Callable[[rn.Tensor], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call(rn.asarray(X))


def test_gradients_stay_inside_a_level() -> None:
    parameter = rn.nn.Parameter(np.ones(3))
    with pytest.raises(LevelError, match="with a tangent"):
        rn.jvp(lambda x: (x * x * parameter).sum().backward(), (rn.asarray(X),), (rn.asarray(X),))
    assert parameter.grad is None


def test_jacobians() -> None:
    x, y = rn.asarray(X), rn.asarray(np.arange(2.0) + 2)

    def g(x: rn.Tensor, y: rn.Tensor) -> Any:
        return {"a": rn.sin(x) * y.sum(), "b": (x[:2] * y).sum()}

    for jacobian in (
        rn.jacfwd,
        rn.jacrev,
        lambda *a: rn.compile(rn.jacfwd(*a)),
        lambda *a: rn.jacrev(rn.compile(g), 0),
    ):
        actual = jacobian(g, 0)(x, y)
        np.testing.assert_allclose(actual["a"].numpy(), np.diag(np.cos(X) * 5.0), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(actual["b"].numpy(), [2.0, 3.0, 0.0])
    both, aux = rn.jacrev(lambda x, y: (g(x, y)["b"], x > 1), (0, -1), has_aux=True)(x, y)
    assert [z.tolist() for z in both] == [[2.0, 3.0, 0.0], X[:2].tolist()]
    assert aux.tolist() == (X > 1).tolist()
    expected = [[partial((i, j)) for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(rn.hessian(f)(x).numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(rn.jacrev(rn.jacfwd(f))(x).numpy(), expected, rtol=1e-5, atol=1e-6)
    blocks = rn.hessian(lambda x, y: (x[:2] * y * y).sum(), (0, 1))(x, y)
    np.testing.assert_allclose(blocks[0][1].numpy(), [[4.0, 0.0], [0.0, 6.0], [0.0, 0.0]])


def test_linear_maps_may_be_called_often() -> None:
    runs: list[int] = []

    def g(x: rn.Tensor, y: rn.Tensor) -> Any:
        runs.append(1)
        return rn.sin(x) * y, y.sum(), x > 1

    x, y = rn.asarray(X), rn.asarray(X + 1)
    out, linear = rn.linearize(g, x, y)
    for t in (rn.asarray(AXIS[0]), rn.asarray(AXIS[1])):
        for actual, expected in zip(linear(t, x), rn.jvp(g, (x, y), (t, x))[1], strict=True):
            np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-14)
    assert len(runs) == 3  # once for the linear map, once for each jvp
    columns = rn.vmap(lambda t: linear(t, None)[0])(rn.asarray(AXIS))
    np.testing.assert_allclose(columns.numpy(), np.diag(np.cos(X) * (X + 1)), rtol=1e-12)
    np.testing.assert_array_equal(out[0].numpy(), (rn.sin(x) * y).numpy())
    _, gradient, aux = rn.linearize(lambda x: (rn.grad(f)(x), "aux"), x, has_aux=True)
    assert aux == "aux"
    np.testing.assert_allclose(gradient(x).numpy(), rn.jvp(rn.grad(f), (x,), (x,))[1].numpy(), rtol=1e-12)


def test_an_op_from_outside_has_the_transpose_of_its_vjp() -> None:
    cube = Op("cube_for_levels", "x", "x³.")
    try:
        abstract_eval.register(cube, lambda x: x)
        reference.register(cube, lambda x: x**3)
        x = rn.asarray(X)
        with pytest.raises(MissingRuleError, match="no tangent"):
            rn.jvp(lambda x: apply(cube, x), (x,), (x,))
        vjp.register(cube, lambda g, out, x: (g * x * x * 3,))
        tangent = rn.jvp(lambda x: apply(cube, x), (x,), (x,))[1]
        np.testing.assert_allclose(tangent.numpy(), 3 * X**3, rtol=1e-14)
        second = rn.jvp(lambda x: rn.jvp(lambda y: apply(cube, y), (x,), (x,))[1], (x,), (rn.ones_like(x),))[1]
        np.testing.assert_allclose(second.numpy(), 9 * X**2, rtol=1e-14)
    finally:
        del Op.registry["cube_for_levels"]


def test_custom_derivatives_hold_at_every_level() -> None:
    @rn.custom_vjp
    def triple(x: rn.Tensor, y: rn.Tensor) -> Any:
        return rn.sin(x) * y

    def backward(saved: Any, g: rn.Tensor) -> Any:
        x, y = saved
        return 3 * g * rn.cos(x) * y, (3 * g * rn.sin(x)).sum()

    triple.defvjp(lambda x, y: (rn.sin(x) * y, (x, y)), backward)  # three times the derivative
    x, y = rn.asarray(X), rn.tensor(2.0, "float64")
    slope, curvature = 6 * np.cos(X), -6 * np.sin(X)

    def g(x: rn.Tensor) -> rn.Tensor:
        result: rn.Tensor = triple(x, y).sum()
        return result

    def close(actual: Any, expected: Any) -> None:
        np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12, atol=1e-14)

    ones = rn.ones_like(x)
    close(rn.vmap(rn.grad(triple), (0, None))(x, y), slope)
    close(rn.grad(lambda x: rn.vmap(triple, (0, None))(x, y).sum())(x), slope)
    close(rn.grad(lambda y: rn.vmap(triple, (0, None))(x, y).sum())(y), 3 * np.sin(X).sum())
    close(rn.jvp(triple, (x, y), (ones, y))[1], slope + 6 * np.sin(X))
    close(rn.jvp(rn.vmap(lambda x: triple(x, y)), (x,), (ones,))[1], slope)
    close(rn.vmap(lambda x: rn.jvp(triple, (x, y), (x, None))[1])(x), slope * X)
    close(rn.jvp(rn.grad(g), (x,), (ones,))[1], curvature)
    close(rn.grad(lambda x: rn.jvp(g, (x,), (ones,))[1])(x), curvature)
    close(rn.hessian(g)(x), np.diag(curvature))
    close(rn.grad(lambda x: rn.vmap(rn.grad(triple), (0, None))(x, y).sum())(x), curvature)
    close(rn.compile(rn.vmap(rn.grad(triple), (0, None)))(x, y), slope)
