"""Test which derivatives of compiled functions can be differentiated again: the same as in eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.autograd import grad
from runnel.nn import functional as F

from .programs import agree, leaf, numbers, parameter

pytestmark = pytest.mark.suite

Compiles = Callable[[Callable[..., Any]], Callable[..., Any]]


def dependent(derivatives: Any) -> list[Any]:
    """Of each whether it needs a gradient, beside itself."""
    return [(x, None if x is None else np.array(x.requires_grad)) for x in derivatives]


def linear_layer(compiles: Compiles) -> Any:
    layer = nn.Linear(3, 2)
    layer.weight, layer.bias = parameter(1, 2, 3), parameter(2, 2)
    out = compiles(layer)(leaf(3, 4, 3))
    return dependent(grad(out.sum(), [layer.weight, layer.bias], create_graph=True))


def one_constant_among_others(compiles: Compiles) -> Any:
    x, y, w = leaf(1, 3), leaf(2, 3), parameter(3, 3)
    out = compiles(lambda x, y: (x * w).sin() + 3 * y)(x, y)
    first = grad(out.sum(), [x, y, w], create_graph=True)
    return dependent(first) + list(grad(sum((g * g).sum() for g in first), [x, w]))


def rows_of_a_table(compiles: Compiles) -> Any:
    table = parameter(1, 6, 3)
    out = compiles(lambda i: F.embedding(i, table).sum(axis=1))(rn.asarray([[1, 2, 2], [5, 1, 1]]))
    out.sum().backward(create_graph=True)
    return dependent([table.grad])


def a_cotangent_that_needs_a_gradient(compiles: Compiles) -> Any:
    x, v = leaf(1, 3), leaf(2, 3)
    (g,) = grad(compiles(lambda x: 3 * x)(x), [x], v, create_graph=True)
    return dependent([g]) + list(grad((g * g).sum(), [v]))


def of_a_function_that_is_differentiated(compiles: Compiles) -> Any:
    x, w = leaf(1, 3), parameter(2, 3)
    constant = compiles(lambda x: (3 * x).sum())
    square = compiles(lambda x: (w * x * x).sum())
    return dependent([rn.grad(constant)(x), rn.grad(square)(x), rn.grad(constant)(x.detach())])


def each_row(compiles: Compiles) -> Any:
    w, x = parameter(1, 3), numbers(2, 3)
    rows = rn.jacrev(compiles(lambda x: (x * w).sin()))(x)
    (rows * rows).sum().backward()
    return [*dependent([rows]), w.grad]


def a_pullback_that_is_mapped(compiles: Compiles) -> Any:
    w, x = parameter(1, 3), leaf(2, 3)
    _, pull = rn.vjp(compiles(lambda x: (x * w).sin()), x)
    rows = rn.vmap(lambda seed: pull(seed)[0])(rn.eye(3))
    return [*dependent([rows]), *grad((rows**2).sum(), [w, x])]


def gradients_in_a_map(compiles: Compiles) -> Any:
    x = leaf(2, 3)
    out = compiles(lambda x: x.sin())(x)
    rows = rn.vmap(lambda seed: grad(out, [x], seed, create_graph=True)[0])(rn.eye(3))
    return [*dependent([rows]), *grad((rows**2).sum(), [x])]


def a_tangent_of_a_pullback(compiles: Compiles) -> Any:
    w, x = parameter(1, 3), numbers(2, 3)
    _, pull = rn.vjp(compiles(lambda x: (x * w).sin()), x)
    _, tangent = rn.jvp(lambda seed: pull(seed)[0], (numbers(3, 3),), (numbers(4, 3),))
    return [*dependent([tangent]), *grad((tangent**2).sum(), [w])]


@pytest.mark.parametrize(
    "run",
    [
        linear_layer,
        one_constant_among_others,
        rows_of_a_table,
        a_cotangent_that_needs_a_gradient,
        of_a_function_that_is_differentiated,
        each_row,
        a_pullback_that_is_mapped,
        gradients_in_a_map,
        a_tangent_of_a_pullback,
    ],
)
@pytest.mark.filterwarnings("ignore:.*are differentiated outside it")
def test_same_dependence(run: Callable[[Compiles], Any]) -> None:
    agree(run)


def test_constant_gradients_are_not_called_differentiated(recwarn: pytest.WarningsRecorder) -> None:
    """That they could be is found out without a word."""
    w = parameter(1, 3)
    rn.compile(lambda x: (x * w).sin())(numbers(2, 3)).sum().backward(create_graph=True)
    assert w.grad is not None and w.grad.requires_grad
    assert not recwarn.list
