"""Test eager checkpoints of compiled functions: the second run reads what the first one read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.nn import functional as F

from .programs import agree, bits, gradients, leaf, numbers, parameter

pytestmark = pytest.mark.suite

Compiles = Callable[[Callable[..., Any]], Callable[..., Any]]


def random_numbers(compiles: Compiles) -> Any:
    w, f, found = parameter(1, 8), None, []
    f = compiles(lambda x: F.dropout(x * w) * rn.rand((8,)))
    rn.manual_seed(0)
    for i in range(4):
        x = leaf(i, 8)
        out = rn.checkpoint(f)(x) + rn.checkpoint(lambda x: f(x).sin() + f(x))(x)
        out.sum().backward()
        found += [out, x.grad, w.grad, rn.rand((2,))]
    return found


def statistics_of_batches(compiles: Compiles) -> Any:
    rn.manual_seed(0)
    norm = nn.BatchNorm1d(3, momentum=None)
    f, found = compiles(lambda x: norm(x) * norm.running_mean), []
    for i in range(3):
        x = leaf(i, 4, 3)
        rn.checkpoint(f)(x).sum().backward()
        found += [x.grad, norm.running_mean, norm.running_var, *gradients(list(norm.parameters()))]
    return [np.asarray(x) for x in found]


def a_variable_that_counts(compiles: Compiles) -> Any:
    count, found = rn.Variable(np.zeros((), np.float32)), []

    def function(x: Any) -> Any:
        count.assign(count + 1)
        return x * x * count

    f = compiles(function)
    for i in range(4):
        x = leaf(i, 3)
        rn.checkpoint(f, x).sum().backward()
        found += [x.grad, np.asarray(count)]
    return found


def one_in_another(compiles: Compiles) -> Any:
    w = parameter(1, 8)
    f = compiles(lambda x: F.dropout(x * w).sin())
    g, found = rn.checkpoint(lambda x: rn.checkpoint(f)(f(x))), []
    rn.manual_seed(0)
    for i in range(3):
        x = leaf(i, 8)
        g(x).sum().backward()
        found += [x.grad, w.grad]
    return found


@pytest.mark.parametrize("run", [random_numbers, statistics_of_batches, a_variable_that_counts, one_in_another])
def test_same_gradients(run: Callable[[Compiles], Any]) -> None:
    agree(run)


def test_a_snapshot_of_what_a_program_reads() -> None:
    w = parameter(1, 3)
    f = rn.compile(lambda x: x * w)
    for _ in range(3):
        assert bits(rn.snapshot(lambda: f(numbers(0, 3)).detach())) == bits((numbers(0, 3) * w).detach())


@pytest.mark.parametrize("compiles", [rn.compile, lambda f: f], ids=["compiled", "eager"])
@pytest.mark.parametrize("several", [False, True])
def test_arguments_that_get_another_value(compiles: Compiles, several: bool) -> None:
    """Gradients are taken at the values that the function was called with."""

    def gradient(wrap: Callable[..., Any]) -> Any:
        x = leaf(1, 3)
        y = x * 1
        f = wrap(lambda y: (y * y, y.sin()) if several else y * y * y)
        out = compiles(lambda y: f(y))(y)
        y[...] = 0.5
        sum(o.sum() for o in (out if several else [out])).backward()
        return x.grad

    assert bits(gradient(rn.checkpoint)) == bits(gradient(lambda f: f))
