"""Test cotangents of compiled results that come from outside: seeds, hooks and rules in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.autograd import Function, grad
from runnel.core.errors import GradientError

from .programs import agree, bits, leaf, numbers, parameter

pytestmark = pytest.mark.suite

Compiles = Callable[[Callable[..., Any]], Callable[..., Any]]
DTYPES = (rn.float64, rn.float16, rn.bfloat16, rn.int32, rn.bool, rn.complex64)


class Doubled(Function):
    """A rule that gives its cotangent in another dtype."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g.double()


def seeds_of_other_dtypes(compiles: Compiles) -> Any:
    """PyTorch gives gradients the dtype of what they are of, too."""
    found = []
    for dtype in DTYPES:
        x, w = leaf(1, 3), parameter(2, 3)
        of_both, of_parameters = compiles(lambda x, w=w: x * w), compiles(lambda x, w=w: x * w)
        of_both(x).backward(rn.asarray([1, 2, 0]).astype(dtype))
        found += [x.grad, w.grad, *grad(of_both(x), [x, w], rn.ones(3).astype(dtype))]
        w.grad = None
        of_parameters(numbers(3, 3)).backward(rn.ones(3).astype(dtype))
        found += [w.grad]
    assert all(g.dtype is rn.float32 for g in found)
    return found


def a_seed_for_complex_results(compiles: Compiles) -> Any:
    z = rn.asarray(np.array([1 + 2j, 3j], np.complex64)).requires_grad_()
    compiles(lambda z: z * z)(z).backward(rn.ones(2, dtype=rn.float64))
    assert z.grad.dtype is rn.complex64
    return z.grad


def seeds_that_lie_otherwise(compiles: Compiles) -> Any:
    x = leaf(1, 3, 4)
    f = compiles(lambda x: x * x)
    for seed in (numbers(2, 4, 3).T, numbers(3, 1).expand(3, 4), numbers(4, 6, 4)[::2], numbers(5, 3, 4).flip(0)):
        f(x).backward(seed)
    return x.grad


def rules_behind(compiles: Compiles) -> Any:
    x, w = leaf(1, 3), parameter(2, 3)
    Doubled.apply(compiles(lambda x: x * w)(x)).sum().backward()
    return [x.grad, w.grad]


def rules_inside(compiles: Compiles) -> Any:
    x, w = leaf(1, 3), parameter(2, 3)
    compiles(lambda x: Doubled.apply(x) * Doubled.apply(w))(x).sum().backward()
    v = parameter(3, 3)
    compiles(lambda: Doubled.apply(v))().sum().backward()
    assert v.grad.dtype is w.grad.dtype is x.grad.dtype is rn.float32
    return [x.grad, w.grad, v.grad]


@pytest.mark.parametrize(
    "run", [seeds_of_other_dtypes, a_seed_for_complex_results, seeds_that_lie_otherwise, rules_behind, rules_inside]
)
def test_same_gradients(run: Callable[[Compiles], Any]) -> None:
    agree(run)


@pytest.mark.parametrize("compiles", [rn.compile, lambda f: f], ids=["compiled", "eager"])
def test_a_hook_that_changes_the_dtype(compiles: Compiles) -> None:
    x = leaf(1, 3)
    out = compiles(lambda x: x * x)(x)
    out.register_hook(lambda g: g.double())
    with pytest.raises(GradientError, match=r"a gradient of dtype .*float64 for one of dtype .*float32"):
        out.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 1)])
def test_where_a_parameter_is_gone(shape: tuple[int, ...]) -> None:
    """Gradients of what is still there equal the whole tape's."""

    def run(compiles: Compiles) -> Any:
        found = []
        for other in range(3):
            x, w, v = leaf(1, *shape), parameter(2, *shape), parameter(3, *shape)
            out = compiles(lambda x, w=w, v=v: (x * w).sin() * v + x.sum() * w)(x)
            kept = (w, v)[other : other + 1]
            del w, v
            if other == 2:
                found += grad((out**2).sum(), [x], create_graph=True)
            else:
                (out**2).sum().backward()
                found += [x.grad, *(p.grad for p in kept)]
        return found

    assert bits(run(rn.compile)) == bits(run(lambda function: function))
