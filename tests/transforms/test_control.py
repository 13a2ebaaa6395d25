"""``while_loop`` and ``cond``: eager and compiled alike; gradients of ``cond``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import DTypeError, GradientError, ShapeError, SideEffectError
from runnel.ops.control import cond_p, while_p
from runnel.tensor.tensor import Tensor


def f32(value: Any) -> Tensor:
    return rn.asarray(np.asarray(value, np.float32))


def collatz(n: Tensor) -> tuple[Tensor, Tensor]:
    def step(carry: Any) -> Any:
        n, count = carry
        return rn.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    return rn.while_loop(lambda c: c[0] > 1, step, (n, rn.asarray(np.int64(0))))  # type: ignore[no-any-return]


def test_while_loop_runs_until_it_is_done() -> None:
    compiled = rn.compile(collatz)
    for n, steps in ((1, 0), (2, 1), (6, 8), (27, 111), (97, 118)):
        start = rn.asarray(np.int64(n))
        assert [x.item() for x in collatz(start)] == [1, steps]
        assert [x.item() for x in compiled(start)] == [1, steps]
    nodes = compiled.program(rn.asarray(np.int64(6))).optimized.nodes
    assert [n.op for n in nodes].count(while_p) == 1


def test_while_loop_reads_and_assigns_outer_variables() -> None:
    total = rn.Variable(np.float32(0))
    limit = rn.Variable(np.float32(10))

    def body(x: Tensor) -> Tensor:
        total.assign(total + x)
        return x + 1.0

    def run(x: Tensor) -> Tensor:
        return rn.while_loop(lambda x: (total < limit) & (x < 100.0), body, x)  # type: ignore[no-any-return]

    assert run(f32(1)).item() == 5.0 and total.item() == 10.0
    total.assign(f32(0))
    assert rn.compile(run)(f32(3)).item() == 6.0 and total.item() == 12.0


def test_while_loop_on_arrays_and_its_refusals() -> None:
    def power(a: Tensor) -> Tensor:
        """The dominant direction of ``a``, by power iteration."""

        def step(carry: Any) -> Any:
            v, _ = carry
            w = a @ v
            w = w / rn.norm(w)
            return w, rn.max(rn.abs(w - v))

        start = rn.full_like(a[0], 1.0), rn.full_like(a[0, 0], 1.0)
        return rn.while_loop(lambda c: c[1] > 1e-6, step, start)[0]  # type: ignore[no-any-return]

    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    expected = np.linalg.eigh(a)[1][:, -1]
    for function in (power, rn.compile(power)):
        np.testing.assert_allclose(np.abs(function(rn.asarray(a)).numpy()), np.abs(expected), atol=1e-5)
    x = rn.tensor(a, requires_grad=True)
    with pytest.raises(GradientError, match=r"runnel\.scan"):
        power(x).sum().backward()
    with pytest.raises(DTypeError, match="a bool of shape"):
        rn.while_loop(lambda c: c, lambda c: c, f32(1))
    with pytest.raises(ShapeError, match="must keep its shape"):
        rn.while_loop(lambda c: rn.all(c < 1), lambda c: c[:1], rn.ones(2))
    with pytest.raises(ShapeError, match="must have at least one leaf"):
        rn.while_loop(lambda c: f32(1) < 0, lambda c: c, None)
    count = rn.Variable(np.float32(0))

    def condition(c: Tensor) -> Tensor:
        count.assign(count + 1)
        return c < 1.0

    with pytest.raises(SideEffectError, match="condition must not assign"):
        rn.while_loop(condition, lambda c: c + 1, f32(0))


def absolute(x: Tensor) -> Tensor:
    return rn.cond(x.sum() >= 0, lambda x: x * 2.0, lambda x: -x, x)  # type: ignore[no-any-return]


def test_cond_runs_one_of_two() -> None:
    compiled = rn.compile(absolute)
    for values, expected in (([1.0, 2.0], [2.0, 4.0]), ([1.0, -2.0], [-1.0, 2.0])):
        assert absolute(f32(values)).tolist() == expected
        assert compiled(f32(values)).tolist() == expected
    assert [n.op for n in compiled.program(f32([1, 2])).optimized.nodes].count(cond_p) == 1


def test_cond_assigns_in_one_branch() -> None:
    hits = rn.Variable(np.float32(0))
    scale = rn.Variable(np.float32(3))

    def hit(x: Tensor) -> Tensor:
        hits.assign(hits + 1.0)
        return x * scale

    def step(x: Tensor) -> Tensor:
        return rn.cond(x > 0, hit, lambda x: x, x)  # type: ignore[no-any-return]

    compiled = rn.compile(step)
    assert [compiled(f32(v)).item() for v in (1, -1, 2)] == [3.0, -1.0, 6.0]
    assert hits.item() == 2.0
    assert [step(f32(v)).item() for v in (1, -1)] == [3.0, -1.0] and hits.item() == 3.0


def test_the_predicate_of_cond_may_come_from_outside_as_it_is() -> None:
    switch, kept = rn.tensor(True), {"on": rn.tensor(False)}
    step = rn.compile(
        lambda on, x: [rn.cond(p, lambda x: x + 1, lambda x: x - 1, x) for p in (on, switch, kept["on"], ~on)]
    )
    for on in (True, False, True):
        assert [y.item() for y in step(rn.tensor(on), f32(5))] == [6 if on else 4, 6, 4, 4 if on else 6]
    assert step.statistics["traces"] == 1


def test_gradients_of_cond() -> None:
    w = rn.Variable(np.array([1.0, 2.0], np.float32), requires_grad=True)

    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        value, scaled = rn.cond(
            x.sum() > 0, lambda x: ((x * w * w).sum(), x * 3.0), lambda x: ((rn.sin(x) * w).sum(), x), x
        )
        return value + scaled[0], scaled

    def gradients(x: Tensor) -> tuple[Tensor, Tensor]:
        dx = rn.grad(lambda x: step(x)[0])(x)
        step(x)[0].backward()
        dw = w.grad
        w.grad = None
        return dx, dw

    for values in ([1.0, 2.0], [-1.0, -2.0]):
        x = f32(values)
        for eager, compiled in zip(gradients(x), rn.compile(gradients)(x), strict=True):
            np.testing.assert_allclose(eager.numpy(), compiled.numpy(), rtol=1e-6)
    dx, dw = rn.compile(gradients)(f32([1.0, 2.0]))
    assert dx.tolist() == [4.0, 4.0] and dw.tolist() == [2.0, 8.0]


def test_cond_in_a_scan_and_its_gradient() -> None:
    def f(c: Any, x: Any) -> Any:
        return rn.cond(x > 0, lambda c: c * x, lambda c: c + x, c), None

    x = rn.tensor(np.array([2.0, -1.0, 3.0], np.float32), requires_grad=True)
    last, _ = rn.scan(f, f32(1), x)
    assert last.item() == 3.0
    last.backward()
    assert x.grad.tolist() == [3.0, 3.0, 1.0]


def test_cond_that_does_not_fit() -> None:
    with pytest.raises(DTypeError, match="a bool of shape"):
        rn.cond(f32(1), lambda: 1, lambda: 2)


@pytest.mark.parametrize(
    ("other", "error", "told"),
    [
        (lambda x: x[:1], ShapeError, "leaf itself, must keep its shape; float32.2. became float32.1."),
        (lambda x: x.astype("int32"), DTypeError, "leaf itself, must keep its dtype; float32.2. became int32.2."),
        (lambda x: (x, x), ShapeError, "must keep its structure"),
        (lambda x: {"a": x}, ShapeError, "must keep its structure"),
        (lambda x: None, ShapeError, "must keep its structure"),
        (lambda x: 1, ShapeError, "must keep its shape"),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_cond_compares_its_functions_whichever_runs(
    other: Any, error: type[Exception], told: str, compiled: bool
) -> None:
    def f(x: Tensor) -> Any:
        return rn.cond(x.sum() > 0, lambda x: x, other, x)

    for x in (rn.ones(2), rn.ones(2)):  # not the first time alone
        with pytest.raises(error, match=f"the result.* {told}"):
            (rn.compile(f) if compiled else f)(x)
    with pytest.raises(error, match="the result"):
        f(-rn.ones(2))


def test_a_branch_that_cond_does_not_run_has_no_effects_eagerly() -> None:
    """Eager cond traces the other branch once for its types, without effects; recursive branches are supported."""
    w, calls = rn.Variable(rn.ones(2)), 0

    def other() -> Tensor:
        nonlocal calls
        calls += 1
        w.assign(w * 2)
        return w.read()

    for _ in range(3):
        assert rn.cond(f32(1) > 0, lambda: f32([3, 4]), other).tolist() == [3, 4]
    assert calls == 1 and w.tolist() == [1, 1]
    assert rn.cond(f32(1) > 0, lambda: f32(5), lambda: f32(1 if w.sum() > 3 else 2)).item() == 5
    assert rn.cond(f32(1) > 0, lambda: f32(5), lambda: f32(0) @ f32([1, 2])).item() == 5
    assert rn.cond(True, lambda: f32(5), lambda: f32([1, 2])).item() == 5  # a choice of Python's: there is one function

    def factorial(n: Tensor) -> Tensor:
        result: Tensor = rn.cond(n > 1, lambda: n * factorial(n - 1), lambda: n * 1)
        return result

    assert factorial(f32(5)).item() == 120
