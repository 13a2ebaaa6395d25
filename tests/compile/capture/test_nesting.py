"""Functions within functions, gradients within and without, and values that are not there yet."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
from runnel.compile import compile
from runnel.core.errors import TracedValueError
from runnel.tensor import random
from tests.compile.capture.agreeing import same, tensor


def test_nested() -> None:
    factor = 2.0

    @compile
    def inner(x):
        return x * factor

    @compile
    def outer(x):
        return inner(x) + inner(x + 1)

    x = tensor(1, 2)
    for _ in range(3):
        assert outer(x).tolist() == [6, 10]
        assert inner(x).tolist() == [2, 4]
    factor = 3.0
    assert outer(x).tolist() == [9, 15]
    assert inner(x).tolist() == [3, 6]


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


def test_gradient_inside() -> None:
    w = rn.Variable([1.0, 2.0], requires_grad=True)

    @compile
    def step(x):
        w.grad = None
        loss = (w * w * x).sum()
        loss.backward()
        return loss, w.grad

    for _ in range(3):
        loss, grad = step(tensor(1, 3))
        assert (loss.item(), grad.tolist(), w.grad.tolist()) == (13, [2, 12], [2, 12])


def test_gradient_outside_of_an_argument() -> None:
    f = compile(lambda x: (x * x).sum())
    assert f(tensor(1, 2)).item() == 5
    for _ in range(3):
        x = tensor(1, 2).requires_grad_()
        f(x).backward()
        assert x.grad.tolist() == [2, 4]


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


def test_gradient_accumulates_as_in_eager() -> None:
    def step(w, x):
        loss = (w * w * x).sum()
        loss.backward()
        return loss

    a, b = (rn.Variable([1.0, 2.0], requires_grad=True) for _ in range(2))
    compiled = compile(step)
    for i in range(5):
        same(compiled(a, tensor(i, 1)), step(b, tensor(i, 1)))
        same(a.grad, b.grad)
        if i == 3:
            a.grad = b.grad = None


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


def test_printing_of_plain_text_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    f = compile(lambda x: (print("shape", x.shape), x + 1)[1])
    assert f(tensor(1)).item() == 2
    assert "shape (1,)" in capsys.readouterr().out


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
