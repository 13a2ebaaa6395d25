"""vmap: axes and trees, nesting, what functions do inside, and what is refused. Each op: tests/suites/test_maps.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops
from runnel.core.errors import ArgumentError, AxisError, LevelError, RunnelError, ShapeError, SideEffectError
from runnel.nn import functional as F

X = np.random.default_rng(0).uniform(0.3, 1.5, (3, 4))


def same(actual: Any, expected: Any) -> None:
    np.testing.assert_array_equal(actual.numpy(), expected.numpy())


def looped(f: Callable[..., rn.Tensor], *stacks: rn.Tensor) -> rn.Tensor:
    """``f`` for each element of axis 0."""
    result: rn.Tensor = rn.stack([f(*xs) for xs in zip(*stacks, strict=True)])
    return result


FUNCTIONS: dict[str, Callable[[rn.Tensor], rn.Tensor]] = {
    "softmax": lambda x: rn.softmax(x, 0) * x,
    "matmul": lambda x: rn.asarray(X) @ x,
    "outer": lambda x: rn.outer(x, x).T,
    "sort of": lambda x: x[rn.argmax(x)] + x[::2],
    "branches": lambda x: rn.where(x > 1, x, -x).sum(),
    "losses": lambda x: rn.cross_entropy(rn.stack([x, 2 * x]), rn.asarray(np.array([0, 3]))),
    "constant": lambda x: rn.arange(3),
    "norm": lambda x: F.layer_norm(x, 4),
    "rolled": lambda x: rn.concat([x[2:], x[:2]]).reshape(2, 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_loop_gives_the_same_bits(name: str) -> None:
    f, x = FUNCTIONS[name], rn.asarray(X)
    expected = looped(f, x)
    same(rn.vmap(f)(x), expected)
    same(rn.compile(rn.vmap(f))(x), expected)
    same(rn.vmap(rn.compile(f))(x), expected)
    deep = rn.asarray(np.stack([X, X + 1]))
    same(rn.vmap(rn.vmap(f))(deep), looped(lambda y: looped(f, y), deep))


def test_axes_of_arguments_and_results() -> None:
    x, y = rn.asarray(X), rn.asarray(X.T.copy())

    def f(a: rn.Tensor, b: rn.Tensor) -> rn.Tensor:
        result: rn.Tensor = rn.outer(a, b)
        return result

    expected = looped(f, x, rn.asarray(X))
    same(rn.vmap(f, (0, 1))(x, y), expected)
    same(rn.vmap(f, (-2, -1))(x, y), expected)
    same(rn.vmap(f, (0, 1), out_axes=-1)(x, y), rn.moveaxis(expected, 0, -1))
    same(rn.vmap(f, (0, 1), out_axes=1)(x, y), rn.moveaxis(expected, 0, 1))
    same(rn.vmap(f, [None, 0])(x[0], x), looped(lambda b: f(x[0], b), x))


def test_trees_and_prefixes() -> None:
    tree = {"a": rn.asarray(X), "b": (rn.asarray(X.T.copy()), 2.0)}

    def f(t: Any, scale: float = 1.0) -> Any:
        return {"sum": t["a"] + t["b"][0] * t["b"][1] * scale, "fixed": rn.zeros(2), "none": None}

    actual = rn.vmap(f, ({"a": 0, "b": (1, None)},), {"sum": 0, "fixed": None, "none": 0})(tree, scale=3.0)
    same(actual["sum"], rn.asarray(X) + rn.asarray(X) * 2.0 * 3.0)
    assert actual["fixed"].shape == (2,)
    assert actual["none"] is None
    pairs = rn.vmap(lambda p: p[0] * p[1], (0,))((rn.asarray(X), rn.asarray(X)))
    same(pairs, rn.asarray(X) * rn.asarray(X))


def test_no_elements() -> None:
    weights = rn.asarray(X)
    for f in (lambda x: weights @ x, lambda x: rn.take(x, rn.asarray(np.array([1, 0]))), lambda x: x.reshape(2, 2)):
        empty = rn.zeros((0, 4), dtype="float64")
        assert rn.vmap(f)(empty).shape == (0, *f(rn.asarray(X[0])).shape)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda x: rn.vmap(lambda a, b: a, (0, 1))(x, x), ShapeError, "the same size"),
        (lambda x: rn.vmap(lambda a: a, 2)(x), AxisError, "in_axes must be an axis of .* got 2"),
        (lambda x: rn.vmap(lambda a: a, out_axes=2)(x[:, 0]), AxisError, "out_axes must be an axis .* got 2"),
        (lambda x: rn.vmap(lambda a: a, None)(x), ArgumentError, "got None for all"),
        (lambda x: rn.vmap(lambda a, b: a)(x, 3), ArgumentError, "Pass None for it"),
        (lambda x: rn.vmap(lambda a, b: a, (0,))(x, x), ArgumentError, "must be a prefix"),
        (lambda x: rn.vmap(lambda a: a, ({"b": 0},))({"a": x}), ArgumentError, "must be a prefix"),
        (lambda x: rn.vmap(lambda a: a, "rows")(x), ArgumentError, "must contain axes or None"),
        (lambda x: rn.vmap(lambda a: a, out_axes=None)(x), ArgumentError, "differs between elements"),
        (lambda x: rn.vmap(lambda a: float(a.sum()))(x), LevelError, "one for each of 3 elements"),
        (lambda x: rn.vmap(lambda a: a if a.sum() > 0 else -a)(x), LevelError, "rn.where|runnel.where"),
        (lambda x: rn.vmap(lambda a: a.numpy())(x), LevelError, "numpy"),
        (lambda x: rn.vmap(lambda a: a[a > 1])(x), RunnelError, "mask"),
        (lambda x: rn.vmap(lambda a: x.__setitem__(0, a))(x), SideEffectError, "return the value"),
        (lambda x: rn.vmap(lambda a: rn.Variable(np.zeros(4)).assign(a))(x), LevelError, "differs from element"),
    ],
)
def test_refusals(call: Callable[[rn.Tensor], Any], kind: type[Exception], words: str) -> None:
    x = rn.asarray(X)
    with pytest.raises(kind, match=words):
        call(x)
    np.testing.assert_array_equal(x.numpy(), X)


def test_a_tensor_that_leaves_its_function_is_refused() -> None:
    left: list[rn.Tensor] = []
    rn.vmap(left.append, out_axes=None)(rn.asarray(X))
    with pytest.raises(LevelError, match="after the function under vmap has ended"):
        left[0] + 1


def test_writes_in_place() -> None:
    def f(x: rn.Tensor) -> rn.Tensor:
        out = rn.zeros(5, dtype="float64")
        out[1:] = x
        out[0] = x.sum()
        out.mul_(x[1])
        out += 1
        x[0] = 7.0
        result: rn.Tensor = out + x.sum()
        return result

    expected = looped(lambda x: f(x.clone()), rn.asarray(X))
    same(rn.vmap(f)(rn.asarray(X)), expected)
    same(rn.compile(rn.vmap(f))(rn.asarray(X)), expected)


def test_a_key_for_each_element_is_a_loop() -> None:
    keys = rn.split_key(rn.asarray(np.array([1, 2], np.uint32)), 3)
    for draw in (
        lambda key: rn.rand(2, 3, key=key),
        lambda key: rn.normal(size=7, key=rn.fold_in(key, 5), dtype="float64"),
        lambda key: rn.randint(0, 100, (4,), key=key),
        lambda key: rn.split_key(key, 3),
        lambda key: rn.vmap(lambda k: rn.random.uniform(size=2, key=k))(rn.split_key(key, 2)),
    ):
        expected = looped(draw, keys)
        same(rn.vmap(draw)(keys), expected)
        same(rn.compile(rn.vmap(draw))(keys), expected)


def test_generators_draw_other_numbers_for_each_element() -> None:
    def f(x: rn.Tensor) -> rn.Tensor:
        result: rn.Tensor = x * 0 + rn.rand(4, dtype="float64")
        return result

    rn.manual_seed(3)
    eager = rn.vmap(f)(rn.asarray(X)).numpy()
    assert len(np.unique(eager)) == eager.size
    rn.manual_seed(3)
    np.testing.assert_array_equal(rn.compile(rn.vmap(f))(rn.asarray(X)).numpy(), eager)
    rn.manual_seed(3)
    np.testing.assert_array_equal(rn.vmap(rn.compile(f))(rn.asarray(X)).numpy(), eager)


def test_gradients_of_each_example() -> None:
    rn.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
    xs, labels = rn.asarray(X.astype(np.float32)), rn.asarray(np.array([0, 1, 1]))

    def loss(model: nn.Module, x: rn.Tensor, label: rn.Tensor) -> rn.Tensor:
        result: rn.Tensor = nn.functional.cross_entropy(model(x)[None], label[None])
        return result

    each = rn.vmap(rn.grad(loss), (None, 0, 0))
    actual, compiled = each(model, xs, labels), rn.compile(each)(model, xs, labels)
    for name, _ in model.named_parameters():
        assert not actual[name].requires_grad
        expected = rn.stack([rn.grad(loss)(model, x, y)[name] for x, y in zip(xs, labels, strict=True)])
        same(actual[name], expected)
        same(compiled[name], expected)
    with pytest.raises(LevelError, match=r"\.grad' is assigned a value that differs"):
        rn.vmap(lambda x, y: loss(model, x, y).backward())(xs, labels)
    rn.vmap(lambda x, y: loss(model, x, y))(xs, labels).sum().backward()
    total = rn.grad(lambda m: sum(loss(m, x, y) for x, y in zip(xs, labels, strict=True)))(model)
    np.testing.assert_allclose(model[0].weight.grad.numpy(), total["0.weight"].numpy(), rtol=1e-5, atol=1e-6)


def test_convolutions_of_each_kernel() -> None:
    rng = np.random.default_rng(4)
    x, w = rn.asarray(rng.normal(size=(3, 2, 2, 6, 6))), rn.asarray(rng.normal(size=(3, 4, 2, 3, 3)))

    def f(x: rn.Tensor, w: rn.Tensor) -> rn.Tensor:
        result: rn.Tensor = ops.conv(x, w, padding=1)
        return result

    same(rn.vmap(f)(x, w), looped(f, x, w))
    same(rn.vmap(f, (None, 0))(x[0], w), looped(lambda w: f(x[0], w), w))
    gradient = rn.grad(lambda w, x: rn.square(f(x, w)).sum())
    same(rn.vmap(gradient, (None, 0))(w[0], x), looped(lambda x: gradient(w[0], x), x))
