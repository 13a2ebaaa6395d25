"""Log records with whatever arguments and from where they are made, and warnings that filters make errors."""

from __future__ import annotations

import logging
import types
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import runnel as rn
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case


class Whole(logging.Handler):
    """Keeps what a record says and where it was made."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        place = (record.name, record.levelname, record.funcName, record.lineno, record.pathname, record.module)
        has_traceback = bool(record.exc_info and record.exc_info[0])
        self.records.append((record.getMessage(), *place, has_traceback, bool(record.stack_info)))


def logger(level: int = logging.INFO) -> tuple[logging.Logger, Whole]:
    log, handler = logging.Logger("own", level), Whole()
    log.addHandler(handler)
    return log, handler


def times(count: int, *changes: Callable[[], Any]) -> list[Any]:
    steps: list[Any] = [call(tensor(1, 2)) for _ in range(count)]
    for change in changes:
        steps += [change, *[call(tensor(1, 2)) for _ in range(count)]]
    return steps


@case
def arguments_by_name():
    log, handler = logger()
    state = types.SimpleNamespace(n=0)

    def f(x: Any) -> Any:
        state.n += 1
        log.info("step %(n)d of %(name)s", {"n": state.n, "name": "run"})
        log.log(logging.ERROR, "%(n)d", {"n": 3})
        return x * 2

    return f, times(4), lambda: handler.records


@case
def containers_as_arguments():
    log, handler = logger()
    seen = [1, "a"]

    def f(x: Any) -> Any:
        log.info("%r %s %r", seen, {"b": 2}, ("c",))
        log.info(seen)
        return x * 2

    return f, times(3, lambda: seen.append("d")), lambda: handler.records


@case
def containers_that_change_afterwards():
    log, handler = logger()

    def f(x: Any) -> Any:
        made = [1]
        log.info("%s", made)
        made.append(2)
        return x * len(made)

    return f, times(3), lambda: handler.records


@case
def figures_that_nobody_wants():
    log, handler = logger()

    def f(x: Any) -> Any:
        log.debug("sum %.3f", x.sum())
        return x * 2

    return f, times(3, lambda: log.setLevel(logging.WARNING)), lambda: handler.records


@case(error="TracedValueError")
def figures_of_traced_tensors():
    log, _ = logger()

    def f(x: Any) -> Any:
        log.info("sum %.3f", x.sum())
        return x * 2

    return f, times(2)


@case
def places_of_records():
    log, handler = logger()

    def tell(text: str) -> None:
        log.warning(text, stacklevel=2)

    def f(x: Any) -> Any:
        log.info("here")
        tell("there")
        log.warn("by the old name") if hasattr(log, "warn") else None
        return x * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f, times(3), lambda: handler.records


@case(eager="traceback")
def tracebacks():
    log, handler = logger()

    def f(x: Any) -> Any:
        try:
            raise ValueError("boom")
        except ValueError:
            log.exception("it failed")
        return x * 2

    return f, times(3), lambda: handler.records


@case(eager="traceback")
def stacks():
    log, handler = logger()

    def f(x: Any) -> Any:
        log.info("who", stack_info=True)
        return x * 2

    return f, times(3), lambda: handler.records


# Warnings that are errors ---------------------------------------------------------------------------------------------


FILTERS = types.SimpleNamespace(now=())


def under_filters(f: Any) -> Any:
    def call(x: Any) -> Any:
        with warnings.catch_warnings():
            for action, kind, text in FILTERS.now:
                warnings.filterwarnings(action, text, kind)
            return f(x)

    return call


@pytest.mark.parametrize("is_caught", [False, True])
@pytest.mark.parametrize(
    "filters",
    [
        (("error", Warning, ""),),
        (("error", UserWarning, "tell"),),
        (("error", UserWarning, "another"),),
        (("error", Warning, ""), ("ignore", UserWarning, "")),
        (("error", DeprecationWarning, ""),),
    ],
)
def test_warnings_that_are_errors_raise_where_they_stand(filters: Any, is_caught: bool) -> None:
    def world() -> Any:
        total, state = rn.zeros(()), types.SimpleNamespace(n=0)

        def f(x: Any) -> Any:
            state.n += 1
            total.add_(x.sum())
            try:
                warnings.warn("told", UserWarning, stacklevel=1)
            except UserWarning:
                if not is_caught:
                    raise
                state.n += 100
            state.n += 10
            total.add_(x.sum())
            return x * 2

        return f, total, state

    outcomes = []
    for make in (lambda f: f, rn.compile):
        f, total, state = world()
        f, seen = under_filters(make(f)), []
        for FILTERS.now in ((), (), (), filters, filters, (), filters, ()):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                try:
                    result = f(tensor(1, 2)).tolist()
                except UserWarning as problem:
                    result = str(problem)
            told = [str(one.message) for one in told if one.category is UserWarning]
            seen.append((result, total.item(), state.n, told))
        outcomes.append(seen)
    FILTERS.now = ()
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("one", CASES)
def test_case(one: Case) -> None:
    one.run()
