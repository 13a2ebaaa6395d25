"""Test the results of compiled functions: structures, constants, Variables, handles."""

from __future__ import annotations

import numpy as np

import runnel as rn
from runnel.compile import compile
from tests.compile.capture.agreeing import tensor


def test_earlier_results_stay() -> None:
    f = compile(lambda x: x * 2)
    results = [f(tensor(i, i + 1)) for i in range(10)]
    for i, result in enumerate(results):
        assert result.tolist() == [2 * i, 2 * i + 2]


def test_alias_of_an_argument_does_not_see_the_next_call() -> None:
    f = compile(lambda x: x)
    a = f(tensor(1))
    b = f(tensor(2))
    assert (a.tolist(), b.tolist()) == ([1], [2])


def test_handles_of_variables_keep_their_value() -> None:  # lines 1 and 4
    v = rn.Variable([1.0])

    @compile
    def bump():
        v.assign(v + 1)

    handles = []
    for _ in range(5):
        handles.append(v.read())
        bump()
    assert [h.item() for h in handles] == [1, 2, 3, 4, 5]
    a, b = rn.Variable([1.0]), rn.Variable([2.0])

    @compile
    def swap():
        x, y = a.read(), b.read()
        a.assign(y)
        b.assign(x)

    for _ in range(3):
        swap()
    assert (a.item(), b.item()) == (2, 1)


def test_captured_tensors_after_writes() -> None:
    w = rn.asarray(np.arange(3, dtype=np.float32))
    w[0] = 5.0

    def fn(x: rn.Tensor) -> rn.Tensor:
        gradient = rn.grad(lambda x: (x * w * w[:].clone() * w.detach()).sum())(x)
        return gradient + rn.tensor(w) + rn.scan(lambda c, v: (c * w + w[...], c), x, None, length=2)[0]

    compiled = rn.compile(fn)
    for value in (7.0, 8.0):
        assert np.array_equal(compiled(rn.ones(3)).numpy(), fn(rn.ones(3)).numpy())
        w[1] = value
    assert compiled.statistics["traces"] == 1


def test_handles_made_outside_of_constants() -> None:
    zero = rn.zeros_like(rn.asarray(1.0))

    def fn(x: rn.Tensor) -> rn.Tensor:
        zero.add_(1.0)
        return x + zero

    f = rn.compile(fn)
    assert [f(rn.ones(2)).tolist() for _ in range(3)] == [[2, 2], [3, 3], [4, 4]]
    assert zero.item() == 3.0
