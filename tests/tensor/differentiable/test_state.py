"""Test state that changes between a forward and its backward, or in a forward, and second derivatives."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops
from runnel.core.errors import CaptureWarning, MemoryBudgetError
from runnel.tensor.kept_values import HOLDS
from tests.tensor.differentiable.programs import agree, bits, gradients, leaf, numbers, parameter, programs

Compiles = Callable[[Callable[..., Any]], Callable[..., Any]]


def variables_that_change_in_between(compiles: Compiles) -> Any:
    w, x = parameter(1, 4, 4), leaf(0, 2, 4)
    optimizer = rn.optim.SGD([w], lr=0.1)
    f = compiles(lambda x: ops.tanh(x @ w @ w).sum())
    double = compiles(lambda: w.assign(w * 2.0))
    saved, results = [f(x), f(x * 2.0)], []
    for change in (double, optimizer.step, lambda: w.assign(numbers(5, 4, 4)), lambda: w.mul_(0.5)):
        saved.append(f(x))
        w.grad = numbers(6, 4, 4)
        with rn.no_grad():
            change()
        w.grad = x.grad = None
        saved[-1].backward()
        results += gradients([w, x])
    w.grad = x.grad = None
    (saved[0] * saved[1]).backward()
    return [*results, *gradients([w, x]), w.value]


def batch_norm(compiles: Compiles) -> Any:
    rn.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2))
    f = compiles(lambda x: net(x).sum())
    losses = [f(numbers(i, 6, 4)) for i in range(3)]
    (losses[0] * losses[2]).backward()
    return [*gradients(list(net.parameters())), *net.state_dict().values()]


def dropout(compiles: Compiles) -> Any:
    rn.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 30), nn.Dropout(0.5), nn.Linear(30, 2))
    f = compiles(lambda x: net(x).sum())
    losses = [f(numbers(i, 6, 4)) for i in range(3)]
    losses[1].backward()
    (losses[0] * losses[2]).backward()
    return [*gradients(list(net.parameters())), rn.rand(3)]


def a_parameter_that_the_function_changes(compiles: Compiles) -> Any:
    w, x = parameter(1, 4), leaf(0, 4)

    def function(x: Any) -> Any:
        before = (w * w * x).sum()
        w.assign(w * 0.5)
        return before + (w * x * x).sum(), w * 3.0

    f = compiles(function)
    results = []
    for _ in range(3):
        w.grad = x.grad = None
        loss, after = f(x)
        (loss * after.sum() + (w * 2.0).sum()).backward()
        results += gradients([w, x])
    return [*results, w.value]


def transformed(compiles: Compiles) -> Any:
    w, x = parameter(1, 4, 4), numbers(0, 2, 4)
    f = compiles(lambda x: ops.tanh(x @ w).sum())
    value, gradient = rn.value_and_grad(f)(x)
    again, pull = rn.vjp(compiles(lambda x: ops.exp(x) * 2.0), x)
    g = compiles(lambda y: (y * y).sum())
    inside = compiles(lambda x: f(x) + g(x))
    g(x)
    return [value.detach(), gradient.detach(), again, *pull(numbers(3, 2, 4)), rn.grad(inside)(x).detach()]


@pytest.mark.parametrize(
    "run",
    [
        variables_that_change_in_between, batch_norm, dropout, a_parameter_that_the_function_changes, transformed,
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_same_bits(run: Callable[[Compiles], Any]) -> None:
    agree(run)


def test_holds_end_with_the_tape() -> None:
    w = parameter(1, 3)
    f = rn.compile(lambda x: (w * w * x).sum())
    gc.collect()
    before = len(HOLDS.now)
    first, second = f(numbers(0, 3)), f(numbers(1, 3))
    assert len(HOLDS.now) == before + 2
    first.backward()
    assert len(HOLDS.now) == before + 1
    del second
    assert len(HOLDS.now) == before
    assert HOLDS.writing == 0


def test_arrays_and_numbers_that_change_in_between() -> None:
    w, array = parameter(1, 3), np.ones(3, np.float32)
    f = rn.compile(lambda x, a: (w * w * x * a).sum())
    result = f(array, 2.0)
    array[:] = 7.0
    f(array, 3.0)
    result.backward()
    assert np.allclose(w.grad, 4 * w.numpy())


def test_residuals_go_with_the_result() -> None:
    f = rn.compile(lambda x: ops.exp(x).sum())
    x = leaf(0, 64, 64)
    result = f(x)
    saved = weakref.ref(result._record.call)  # type: ignore[union-attr]
    del result
    assert saved() is None


def test_what_runs_eagerly_says_so() -> None:
    x = leaf(0, 3)

    def function(x: Any) -> Any:
        (x * x).sum().backward(retain_graph=True)
        return x * 2.0

    f = rn.compile(function)
    with pytest.warns(CaptureWarning, match="backward.. inside reaches 'x'"):
        result = f(x * 1.0)
    result.sum().backward()
    assert not programs(f)
    assert np.allclose(x.grad, 2 * x.numpy() + 2)


@pytest.mark.suite
def test_memory_budget() -> None:
    w = parameter(1, 32, 32)

    def deep(x: Any) -> Any:
        for _ in range(24):
            x = ops.tanh(x @ w)
        return x.sum()

    x = leaf(0, 64, 32)
    deep(x).backward()
    expected = gradients([x, w])
    x.grad = w.grad = None
    f = rn.compile(deep, memory_budget=20 * x.nbytes)
    f(x).backward()
    assert bits(gradients([x, w])) == bits(expected)
    (program,) = programs(f)
    assert program.captured.recompute
    with pytest.raises(MemoryBudgetError):
        rn.compile(deep, memory_budget=64)(x)
