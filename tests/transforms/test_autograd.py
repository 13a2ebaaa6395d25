"""``rn.autograd``: gradients along the tape, and computations with custom derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import GradientError


class Product(rn.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, factor: float) -> Any:
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        return x * y * factor, x + y

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y * ctx.factor + h, g * x * ctx.factor + h, None


class Cube(rn.autograd.Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x * x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def leaf(*values: float) -> rn.Tensor:
    return rn.tensor(list(values), requires_grad=True)


def test_gradients_of_several_outputs_by_several_inputs() -> None:
    x, y, p = leaf(1.0, 2.0), leaf(3.0, 4.0), rn.nn.Parameter(np.float32(2.0))
    z = x * y
    by_x, by_z, by_p = rn.autograd.grad([(z * p).sum(), x.sum()], [x, z, p])
    assert (by_x.tolist(), by_z.tolist(), by_p.item()) == ([7.0, 9.0], [2.0, 2.0], 11.0)
    assert x.grad is None and p.grad is None


def test_an_input_that_leads_to_another_one() -> None:
    x = leaf(2.0)
    y = x * x
    z = y * x
    assert [g.item() for g in rn.autograd.grad(z, [x, y, z])] == [12.0, 2.0, 1.0]


def test_seeds_and_derivatives_of_higher_order() -> None:
    x = leaf(2.0, 3.0)
    (first,) = rn.autograd.grad(x**3, x, rn.asarray([1.0, 10.0]), create_graph=True)
    assert first.tolist() == [12.0, 270.0]
    (second,) = rn.autograd.grad(first.sum(), x)
    assert second.tolist() == [12.0, 180.0]


def test_the_tape_is_freed_unless_it_is_kept() -> None:
    x = leaf(2.0)
    y = (x * x).sum()
    rn.autograd.grad(y, x, retain_graph=True)
    rn.autograd.grad(y, x)
    with pytest.raises(GradientError, match="freed"):
        rn.autograd.grad(y, x)


def test_inputs_that_were_not_used() -> None:
    x, y = leaf(2.0), leaf(1.0)
    with pytest.raises(GradientError, match="do not depend on input 1"):
        rn.autograd.grad((x * 2).sum(), [x, y])
    assert rn.autograd.grad((x * 2).sum(), [x, y], allow_unused=True)[1] is None
    assert rn.autograd.grad((x * 2).sum(), [x, y], materialize_grads=True)[1].tolist() == [0.0]
    with pytest.raises(GradientError, match="require a gradient"):
        rn.autograd.grad((x * 2).sum(), rn.ones(1))
    with pytest.raises(GradientError, match="must have a seed for each"):
        rn.autograd.grad([x * 2, x], x, [rn.ones(1)])


def test_backward_of_several_tensors() -> None:
    x = leaf(2.0)
    y = x * x
    rn.autograd.backward([y, y * 2], [rn.ones(1), rn.ones(1)])
    assert x.grad is not None and x.grad.tolist() == [12.0]


def test_a_function_of_several_results() -> None:
    x, y = leaf(1.0, -2.0), leaf(0.5, 4.0)
    product, total = Product.apply(x, y, 2.0)
    assert product.tolist() == [1.0, -16.0]
    (product.sum() + (total * total).sum()).backward()
    assert x.grad is not None and x.grad.tolist() == [4.0, 12.0]
    assert y.grad is not None and y.grad.tolist() == [5.0, 0.0]
    assert not Product.apply(rn.ones(1), rn.ones(1), 1.0)[0].requires_grad


def test_a_derivative_is_differentiated() -> None:
    x = leaf(2.0)
    (first,) = rn.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = rn.autograd.grad(first.sum(), x)
    assert (first.item(), second.item()) == (12.0, 12.0)


def test_functions_in_compiled_functions_and_transforms() -> None:
    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        return rn.grad(lambda x: Cube.apply(x).sum())(x)

    x = rn.asarray([1.0, 2.0])
    assert step(x).tolist() == [3.0, 12.0]
    assert rn.vmap(rn.grad(lambda x: Cube.apply(x)))(x).tolist() == [3.0, 12.0]


def test_results_without_a_gradient() -> None:
    class WithPlace(rn.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            doubled = x * 2
            ctx.mark_non_differentiable(doubled)
            return x * 3, doubled

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g * 3

    x = leaf(1.0)
    tripled, doubled = WithPlace.apply(x)
    assert tripled.requires_grad and not doubled.requires_grad


def test_a_backward_with_too_few_cotangents_is_reported() -> None:
    class Short(rn.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    with pytest.raises(GradientError, match="must return 2 cotangents"):
        Short.apply(leaf(1.0), leaf(2.0)).sum().backward()
    with pytest.raises(NotImplementedError, match="must define forward"):
        rn.autograd.Function.apply(leaf(1.0))
