"""Hooks of gradients and compiled functions: attached before, between calls or inside, and taken away again."""

from __future__ import annotations

import itertools
import types
from typing import Any

import pytest

import runnel as rn
from runnel import nn, optim
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
NUMBERS = itertools.count()
case = CASES.case
EAGERLY = "programs call no hooks of gradients"


def own_code(method: Any) -> Any:
    """The method with code of its own: what is said once is said once for each code."""
    function = method.__func__
    code = function.__code__.replace(co_name=f"step{next(NUMBERS)}")
    return types.MethodType(types.FunctionType(code, function.__globals__), method.__self__)


class World:
    """A Parameter, the steps of training it, and what its hooks have seen."""

    def __init__(self) -> None:
        self.p = nn.Parameter([1.0, 2.0])
        self.optimizer = optim.SGD([self.p], lr=0.1)
        self.seen: list[Any] = []
        self.hooks: list[Any] = []

        self.step = own_code(self._step)

    def _step(self, x: Any) -> Any:
        with rn.enable_grad():
            self.optimizer.zero_grad()
            loss = (self.p * self.p * x).sum()
            loss.backward()
        self.optimizer.step()
        return loss.detach()

    def doubled(self) -> None:
        self.hooks.append(self.p.register_hook(lambda g: g * 2))

    def noted(self) -> None:
        self.hooks.append(self.p.register_hook(lambda g: self.seen.append(g.tolist())))

    def after(self) -> None:
        self.hooks.append(self.p.register_post_accumulate_grad_hook(lambda p: self.seen.append(p.grad.tolist())))

    def removed(self) -> None:
        self.hooks.pop().remove()

    def state(self) -> Any:
        return self.p, self.seen


def calls(n: int, start: int = 0) -> list[Any]:
    return [call(tensor(1.0 + i, 2.0)) for i in range(start, start + n)]


@case(eager=EAGERLY)
def before_the_first_call() -> Any:
    w = World()
    w.doubled()
    return w.step, calls(3), w.state


@case(eager=EAGERLY)
def between_calls() -> Any:
    w = World()
    return w.step, [*calls(3), w.noted, *calls(3, 3), w.doubled, *calls(3, 6)], w.state


@case(eager=EAGERLY)
def taken_away_again() -> Any:
    w = World()
    return w.step, [w.doubled, *calls(3), w.removed, *calls(4, 3)], w.state


@case(eager=EAGERLY)
def after_accumulation() -> Any:
    w = World()
    return w.step, [*calls(2), w.after, *calls(3, 2), w.removed, *calls(2, 5)], w.state


@case(eager=EAGERLY)
def attached_inside() -> Any:
    w = World()

    def step(x: Any) -> Any:
        with rn.enable_grad():
            y = w.p * x
            y.register_hook(lambda g: g * 3)
            w.optimizer.zero_grad()
            (y * y).sum().backward()
        w.optimizer.step()
        return y.detach()

    return step, calls(3), w.state


@case()
def of_another_parameter() -> Any:
    w, other = World(), World()
    return w.step, [*calls(2), other.doubled, *calls(3, 2), other.removed, *calls(3, 5)], w.state


@pytest.mark.parametrize("one", CASES)
def test_case(one: Case) -> None:
    one.run()


def test_backward_outside_calls_hooks() -> None:
    """The forward is a program, and hooks of its Parameters are called."""
    p, seen = nn.Parameter([1.0, 2.0]), []
    forward = rn.compile(lambda x: (p * p * x).sum())
    for i in range(4):
        if i == 2:
            p.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
        p.grad = None
        forward(tensor(1.0, 1.0)).backward()
        assert p.grad.tolist() == [2.0 + 2.0 * (i > 1), 4.0 + 4.0 * (i > 1)]
    assert seen == [[2.0, 4.0]] * 2 and forward.statistics["traces"] == 1
