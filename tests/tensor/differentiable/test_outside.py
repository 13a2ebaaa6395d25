"""Test tensors from outside that require a gradient, by every way in which a function reaches them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops
from runnel.core.errors import CaptureWarning, GradientError, SideEffectError
from tests.tensor.differentiable.programs import agree, bits, gradients, leaf, numbers, parameter, programs

Compiles = Callable[[Callable[..., Any]], Callable[..., Any]]


class Holder:
    """An object of the user's with a tensor in it."""

    def __init__(self, tensor: rn.Tensor) -> None:
        self.tensor = tensor
        self.last: Any = None


def in_a_closure(compiles: Compiles) -> Any:
    w, x = leaf(1, 4, 4), leaf(0, 2, 4)
    f = compiles(lambda x: ops.tanh(x @ w).sum())
    (f(x) + f(x * 2.0) + w.sum()).backward()
    return gradients([w, x])


def with_a_tape_of_its_own(compiles: Compiles) -> Any:
    w, x = parameter(1, 4), leaf(0, 4)
    y = ops.exp(w) * x
    f = compiles(lambda z: (y * z * y).sum())
    a, b = f(x), f(y)
    (a * b + y.sum()).backward()
    return gradients([w, x])


def in_lists_and_attributes(compiles: Compiles) -> Any:
    parts, holder = [leaf(i, 3) for i in range(3)], Holder(leaf(5, 3))
    f = compiles(lambda reference, x: (ops.concat(reference) * ops.concat([x, x, holder.tensor])).sum())
    (f(parts, parts[1]) + f(list(reversed(parts)), holder.tensor)).backward()
    return gradients([*parts, holder.tensor])


def another_one_at_each_call(compiles: Compiles) -> Any:
    holder, results = Holder(leaf(0, 3)), []
    f = compiles(lambda x: (holder.tensor * holder.tensor * x).sum())
    for i in range(4):
        holder.tensor = leaf(i, 3) if i % 2 else leaf(i, 3) * 2.0
        at = leaf(9, 3)
        f(at).backward()
        results += [holder.tensor.grad, at.grad]
    return results


def handles_of_one_node_and_of_two(compiles: Compiles) -> Any:
    results: list[Any] = []
    f = compiles(lambda a, b: (a * b * b).sum())
    for same in (True, False, True):
        x, z = leaf(0, 3), leaf(1, 3)
        y = x * 1.0
        other = (y if same else z * 1.0).handle()
        (f(y, other) + (y * y).sum()).backward()
        results += [x.grad, z.grad]
    return results


def written_before(compiles: Compiles) -> Any:
    x = leaf(0, 4)
    y = x * 2.0
    saved = (y * y).sum()
    y[1] = 7.0
    f = compiles(lambda y: (y * y * y).sum())
    (f(y) + saved + y.sum()).backward()
    return x.grad


def returned_as_they_are(compiles: Compiles) -> Any:
    x, w = leaf(0, 4), leaf(1, 4)
    f = compiles(lambda x: {"same": x, "other": w, "both": (x * w,)})
    actual = f(x)
    assert actual["same"] is x
    (actual["same"] * actual["other"] * actual["both"][0]).sum().backward()
    return gradients([x, w])


def stored_by_an_effect(compiles: Compiles) -> Any:
    holder, x = Holder(leaf(1, 3)), leaf(0, 3)

    def function(x: Any) -> Any:
        holder.last = ops.sin(x) * holder.tensor
        return (holder.last * x).sum()

    f = compiles(function)
    total = f(x)
    for _ in range(2):
        total = total + f(x) * holder.last.sum()
    total.backward()
    return gradients([x, holder.tensor])


def gradients_inside(compiles: Compiles) -> Any:
    x, w = leaf(0, 3), leaf(1, 3)
    f = compiles(lambda x: rn.grad(lambda z: (z * z * w * x).sum())(x))
    f(x).sum().backward()
    return gradients([x, w])


def accumulated_inside(compiles: Compiles) -> Any:
    x, w = leaf(0, 3), leaf(1, 3)

    def function(x: Any) -> Any:
        (x * x * w).sum().backward()
        return (x * w * w).sum()

    f = compiles(function)
    for i in range(5):
        f(x).backward()
        if i == 3:
            w.grad = None
    return gradients([x, w])


@pytest.mark.parametrize(
    "run",
    [
        in_a_closure, with_a_tape_of_its_own, in_lists_and_attributes, another_one_at_each_call,
        handles_of_one_node_and_of_two, written_before, returned_as_they_are, stored_by_an_effect, gradients_inside,
        accumulated_inside,
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_same_bits(run: Callable[[Compiles], Any]) -> None:
    agree(run)


def test_a_trace_leaves_the_tape_outside_as_it_is() -> None:
    x = leaf(0, 3)
    y = x * 3.0

    def function() -> Any:
        (y * y).sum().backward(retain_graph=True)
        return y * 1.0

    f = rn.compile(function)
    with pytest.warns(CaptureWarning, match="backward.. inside reaches 'y'"):
        f()
    assert not programs(f)
    assert np.allclose(x.grad, 18.0 * x.numpy())
    y.sum().backward()


def test_higher_orders_of_captured_tensors() -> None:
    def second(compiles: Compiles) -> Any:
        w, x = leaf(1, 3), leaf(0, 3)
        f = compiles(lambda x: {"loss": (w * w * x * x * x).sum()})
        f(x)["loss"].backward(create_graph=True)
        first = x.grad
        assert first is not None
        w.grad = x.grad = None
        (first * first).sum().backward()
        return gradients([w, x])

    with pytest.warns(CaptureWarning, match="op by op"):
        actual = second(rn.compile)
    assert bits(actual) == bits(second(lambda function: function))


def test_the_tape_of_a_tensor_from_outside_is_not_let_go() -> None:
    y = leaf(0, 3) * 2.0
    with pytest.raises(SideEffectError, match="detach_"):
        rn.compile(lambda: y.detach_() * 2.0)()
    assert y.requires_grad
    assert not y.is_traced


def test_no_gradient_where_none_is_required() -> None:
    w, x = numbers(1, 3), leaf(0, 3)
    f = rn.compile(lambda x: (w * x).sum())
    f(x).backward()
    assert w.grad is None
    assert bits([x.grad]) == bits([w])


def test_what_no_backward_pass_can_compute_runs() -> None:
    layer = nn.Linear(2, 2)

    def f(x: rn.Tensor) -> rn.Tensor:
        return rn.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, rn.tanh(layer(c[1]))), (0, x))[1]

    x = rn.ones((1, 2))
    compiled = rn.compile(f)
    with pytest.warns(CaptureWarning, match=r"require a gradient, but \[while_loop\] has no gradient"):
        result = compiled(x)
    assert result.tolist() == f(x).tolist()
    with pytest.raises(GradientError, match="while_loop"):
        result.sum().backward()
    with rn.no_grad():
        assert compiled(x).tolist() == f(x).tolist()
        assert compiled.program(x)
