"""Programs that assign, against NumPy's assignment with derivatives: values, gradients and second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import GradientError
from tests.ops.indexing.checking import MODES, check

pytestmark = pytest.mark.suite


A = np.array([1.0, 2.0, 3.0])
Fill = Callable[[rn.Tensor], rn.Tensor]


def item(a: rn.Tensor) -> rn.Tensor:
    y = a * 2
    y[1] = y[1] * 3
    return y


def augmented(a: rn.Tensor) -> rn.Tensor:
    y = a * 2
    y[1] *= 3
    return y


def recurrence(a: rn.Tensor) -> rn.Tensor:
    y = a * 1.0
    for i in range(1, 3):
        y[i] = y[i] + y[i - 1]
    return y


def overlapping(a: rn.Tensor) -> rn.Tensor:
    y = a * 1.0
    y[1:] = y[:2] * 2
    return y


def augmented_slice(a: rn.Tensor) -> rn.Tensor:
    y = a * a
    y[1:] += a[:2]
    return y


def filled(a: rn.Tensor) -> rn.Tensor:
    y = rn.zeros(3, "float64")
    for i in range(3):
        y[i] = a[i] ** (i + 1)
    return y


def used_before(a: rn.Tensor) -> rn.Tensor:
    y = a * 2
    total = y.sum()
    y[0] = 0
    return y * total


def repeated(a: rn.Tensor) -> rn.Tensor:
    y = a * 1.0
    y[rn.asarray([0, 2, 0])] = a * a
    return y[rn.asarray([0, 0, 1, 2])]


def own_argument(a: rn.Tensor) -> rn.Tensor:
    a[0] = a[1] * a[2]
    a.mul_(2.0)
    return a


CASES: dict[str, tuple[Fill, Any]] = {
    "item": (item, [2, 6, 2]), "augmented": (augmented, [2, 6, 2]), "recurrence": (recurrence, [3, 2, 1]),
    "overlapping": (overlapping, [3, 2, 0]), "augmented slice": (augmented_slice, [3, 5, 6]),
    "filled": (filled, [1, 4, 27]), "used before": (used_before, [20, 44, 44]), "repeated": (repeated, [0, 5, 12]),
    "own argument": (own_argument, [0, 8, 6]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    function, expected = CASES[name]
    gradient = rn.grad(lambda a: function(a).sum())
    a = rn.asarray(A)
    assert gradient(a).tolist() == expected
    assert a.tolist() == A.tolist(), "grad() passes separate handles"
    if name != "own argument":  # a compiled function must not write to its caller's tensor, nor backward() to a leaf
        leaf = rn.tensor(A, requires_grad=True)
        function(leaf).sum().backward()
        assert leaf.grad is not None and leaf.grad.tolist() == expected
    assert rn.compile(lambda a: gradient(a))(a).tolist() == expected
    pulled = rn.vjp(lambda a: function(a).sum(), a)[1]
    assert [pulled(1.0)[0].tolist() for _ in range(2)] == [expected, expected]


@pytest.mark.parametrize("start", range(0, 60, 10))
def test_random_programs(start: int) -> None:
    for seed in range(start, start + 10):
        check(seed, second=seed % 2 == 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", [0, 1])
def test_random_programs_compiled(mode: str, seed: int) -> None:
    check(1000 + seed, mode, compiled=True, second=mode == "plain", length=5)


def test_a_loop_assigns_to_its_carry() -> None:
    def step(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        i, y = carry
        y[1:] = y[:2] * 0.5
        y[0] += 1.0
        return i + 1, y

    expected = A.copy()
    for _ in range(3):
        expected[1:] = expected[:2] * 0.5
        expected[0] += 1.0
    assert rn.while_loop(lambda c: c[0] < 3, step, (rn.asarray(0), rn.asarray(A)))[1].tolist() == expected.tolist()


def test_derivatives_of_its_own_see_the_values_of_the_time() -> None:
    @rn.custom_vjp
    def square(x: rn.Tensor) -> rn.Tensor:
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda saved, g: (2 * saved * g,))

    def function(a: rn.Tensor) -> rn.Tensor:
        y = a * 1.0
        z = square(y)
        y[0] = 10.0
        z[1] = z[0] * y[0]
        return (z * y).sum()

    assert rn.grad(function)(rn.asarray(A)).tolist() == [60, 10, 27]  # of 10·a₀² + 10·a₀²·a₁ + a₂³


def test_names_and_views_of_one_tensor() -> None:
    x = rn.asarray(A)
    views = (x, x[:], x[...], x.reshape(3), x.view(3), x.flatten(), x.detach(), x.expand(3), x.squeeze())
    copies = (x.clone(), x[[0, 1, 2]], x.roll(0))
    x[0] = 9.0
    x.add_(1.0)
    assert all(y.tolist() == [10.0, 3.0, 4.0] for y in views)
    for y in views:
        y[1] = -1.0
        x += 1.0
        assert all(z.tolist() == x.tolist() for z in views)
    assert all(y.tolist() == A.tolist() for y in copies)


def test_gradients_are_handles_of_their_own() -> None:
    a, b = rn.tensor(A, requires_grad=True), rn.tensor(A, requires_grad=True)
    (a + b).sum().backward()
    assert a.grad is not None and b.grad is not None
    a.grad.zero_()
    assert b.grad.tolist() == [1, 1, 1]
    actual = rn.grad(lambda a, b: (a + b).sum(), (0, 1))(a, b)
    actual[0].zero_()
    assert actual[1].tolist() == [1, 1, 1]


def test_leaves_change_without_a_tape_and_stay_leaves() -> None:
    w = rn.tensor(A, requires_grad=True)
    before = (w * w).sum()
    for change in (lambda: w.__setitem__(0, 1.0), lambda: w.mul_(2.0), lambda: w.__isub__(1.0)):
        with pytest.raises(GradientError, match=r"leaf.*no_grad"):
            change()
    assert w.tolist() == A.tolist()
    with rn.no_grad():
        w -= 1.0
        w[0] = 5.0
        w.mul_(2.0)
    assert w.tolist() == [10.0, 2.0, 4.0] and w.requires_grad
    after = (w * w).sum()
    before.backward()
    assert w.grad is not None and w.grad.tolist() == (2 * A).tolist(), "the tape has the value of its time"
    w.grad = None
    after.backward()
    assert w.grad is not None and w.grad.tolist() == [20.0, 4.0, 8.0]


def test_the_value_without_its_tape() -> None:
    w = rn.tensor(A, requires_grad=True)
    w.data.mul_(2.0)
    w.data[0] = 7.0
    w.data += 1.0
    assert w.tolist() == [8.0, 5.0, 7.0] and w.requires_grad and not w.data.requires_grad
    w.data = rn.asarray(A)
    assert w.tolist() == A.tolist() and w.data.clone().tolist() == A.tolist()
    h = w * 1.0
    h.data[0] = 100.0  # as under no_grad: gradients pass as if nothing had been written
    (h * h).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [200.0, 4.0, 6.0]


def test_detaching_in_place() -> None:
    w = rn.tensor(A, requires_grad=True)
    h = w * 2.0
    z = (h * h).sum()
    assert h.detach_() is h and not h.requires_grad
    z.backward()
    assert w.grad is not None and w.grad.tolist() == (8 * A).tolist()
