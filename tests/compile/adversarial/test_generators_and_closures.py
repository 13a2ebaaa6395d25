"""Generators, closures, evaluation, and what no program can know."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import random
import time
from typing import Any

import numpy as np
import pytest

import runnel as rn
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case


def rows() -> rn.Tensor:
    return rn.asarray(np.arange(12, dtype=np.float32).reshape(3, 4) / 7)


def x() -> rn.Tensor:
    return tensor(1.0, -2.0, 3.0)


def warm(*args: Any, **kwargs: Any) -> list[Any]:
    return [call(*args, **kwargs)] * 3


@case
def generator_inside():
    gains = [1.0, 2.0, 3.0]

    def scaled(x: Any) -> Any:
        for g in gains:
            received = yield x * g
            if received:
                return

    return (lambda x: sum(scaled(x))), [*warm(x()), lambda: gains.append(4.0), *warm(x())]


@case(eager="next()")
def iterator_held_on_self():
    class Loader:
        def __init__(self) -> None:
            self.batches = iter([rows() * i for i in range(20)])

    o = Loader()
    return (lambda x: x + next(o.batches)), [call(rows())] * 6


@case
def iterator_of_a_class():
    class Loader:
        def __init__(self) -> None:
            self.at = 0

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            self.at += 1
            if self.at > 20:
                raise StopIteration
            return self.at * 0.5

    o = Loader()
    return (lambda x: x * next(o)), [call(x())] * 8, lambda: o.at


@case
def nonlocal_rebound():
    def make() -> Any:
        gain, calls = 2.0, 0

        def f(x: Any) -> Any:
            nonlocal calls
            calls += 1
            return x * gain

        def change(value: float) -> None:
            nonlocal gain
            gain = value

        return f, change, lambda: calls

    f, change, calls = make()
    return f, [*warm(x()), lambda: change(5.0), *warm(x())], calls


@case(eager="eval() looks at the frame")
def evaluated():
    space = {"gain": 2.0}
    return (lambda x: x * eval("gain * 2", space)), [*warm(x()), lambda: space.update(gain=4.0), *warm(x())]


@case(eager="keeps results for objects")
def cached_function_and_property():
    class Own:
        def __init__(self) -> None:
            self.base = 2.0

        @functools.cached_property
        def gain(self) -> float:
            return self.base * 2

        @functools.lru_cache(maxsize=8)
        def power(self, n: int) -> float:
            return self.base**n

    o = Own()
    return (lambda x: x * o.gain + o.power(3)), [
        *warm(x()),
        lambda: setattr(o, "base", 3.0),
        *warm(x()),
        lambda: delattr(o, "gain"),
        *warm(x()),
        lambda: Own.power.cache_clear(),
        *warm(x()),
    ]


@case
def context_variable():
    variable: contextvars.ContextVar[float] = contextvars.ContextVar("gain", default=2.0)
    return (lambda x: x * variable.get()), [*warm(x()), lambda: variable.set(5.0), *warm(x())]


@case
def exit_stack():
    entered: list[str] = []

    @contextlib.contextmanager
    def entering(name: str) -> Any:
        entered.append(name)
        try:
            yield len(entered)
        finally:
            entered.append(f"-{name}")

    def f(x: Any) -> Any:
        with entering("a"), entering("b"):
            return x * 2

    return f, warm(x()) * 2, lambda: list(entered)


@case
def partial_and_compose():
    def scaled(x: Any, gain: float = 1.0, shift: float = 0.0) -> Any:
        return x * gain + shift

    reference = [functools.partial(scaled, gain=2.0), functools.partial(scaled, shift=1.0)]

    def f(x: Any) -> Any:
        return functools.reduce(lambda v, g: g(v), reference, x)

    return f, [
        *warm(x()),
        lambda: reference.reverse(),
        *warm(x()),
        lambda: reference[0].keywords.update(shift=9.0),
        *warm(x()),
    ]


@case(eager="random")
def stochastic_depth():
    return (lambda x: x * 2 if random.random() < 0.5 else x), [call(x())] * 8


@case(eager="NumPy's random numbers are drawn by a Generator")
def numpy_noise():
    generator = np.random.default_rng(0)
    return (lambda x: x + float(generator.standard_normal())), [call(x())] * 4


@case(eager="clock")
def timed():
    recorded: list[bool] = []

    def f(x: Any) -> Any:
        start = time.perf_counter()
        y = x * 2
        recorded.append(time.perf_counter() >= start)
        return y

    return f, [call(x())] * 4, lambda: recorded


@pytest.mark.parametrize("one", CASES)
def test_as_python(one: Case) -> None:
    one.run()
