"""Networks as plain Python: functions of arrays with loops, recursion, closures, indices and joints, under ``grad``;
and networks whose shape differs from step to step."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import data, nn
from runnel.nn import functional as F
from tests.data.real import folder_of


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_gradients_pass_through_recursion_closures_indices_and_joints() -> None:
    def power(x: Any, n: int) -> Any:
        return x if n == 1 else x * power(x, n - 1)

    def halves(x: Any) -> Any:
        """The sum of powers of both halves, by recursion over the array."""
        if x.shape[0] == 1:
            return power(x[0], 3)
        middle = x.shape[0] // 2
        joined = rn.concat([x[middle:], x[:middle]])
        return halves(joined[:middle]) + halves(joined[middle:])

    scale = rn.asarray(2.0)

    def loss(x: Any) -> Any:
        total = rn.zeros(())
        for i in range(3):
            total = total + scale * halves(x) * (i + 1)
        return total

    x = rng().standard_normal(8).astype(np.float32)
    np.testing.assert_allclose(rn.grad(loss)(rn.asarray(x)).numpy(), 36 * x**2, rtol=1e-5)
    np.testing.assert_allclose(rn.compile(rn.grad(loss))(rn.asarray(x)).numpy(), 36 * x**2, rtol=1e-5)


def test_networks_of_another_depth_at_each_step_learn() -> None:
    rn.manual_seed(0)
    first, middle, last = nn.Linear(2, 16), nn.Linear(16, 16), nn.Linear(16, 1)
    parameters = [p for layer in (first, middle, last) for p in layer.parameters()]
    optimizer = rn.optim.Adam(parameters, lr=0.01)
    depths, generator = set(), rng()
    points = generator.uniform(-1, 1, (64, 2)).astype(np.float32)
    truth = rn.asarray(np.sin(3 * points[:, :1]) * points[:, 1:])
    losses = []
    for _ in range(150):
        depth = int(generator.integers(0, 4))
        depths.add(depth)
        hidden = rn.tanh(first(rn.asarray(points)))
        for _ in range(depth):
            hidden = rn.tanh(middle(hidden))
        loss = F.mse_loss(last(hidden), truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert depths == {0, 1, 2, 3}
    assert np.mean(losses[-20:]) < np.mean(losses[:20]) / 3


def test_trees_are_networks() -> None:
    """Backwards through a function that calls itself on the branches of a tree."""
    Tree = Any
    leaf, join = rn.Parameter(np.ones(3, np.float32)), rn.Parameter(np.full((3, 6), 0.5, np.float32))

    def value(tree: Tree) -> Any:
        if isinstance(tree, int):
            return leaf * float(tree)
        return join @ rn.concat([value(branch) for branch in tree])

    value(((1, 2), (3, (4, 5)))).sum().backward()
    heights = {1: 2, 2: 2, 3: 2, 4: 3, 5: 3}  # a join passes on the sum of three slopes, halved
    np.testing.assert_allclose(leaf.grad.numpy(), [sum(n * 1.5**height for n, height in heights.items())] * 3)
    assert join.grad.shape == (3, 6)


def linear(weights: list[Any], x: Any) -> Any:
    return x @ weights[0] + weights[1]


def perceptron(weights: list[Any], x: Any) -> Any:
    for w, b in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        x = F.relu(x @ w + b)
    return linear(weights[-2:], x)


def test_a_straight_line_is_found() -> None:
    generator = rng()
    x = generator.standard_normal((506, 13)).astype(np.float32)
    y = x @ generator.standard_normal((13, 1)).astype(np.float32) + 20
    weights = [rn.zeros((13, 1)), rn.zeros((1,))]

    def loss(weights: list[Any], x: Any, y: Any) -> Any:
        return F.mse_loss(linear(weights, x), y)

    both = rn.value_and_grad(loss)
    losses = []
    for _ in range(30):
        value, slopes = both(weights, rn.asarray(x), rn.asarray(y))
        weights = [w - 0.1 * g for w, g in zip(weights, slopes, strict=True)]
        losses.append(value.item())
    assert losses[0] > 366 and losses[-1] < 1


@pytest.mark.usefixtures("usual_effort")
@pytest.mark.parametrize(
    ("network", "sizes", "rate", "epochs", "least"),
    [(linear, (784, 10), 0.5, 4, 0.915), (perceptron, (784, 64, 10), 0.3, 10, 0.97)],
)
def test_digits_are_recognized(network: Any, sizes: tuple[int, ...], rate: float, epochs: int, least: float) -> None:
    """The accuracies of the models in Knet's introduction."""
    digits = data.mnist(folder_of("mnist"))
    generator = rng()
    weights: list[Any] = []
    for shape in itertools.pairwise(sizes):
        weights += [rn.asarray(0.1 * generator.standard_normal(shape).astype(np.float32)), rn.zeros(shape[1:])]

    @rn.compile
    def step(weights: list[Any], x: Any, y: Any) -> list[Any]:
        slopes = rn.grad(lambda weights: F.cross_entropy(network(weights, x), y))(weights)
        return [w - rate * g for w, g in zip(weights, slopes, strict=True)]

    for _ in range(epochs):
        order = generator.permutation(len(digits.train_y))
        for part in order.reshape(-1, 100):
            weights = step(weights, rn.asarray(digits.train_x[part]), rn.asarray(digits.train_y[part]))
    answers = network(weights, rn.asarray(digits.test_x)).numpy().argmax(1)
    assert (answers == digits.test_y).mean() >= least
