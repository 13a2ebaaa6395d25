"""Generators, closures, evaluation, and what no program can know."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import random
import time
import types
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


def with_a_variable(make: Any) -> Any:
    """What ``make`` makes of a cell that is empty, and the steps of a story in which it is filled and emptied."""
    cell = types.CellType()

    def fill(value: float) -> Any:
        return lambda: setattr(cell, "cell_contents", value)

    steps = [*warm(x()), fill(2.0), *warm(x()), lambda: delattr(cell, "cell_contents"), *warm(x()), fill(3.0)]
    return make(cell), [*steps, *warm(x())]


def closed_over(function: Any, cell: Any) -> Any:
    """The function with another cell for its only variable from outside."""
    return types.FunctionType(function.__code__, globals(), closure=(cell,))


def needing(gain: float) -> Any:
    def f(x: Any) -> Any:
        try:
            return x * gain
        except NameError:
            return x - 1

    return f


def with_a_class(gain: float) -> Any:
    def f(x: Any) -> Any:
        try:

            class Scale:
                value = gain

        except NameError:
            return x - 1
        return x * Scale.value

    return f


@case
def variable_without_a_value():
    return with_a_variable(lambda cell: closed_over(needing(0.0), cell))


@case
def variable_without_a_value_further_in():
    return with_a_variable(lambda cell: functools.partial(lambda f, x: f(x) * 2, closed_over(needing(0.0), cell)))


@case
def variable_without_a_value_in_a_class():
    return with_a_variable(lambda cell: closed_over(with_a_class(0.0), cell))


def counters(shared: bool) -> Any:
    """A function that counts, and one that tells its own count: of one variable, or of two."""

    def pair() -> Any:
        count = 1

        def more() -> None:
            nonlocal count
            count += 1

        return more, lambda: count

    more, told = pair()
    return more, told if shared else pair()[1]


def advanced(x: Any, more: Any, told: Any) -> Any:
    more()
    return x * told()


def told_before(x: Any, more: Any, told: Any) -> Any:
    before = told()
    more()
    return x * before


@case
def variables_that_are_shared_or_not():
    one, other, third = counters(True), counters(False), counters(True)
    return advanced, [call(x(), *pair) for pair in [one, one, other, other, one, third, other]]


@case
def variables_that_are_read_and_shared_or_not():
    one, other, third = counters(False), counters(True), counters(False)
    both = [call(x(), *pair) for pair in [one, one, other, other, one, third, other]]
    return told_before, [*both, lambda: other[0](), *both]


@case
def functions_read_one_variable_or_two():
    def reading(a: int, b: int, shared: bool) -> Any:
        first = (lambda v: lambda: v)(a)
        code = (lambda v: lambda: v + 10)(b)
        return first, types.FunctionType(code.__code__, globals(), closure=first.__closure__) if shared else code

    pairs = [reading(1, 1, True), reading(1, 2, False), reading(1, 1, False), reading(3, 3, True), reading(3, 5, False)]
    return (lambda x, one, other: x * one() + other()), [call(x(), *pair) for pair in pairs * 2]


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
