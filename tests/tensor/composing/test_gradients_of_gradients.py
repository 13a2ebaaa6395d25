"""A gradient needs a gradient: the same at every call, op by op and as a program, and as PyTorch has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import runnel as rn
from runnel.graph.node import Result
from runnel.nn import functional
from runnel.ops.elementwise.arithmetic import relu_p
from runnel.ops.elementwise.comparison import le_p

NEEDED: dict[str, tuple[Callable[[rn.Tensor], Any], bool]] = {
    "relu6": (functional.relu6, True),
    "relu": (functional.relu, True),
    "hardsigmoid": (functional.hardsigmoid, True),
    "elu": (functional.elu, True),
    "gelu": (functional.gelu, True),
    "mse_loss": (lambda x: functional.mse_loss(x, rn.zeros(3)), True),
    "mean": (rn.mean, False),
    "clip": (lambda x: rn.clip(x, 0, 1), False),
    "dot": (lambda x: functional.linear(x, rn.ones((2, 3))), False),
}


@pytest.mark.parametrize("name", NEEDED)
def test_the_same_at_every_call(name: str) -> None:
    function, expected = NEEDED[name]
    needed = []
    for _ in range(5):
        x = rn.tensor([1.0, -2.0, 7.0], requires_grad=True)
        (g,) = rn.autograd.grad(function(x).sum(), x, create_graph=True)
        needed.append(g.requires_grad)
    assert needed == [expected] * 5


@pytest.mark.parametrize("name", ["relu", "relu6"])
def test_second_derivatives_of_what_is_straight_are_0(name: str) -> None:
    for _ in range(4):
        x = rn.tensor([0.0, -2.0, 3.0, 6.0, 8.0], requires_grad=True)
        (g,) = rn.autograd.grad(getattr(functional, name)(x).sum(), x, create_graph=True)
        assert rn.autograd.grad((g * g).sum() + g.sum(), x)[0].tolist() == [0, 0, 0, 0, 0]


def test_a_gradient_of_relu_that_is_not_recorded_asks_only_which_elements_are_0() -> None:
    """Otherwise a backward program would keep the elements, which are many times as many bytes."""
    gradient = rn.compile(rn.grad(lambda x: functional.relu(x).sum()))
    nodes = gradient.program(rn.tensor([[1.0, -2.0]])).optimized.nodes
    readers = [node.op for node in nodes for x in node.inputs if isinstance(x, Result) and x.node.op is relu_p]
    assert readers == [le_p]
