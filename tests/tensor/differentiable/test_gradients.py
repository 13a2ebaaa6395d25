"""Test that gradients of compiled results are eager gradients, bit by bit, and come from programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops
from runnel.core.errors import GradientError
from runnel.tensor.differentiable.record import PartRecord
from tests.tensor.differentiable.programs import agree, bits, gradients, leaf, numbers, parameter, programs

Compiles = Callable[[Callable[..., Any]], Callable[..., Any]]


def mlp() -> nn.Module:
    rn.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def test_a_network_is_trained_to_the_same_bits() -> None:
    def run(compiles: Compiles) -> Any:
        net, labels = mlp(), rn.asarray(np.array([0, 1, 2, 1]))
        optimizer = rn.optim.Adam(net.parameters(), lr=0.01)
        loss_of = compiles(lambda x: ops.cross_entropy(net(x), labels))
        losses = []
        for i in range(4):
            optimizer.zero_grad()
            losses.append(loss_of(numbers(i, 4, 6)))
            losses[-1].backward()
            optimizer.step()
        return [x.detach() for x in losses], [p.value for p in net.parameters()]

    agree(run)


def test_it_runs_as_programs() -> None:
    net = mlp()
    f = rn.compile(lambda x: net(x).sum())
    loss = f(numbers(0, 4, 6))
    assert len(programs(f)) == 1
    assert isinstance(loss._record, PartRecord)
    with rn.no_grad():
        assert f(numbers(0, 4, 6))._record is None
    assert [p.captured.derivative is None for p in programs(f)] in ([False, True], [True, False])


def test_arguments_and_finite_differences() -> None:
    x = rn.asarray(np.random.default_rng(0).standard_normal(5)).requires_grad_()
    f = rn.compile(lambda x: (ops.tanh(x) * ops.exp(x * 0.3)).sum())
    f(x).backward()
    assert len(programs(f)) == 1
    values, h = x.numpy(), 1e-6
    for i in range(5):
        step = np.zeros(5)
        step[i] = h
        slope = (f(rn.asarray(values + step)).item() - f(rn.asarray(values - step)).item()) / (2 * h)
        assert slope == pytest.approx(np.asarray(x.grad)[i], rel=1e-6)


def test_which_arguments_are_differentiated_is_part_of_the_signature() -> None:
    f = rn.compile(lambda x, y: (x * x * y).sum())
    for expected_result in ((0,), (1,), (0, 1), (), (1,)):
        x, y = (numbers(i, 3) for i in range(2))
        for i in expected_result:
            (x, y)[i].requires_grad_()
        result = f(x, y)
        assert result.requires_grad is bool(expected_result)
        if expected_result:
            result.backward()
        expected = [2 * x.numpy() * y.numpy(), x.numpy() * x.numpy()]
        for i, (t, g) in enumerate(zip((x, y), expected, strict=True)):
            assert (t.grad is not None) is (i in expected_result)
            assert t.grad is None or np.allclose(t.grad, g)


def several_calls(compiles: Compiles) -> Any:
    net, x = mlp(), numbers(0, 4, 6)
    f = compiles(lambda x: net(x).sum())
    parts = [f(x * float(i)) for i in range(4)]
    (parts[0] * 2.0 + parts[3] + parts[1] * parts[2]).backward()
    return gradients(list(net.parameters()))


def a_cell_called_in_a_loop(compiles: Compiles) -> Any:
    w, u, b = parameter(1, 3, 4), parameter(2, 4, 4), parameter(3, 4)
    cell = compiles(lambda x, h: ops.tanh(x @ w + h @ u + b))
    h = rn.zeros(2, 4)
    for i in range(6):
        h = cell(numbers(i, 2, 3), h)
    (h * h).sum().backward()
    return gradients([w, u, b])


def between_eager_code(compiles: Compiles) -> Any:
    w, x = parameter(1, 4, 4), leaf(0, 2, 4)
    f = compiles(lambda x: (w * w).sum() + x @ w)
    y = f(ops.tanh(x @ w)) * w.sum()
    (f(y) + y).sum().backward()
    return gradients([w, x])


def twice_the_same_argument(compiles: Compiles) -> Any:
    x = leaf(0, 5)
    f = compiles(lambda a, b: a * b + ops.exp(a) * b)
    (f(x, x) * x).sum().backward()
    return x.grad


def several_results(compiles: Compiles) -> Any:
    w, x = parameter(1, 4, 4), leaf(0, 2, 4)

    def function(x: Any) -> Any:
        h = ops.tanh(x @ w)
        first = h * h
        return first, (h @ w).sum(), first.sum(axis=0) * w, h.argmax()

    f = compiles(function)
    collected = []
    for choose in (
        lambda a, b, c, i: b,
        lambda a, b, c, i: a.sum(),
        lambda a, b, c, i: c.sum() + b,
        lambda a, b, c, i: b + c.sum() * a.sum() + a.mean(),
        lambda a, b, c, i: (a.sum() + (x * w[0]).sum()) + b,
    ):
        w.grad = x.grad = None
        results = f(x)
        choose(*results).backward()
        collected += [w.grad, x.grad, results[3]]
    return collected


def all_states_of_a_recurrence(compiles: Compiles) -> Any:
    w, u, x = parameter(1, 3, 4), parameter(2, 4, 4), numbers(0, 5, 2, 3)

    def function(x: Any) -> Any:
        states, h = [], rn.zeros(2, 4)
        for i in range(5):
            h = ops.tanh(x[i] @ w + h @ u)
            states.append(h)
        return states

    f = compiles(function)
    states = f(x)
    (states[4].sum() + (states[1] * states[3]).sum() + states[2].mean()).backward()
    return gradients([w, u])


def inputs_that_are_results(compiles: Compiles) -> Any:
    w, x = parameter(1, 4), leaf(0, 4)
    f = compiles(lambda x: (x, x.reshape((2, 2)), x[1:], w * 1.0, x + w))
    a, b, c, d, e = f(x * 1.0)
    ((a * e).sum() + (b * b).sum() + (c * c * c).sum() + (d * a).sum()).backward()
    a, b, c, d, e = f(x)
    ((a * e).sum() + (b * b).sum() + (c * c * c).sum() + (d * a).sum()).backward()
    return gradients([w, x])


def the_same_result_twice(compiles: Compiles) -> Any:
    x = leaf(0, 4)

    def function(x: Any) -> Any:
        y = ops.sin(x)
        return y, y, {"again": y}

    a, b, c = compiles(function)(x)
    (a * b + c["again"] * a * a).sum().backward()
    return x.grad


def a_leaf_made_inside(compiles: Compiles) -> Any:
    x = leaf(0, 4)

    def function(x: Any) -> Any:
        built = rn.ones(4).requires_grad_()
        return built, (built * x * x).sum()

    result, total = compiles(function)(x)
    (total + (result * 3.0).sum()).backward()
    return [x.grad, result.grad]


def slices(compiles: Compiles) -> Any:
    x, w = leaf(0, 6, 4), parameter(1, 6)
    f = compiles(lambda x: (x[:3] * 2.0).sum() + (x[2:] * w[2:, None]).sum() + (w[:3] * w[3:]).sum())
    (f(x) + (x[1:4] * x[1:4]).sum() + w[4:].sum()).backward()
    return gradients([x, w])


def seeds(compiles: Compiles) -> Any:
    x = leaf(0, 3, 4)
    f = compiles(lambda x: ops.exp(x).T)
    f(x).backward(numbers(1, 3, 4).T)
    return x.grad


def dtypes(compiles: Compiles) -> Any:
    x, w = leaf(0, 8, 8), rn.Parameter(numbers(1, 8, 8).numpy().astype(rn.bfloat16.numpy))
    f = compiles(lambda x: ops.softmax(x.astype(rn.bfloat16) @ w, axis=-1).astype(rn.float32).max())
    f(x).backward()
    return gradients([x, w])


def a_scan(compiles: Compiles) -> Any:
    w, x = parameter(1, 3, 3), leaf(0, 5, 3)
    f = compiles(lambda x: rn.scan(lambda h, a: (ops.tanh(h @ w + a), h * a), rn.zeros(3), x)[1])
    (f(x) * f(x)).sum().backward()
    return gradients([x, w])


def a_checkpoint(compiles: Compiles) -> Any:
    w, x = parameter(1, 4, 4), leaf(0, 2, 4)
    block = rn.checkpoint(lambda h: ops.tanh(h @ w))
    f = compiles(lambda x: block(block(x)).sum() + (w * w).sum())
    (f(x) * f(x * 2.0)).backward()
    return gradients([x, w])


def a_checkpoint_of_several_results(compiles: Compiles) -> Any:
    x, w = leaf(0, 2, 3), parameter(1, 3, 3)

    def block(x: Any) -> Any:
        h = ops.tanh(x @ w)
        return h * 2.0, ops.exp(h), x.shape[0]

    f = compiles(lambda x: rn.checkpoint(block)(x))
    results = []
    for of in (slice(0, 2), slice(0, 1), slice(1, 2)):
        x.grad = w.grad = None
        sum((y * y).sum() for y in f(x)[of]).backward()
        results += gradients([x, w])
    return results


def a_custom_derivative(compiles: Compiles) -> Any:
    @rn.custom_vjp
    def clipped(x: Any) -> Any:
        return ops.clip(x, -0.5, 0.5)

    clipped.defvjp(lambda x: (ops.clip(x, -0.5, 0.5), x), lambda x, g: (g * ops.exp(-x * x),))
    x = leaf(0, 5)
    compiles(lambda x: clipped(x * 2.0).sum())(x).backward()
    return x.grad


def a_tensor_that_is_written_later(compiles: Compiles) -> Any:
    x, z = leaf(0, 4), numbers(1, 4)
    y = x * 2.0
    f = compiles(lambda y, z: (y * y * z).sum())
    result = f(y, z)
    y[0] = 100.0
    z[1] = 100.0
    result = result + f(y, z)
    y.mul_(3.0)
    result.backward()
    return x.grad


@pytest.mark.parametrize(
    "run",
    [
        several_calls, a_cell_called_in_a_loop, between_eager_code, twice_the_same_argument, several_results,
        all_states_of_a_recurrence, inputs_that_are_results, the_same_result_twice, a_leaf_made_inside, slices, seeds,
        dtypes, a_scan, a_checkpoint, a_checkpoint_of_several_results, a_custom_derivative,
        a_tensor_that_is_written_later,
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_same_bits(run: Callable[[Compiles], Any]) -> None:
    agree(run)


def test_backward_twice() -> None:
    x = leaf(0, 3)
    f = rn.compile(lambda x: (x * x).sum())
    result = f(x)
    result.backward(retain_graph=True)
    result.backward()
    assert np.allclose(x.grad, 4 * x.numpy())
    with pytest.raises(GradientError, match="freed"):
        result.backward()


def test_partial_use_leaves_the_rest_without() -> None:
    x, y = leaf(0, 3), leaf(1, 3)
    a, b = rn.compile(lambda x, y: (x * 2.0, y * 3.0))(x, y)
    a.sum().backward()
    assert y.grad is None
    b.sum().backward()
    assert bits([x.grad, y.grad]) == bits([rn.full(3, 2.0), rn.full(3, 3.0)])
