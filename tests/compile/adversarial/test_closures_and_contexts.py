"""Functions that leave a run, context variables, read-only views, dispatch by class and weak dicts."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import runnel as rn
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case


def calls(*changes: Callable[[], Any]) -> list[Any]:
    """Calls with numbers, and a change before every second one."""
    steps: list[Any] = [call(tensor(1.0, 2.0), 0.5), call(tensor(1.0, 2.0), 1.5)]
    for i, change in enumerate(changes):
        steps += [change, call(tensor(3.0, i), 2.5 + i), call(tensor(4.0, i), 3.5 + i)]
    return steps


# Functions that leave the run -----------------------------------------------------------------------------------------


def plain(x: Any, v: float) -> Any:
    k = v * 2

    def inner(y: Any, z: float = v, *, w: Any = x) -> Any:
        return x * k + y + z + w

    return inner


def counting(x: Any, v: float) -> Any:
    n = v

    def add(d: float) -> float:
        nonlocal n
        n += d
        return n

    def get(d: float) -> float:
        return n

    add(5.0)
    return add, add, get


def recursive(x: Any, v: float) -> Any:
    def power(n: float) -> float:
        return 1.0 if n <= 0 else v * power(n - 1)

    return power


def partial(x: Any, v: float) -> Any:
    return functools.partial(lambda a, b, c=0.0: a * b + c + v, x, c=v)


def wrapped(x: Any, v: float) -> Any:
    @functools.wraps(plain)
    def inner(*args: Any) -> Any:
        return x.sum(), v, inner.__wrapped__ is plain  # type: ignore[attr-defined]

    inner.tag = v  # type: ignore[attr-defined]
    return inner


def unassigned(x: Any, v: float) -> Any:
    if v < 0:
        late = 1

    def inner(q: float) -> Any:
        try:
            return late
        except NameError:
            return "nothing"

    return inner


def in_a_dict(x: Any, v: float) -> Any:
    table: dict[str, Any] = {}
    table["f"] = lambda q: len(table) + q + v
    return table["f"]


def generator(x: Any, v: float) -> Any:
    def inner(q: float) -> Iterator[float]:
        yield v
        yield q

    return lambda q: list(inner(q))


@pytest.mark.parametrize(
    "make", [plain, counting, recursive, partial, wrapped, unassigned, in_a_dict, generator], ids=lambda f: f.__name__
)
def test_functions_that_leave(make: Any) -> None:
    def results(function: Any) -> list[Any]:
        out = []
        for i in range(4):
            made = function(tensor(1.0, i), 0.5 * i)
            for inner in made if type(made) is tuple else (made,):
                values = [inner(1.0), inner(2.0)]
                out += [y.tolist() if isinstance(y, rn.Tensor) else str(y) for y in values]
                out.append(getattr(inner, "__name__", ""))
        return out

    compiled = rn.compile(make)
    assert results(compiled) == results(make)
    assert [e.reason for e in compiled.executables() if e.native is None] == []


@case
def a_function_is_stored_outside():
    box = types.SimpleNamespace(f=None, n=3.0)

    def f(x: Any, v: float) -> Any:
        def inner() -> float:
            box.n += 1
            return box.n * v

        box.f = inner
        return x * inner()

    return f, calls(lambda: box.f(), lambda: setattr(box, "n", -1.0)), lambda: box.n


@case
def a_function_shares_a_variable_outside():
    total = 0.0

    def f(x: Any, v: float) -> Any:
        nonlocal total
        total += v

        def inner() -> float:
            return total

        made.append(inner)
        return x * total

    made: list[Any] = []
    return f, calls(lambda: None), lambda: [inner() for inner in made]


@case(eager="a method of a class made in the function leaves it")
def a_method_of_a_class_made_inside():
    def f(x: Any, v: float) -> Any:
        class Local:
            def method(self) -> float:
                return v

        return Local().method

    return f, [call(tensor(1.0), 1.0)], lambda: None


# Context variables ----------------------------------------------------------------------------------------------------


def variable(**default: Any) -> contextvars.ContextVar[Any]:
    return contextvars.ContextVar("variable", **default)


@case(traces=5)
def a_context_variable_is_set():
    scale = variable(default=1.0)

    def f(x: Any, v: float) -> Any:
        scale.set(scale.get() + v)
        return x * scale.get()

    return f, calls(lambda: scale.set(10.0), lambda: scale.set(20.0)), lambda: scale.get()


@case(traces=6)
def a_context_manager_sets_and_resets():
    scale = variable(default=1.0)

    @contextlib.contextmanager
    def scaled(value: Any) -> Iterator[None]:
        token = scale.set(value)
        try:
            yield
        finally:
            scale.reset(token)

    def f(x: Any, v: float) -> Any:
        with scaled(v):
            with scaled(scale.get() * 2):
                y = x * scale.get()
            return y + scale.get()

    return f, calls(lambda: scale.set(10.0), lambda: None), lambda: scale.get()


@case
def a_context_variable_without_a_value():
    name = variable()

    def f(x: Any, v: float) -> Any:
        try:
            before = name.get()
        except LookupError:
            before = "none"
        token = name.set(x.sum())
        inside = name.get()
        name.reset(token)
        return before, inside, name.get(None)

    return f, calls(lambda: name.set("some"))


@case(eager="by another token")
def a_context_variable_is_reset_out_of_order():
    name = variable(default=0)

    def f(x: Any, v: float) -> Any:
        first, _ = name.set(1), name.set(2)
        name.reset(first)
        return x * name.get()

    return f, calls(lambda: None)


# Views, dispatch, weak dicts ------------------------------------------------------------------------------------------


@case
def a_read_only_view():
    table = {"a": 2.0}
    view = types.MappingProxyType(table)

    def f(x: Any, v: float) -> Any:
        y = x * view["a"] + view.get("z", 0.0) + len(view) + sum(view.values()) + sum(view[k] for k in view)
        return y, dict(view), {**view}, list(view), "z" in view, bool(view), view.copy(), [*view.items()]

    return f, calls(lambda: table.update(a=5.0), lambda: table.update(z=1.0), table.clear, lambda: table.update(a=3.0))[
        :-2
    ]


@case
def a_read_only_view_of_what_is_written():
    table = {"a": 2.0, "b": 1.0}
    view = types.MappingProxyType(table)

    def f(x: Any, v: float) -> Any:
        table["a"] = view["a"] + v
        seen = []
        for _, value in view.items():
            seen.append(value)
            table["b"] = v
        return x * view["a"], seen

    return f, calls(lambda: table.update(a=5.0), lambda: table.update(b=7.0)), lambda: table


class Base:
    pass


class Derived(Base):
    pass


@case
def functions_are_registered_meanwhile():
    @functools.singledispatch
    def scale(value: Any, x: Any) -> Any:
        return x

    @scale.register
    def _(value: int, x: Any) -> Any:
        return x * 2

    changes = [
        lambda: scale.register(float, lambda value, x: x * 100),
        lambda: scale.register(Base, lambda value, x: x * 7),
        lambda: scale.register(Derived, lambda value, x: x * 8),
    ]
    derived = Derived()
    return lambda x, v: (scale(1, x), scale(v, x), scale(derived, x)), calls(*changes)


@case
def values_of_a_weak_dict():
    keep = [types.SimpleNamespace(), Base()]
    keep[1].gain = 2.0
    table: Any = weakref.WeakValueDictionary(k=keep[1])

    def another() -> None:
        keep.append(Base())
        keep[-1].gain = 9.0
        table["k"] = keep[-1]

    def f(x: Any, v: float) -> Any:
        try:
            return x * table["k"].gain
        except KeyError:
            return "gone"

    return f, calls(lambda: setattr(keep[1], "gain", 5.0), another, keep.clear), lambda: len(table)


@case(eager="a lock is taken")
def a_lock():
    lock, state = threading.Lock(), types.SimpleNamespace(n=0)

    def f(x: Any, v: float) -> Any:
        with lock:
            state.n += 1
        return x * state.n

    return f, calls(lambda: None), lambda: state.n


@pytest.mark.parametrize("one", CASES)
def test_case(one: Case) -> None:
    one.run()
