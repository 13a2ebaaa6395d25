"""Test functions within functions, gradients inside and outside, and values of traced tensors."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
from runnel.compile import compile
from runnel.core.errors import TracedValueError
from runnel.tensor import random
from tests.compile.capture.agreeing import tensor


def test_options_for_a_compiled_function() -> None:
    w = rn.Parameter(rn.ones(2))
    sgd = rn.optim.SGD([w], lr=0.5)

    def step(x):
        sgd.zero_grad()
        (w * x).sum().backward()
        sgd.step()

    class Holder:
        def run(self, x):
            return step(x)

    for compiled in (compile(step), compile(Holder().run)):
        again = compile(compiled, keep_grads=True, name="kept")
        again(tensor(1, 2))
        assert w.grad.tolist() == [1, 2]
        assert (again.name, again.explain(tensor(1, 2)).name) == ("kept", "kept")
        assert compile(again) is again
        compile(again, memory_budget="1GB")(tensor(3, 4))
        assert w.grad.tolist() == [3, 4]


def test_gradient_outside_of_a_variable() -> None:
    w = rn.Variable([1.0, 2.0], requires_grad=True)
    f = compile(lambda x: ((w * w * x).sum(), w * 3))
    for _ in range(3):
        w.grad = None
        loss, triple = f(tensor(1, 3))
        (loss + triple.sum()).backward()
        assert w.grad.tolist() == [5, 15]
    loss, _ = f(tensor(1, 3))
    w.grad = None
    w.assign(tensor(0, 0))
    loss.backward()
    assert w.grad.tolist() == [2, 12]  # by the values of the time


@pytest.mark.parametrize(
    "look",
    [
        lambda x: x.sum().item(),
        lambda x: float(x.sum()),
        lambda x: int(x.sum()),
        lambda x: 1 if x.sum() > 0 else 2,
        lambda x: bool(x.sum()),
        lambda x: f"{x.sum():.2f}",
        lambda x: np.asarray(x),
        lambda x: x.tolist(),
        lambda x: rn.zeros((int(x.sum()),)),
        lambda x: [1, 2, 3][x.sum().astype("int64")],
        lambda x: x == 1 or x,
    ],
)
def test_looking_at_a_value(look) -> None:
    with pytest.raises(TracedValueError, match=r"test_nesting\.py:"):
        compile(look)(tensor(1))


def test_a_caught_error_counts() -> None:
    def f(x):
        try:
            return x * float(x.sum())
        except Exception:
            return x

    with pytest.raises(TracedValueError):
        compile(f)(tensor(3))


def test_dropout() -> None:
    f = compile(lambda x: random.dropout(x, 0.5))
    x = rn.ones((64,))
    random.manual_seed(3)
    compiled = [f(x).tolist() for _ in range(5)]
    random.manual_seed(3)
    assert [random.dropout(x, 0.5).tolist() for _ in range(5)] == compiled
    assert compiled[0] != compiled[1]
    random.manual_seed(3)
    assert [(f(x) if i % 2 else random.dropout(x, 0.5)).tolist() for i in range(5)] == compiled
