"""Printed texts, warnings and errors."""

from __future__ import annotations

import contextlib
import logging
import time
import warnings
from typing import Any

import pytest

from tests.compile.adversarial.inputs import warm, x
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case


class Box:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def changing(function: Any, *changes: Any, state: Any = None) -> Any:
    steps = warm(x())
    for change in changes:
        steps += [change, *warm(x())]
    return function, steps, state or (lambda: None)


@case
def printed_shapes():
    b = Box(name="run")

    def f(t):
        print("shape", t.shape, t.dtype, f"{b.name}: {t.ndim}d {t.shape[0] * 2:>4}")
        return t * 2

    return changing(f, lambda: setattr(b, "name", "other"))


@case
def logged_shapes():
    log = logging.getLogger("adversarial")

    def f(t):
        log.warning("shape %s of %s", t.shape, t.dtype)
        logging.error(f"{len(t.shape)}")
        return t * 2

    return changing(f)


@case
def warned():
    def f(t):
        if t.shape[0] > 2:
            warnings.warn(f"{t.shape[0]} rows", UserWarning, stacklevel=2)
        return t * 2

    return f, [*warm(x()), *warm(tensor(1)), *warm(x())]


@case(error="TracedValueError")
def printed_values():
    def f(t):
        print(t.sum().item())
        return t * 2

    return changing(f)


@case(eager="clock")
def timed():
    b = Box()

    def f(t):
        start = time.perf_counter()
        y = t * 2
        b.fast = time.perf_counter() - start < 100
        return y

    return changing(f, state=lambda: b)


@case
def error_raised_by_shape():
    def f(t):
        if t.shape[0] < 3:
            raise ValueError("too short")
        return t * 2

    return f, [*warm(x()), *warm(tensor(1)), *warm(x())]


@case
def error_caught():
    table = {"a": 2.0}

    def f(t, name):
        try:
            return t * table[name]
        except KeyError as error:
            return t, str(error)
        finally:
            table["seen"] = name

    return f, [*warm(x(), "a"), *warm(x(), "b"), lambda: table.update(b=3.0), *warm(x(), "b")], lambda: table


@case
def error_of_an_op_caught():
    b = Box(w=tensor(1, 2, 3))

    def f(t):
        try:
            return t * b.w
        except Exception:
            return t

    return changing(f, lambda: setattr(b, "w", tensor(2, 2, 2, 2)))


@case
def effects_before_an_error():
    b = Box(steps=[], limit=3)

    def f(t):
        b.steps.append(t * 2)
        if len(b.steps) > b.limit:
            raise RuntimeError("enough")
        return t

    return f, [call(x())] * 6, lambda: b


@case
def assertion_on_shapes():
    b = Box(width=4)

    def f(t):
        if t.shape[-1] != b.width:
            raise AssertionError(f"{t.shape} {b.width}")
        return t * 2

    return changing(f, lambda: setattr(b, "width", 5), lambda: setattr(b, "width", 4))


@case
def suppressed():
    table: dict[str, Any] = {}

    def f(t):
        with contextlib.suppress(KeyError):
            t = t * table["scale"]
        return t + 1

    return changing(f, lambda: table.update(scale=3.0))


@case
def users_context_manager():
    stack: list[str] = []

    class Scope:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            stack.append(self.name)
            return self

        def __exit__(self, *error):
            stack.pop()
            return False

    b = Box(name="one")

    def f(t):
        with Scope(b.name) as s:
            return t * len(stack) + len(s.name)

    return changing(f, lambda: setattr(b, "name", "three"), lambda: stack.append("outer"), state=lambda: stack)


@case
def context_manager_by_generator():
    b = Box(depth=0)

    @contextlib.contextmanager
    def deeper():
        b.depth += 1
        try:
            yield b.depth
        finally:
            b.depth -= 1

    def f(t):
        with deeper() as one, deeper() as two:
            return t * one + two

    return changing(f, lambda: setattr(b, "depth", 5), state=lambda: b)


@pytest.mark.parametrize("one", CASES)
def test_as_python(one: Case) -> None:
    one.run()
