"""Test gradients that an optimizer in a compiled function has used: they can be added to, not read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import runnel as rn
from runnel import nn, optim
from runnel.core.errors import GradientError

STEPS = 6


class Pair:
    """Two networks that learn from each other, each with its optimizer."""

    def __init__(self) -> None:
        rn.manual_seed(0)
        self.maker, self.judge = nn.Linear(3, 2), nn.Linear(2, 1)
        self.of_maker = optim.Adam(self.maker.parameters(), lr=0.05)
        self.of_judge = optim.SGD(self.judge.parameters(), lr=0.05, momentum=0.9)
        self.flips = 0

    def maker_first(self, x: Any, real: Any) -> Any:
        """The maker's loss adds to gradients of the judge, which the judge's step begins by dropping."""
        self.of_maker.zero_grad()
        made = self.maker(x)
        a = -self.judge(made).mean()
        a.backward()
        self.of_maker.step()
        self.of_judge.zero_grad()
        b = (self.judge(made.detach()) - self.judge(real)).mean() + (self.judge.weight**2).sum()
        b.backward()
        self.of_judge.step()
        return a, b

    def judge_first(self, x: Any, real: Any) -> Any:
        made = self.maker(x)
        self.of_judge.zero_grad()
        b = (self.judge(made.detach()) - self.judge(real)).mean() + (self.judge.weight**2).sum()
        b.backward()
        self.of_judge.step()
        self.of_maker.zero_grad()
        a = -self.judge(made).mean()
        a.backward()
        self.of_maker.step()
        return a, b

    def state(self) -> list[Any]:
        return [p.tolist() for m in (self.maker, self.judge) for p in m.parameters()]


def trained(order: str, wrap: Callable[[Any], Any]) -> tuple[list[Any], Any]:
    pair = Pair()
    step = wrap(getattr(pair, order))
    seen = []
    for i in range(STEPS):
        losses = step(rn.full((4, 3), 0.1 * i), rn.full((4, 2), 1.0 - 0.1 * i))
        seen.append([*[loss.item() for loss in losses], pair.state()])
    return seen, step


@pytest.mark.parametrize("order", ["maker_first", "judge_first"])
def test_two_networks_with_an_optimizer_each(order: str) -> None:
    expected, _ = trained(order, lambda step: step)
    actual, step = trained(order, rn.compile)
    assert actual == expected
    assert step.statistics["traces"] <= 2, step.retraces


def test_steps_of_two_compiled_functions() -> None:
    def run(wrap: Callable[[Any], Any]) -> list[Any]:
        pair = Pair()

        def make(x: Any) -> Any:
            pair.of_maker.zero_grad()
            loss = -pair.judge(pair.maker(x)).mean()
            loss.backward()
            pair.of_maker.step()
            return loss

        def judge(x: Any) -> Any:
            pair.of_judge.zero_grad()
            loss = (pair.judge(pair.maker(x).detach()) ** 2).mean()
            loss.backward()
            pair.of_judge.step()
            return loss

        first, second = wrap(make), wrap(judge)
        return [
            [f(rn.full((2, 3), 0.3 * i)).item() for f in (first, second, second, first)] + pair.state()
            for i in range(STEPS)
        ]

    assert run(rn.compile) == run(lambda step: step)


def using_up() -> tuple[rn.Parameter, optim.SGD, Callable[[Any], Any]]:
    """A Parameter, its optimizer, and a compiled step that uses its gradient up."""
    w = rn.Parameter(rn.ones(2))
    sgd = optim.SGD([w], lr=0.1)

    @rn.compile
    def step(x: Any) -> None:
        sgd.zero_grad()
        (w * x).sum().backward()
        sgd.step()

    return w, sgd, step


def test_backward_outside_adds_to_what_is_used_up() -> None:
    w, sgd, step = using_up()
    step(rn.ones(2))
    (w * 3).sum().backward()
    for read in (lambda: w.grad, sgd.step, lambda: nn.utils.clip_grad_norm_([w], 1.0)):
        with pytest.raises(GradientError, match="used up"):
            read()
    sgd.zero_grad()
    (w * 3).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_step_that_never_drops_gradients_is_told(compiled: bool) -> None:
    w = rn.Parameter(rn.ones(2))
    sgd = optim.SGD([w], lr=0.1)

    def step(x: Any) -> None:
        (w * x).sum().backward()
        sgd.step()

    rn.compile(step)(rn.ones(2))
    before = w.tolist()
    with pytest.raises(GradientError, match=r"zero_grad\(\) before backward\(\)"):
        (rn.compile(step) if compiled else step)(rn.ones(2))
    assert w.tolist() == before


def test_what_was_lost_may_be_there_again() -> None:
    """A program that added to a used-up gradient is not taken where there is one, or none."""
    w, _, use_up = using_up()

    @rn.compile
    def add(x: Any) -> None:
        (w * x).sum().backward()

    x = rn.ones(2)
    for _ in range(2):
        use_up(x)
        add(x), add(x)
        with pytest.raises(GradientError, match="used up"):
            w.grad  # noqa: B018
        w.grad = None
        add(x), add(x)
        assert w.grad is not None and w.grad.tolist() == [2.0, 2.0]
