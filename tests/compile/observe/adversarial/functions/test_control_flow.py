"""Loops, exceptions, patterns, generators, decorators and names."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from typing import Any

import pytest

from tests.compile.observe.adversarial.stories import Box, Cases, around

CASES = Cases()
case, refused = CASES.add, CASES.refused


@case
def loops_and_breaks():
    items = [1, 2, 3, 4]
    box = Box(stop=3)

    def f():
        results = []
        for x in items:
            if x == box.stop:
                break
            results.append(x)
        else:
            results.append("end")
        return results

    return around(f, lambda: items.append(9), lambda: setattr(box, "stop", 100), lambda: items.__setitem__(0, 100))


@case
def nested_comprehensions():
    rows = [[1, 2], [3]]
    box = Box(k=2)
    return around(
        lambda: (
            [[x * box.k for x in row if x > 1] for row in rows],
            {x for row in rows for x in row},
            {i: len(r) for i, r in enumerate(rows)},
        ),
        lambda: rows[1].append(7),
        lambda: setattr(box, "k", 3),
    )


@case
def generators():
    box = Box(n=3)

    def numbers():
        for i in range(box.n):
            got = yield i
            if got:
                yield got * 10

    def all_of():
        yield from numbers()
        return 5

    def f():
        g = numbers()
        first = next(g)
        sent = g.send(7)
        return first, sent, list(all_of()), list(g)

    return around(f, lambda: setattr(box, "n", 1), lambda: setattr(box, "n", 4))


@case
def exceptions():
    box = Box(kind=ValueError)

    def f():
        try:
            raise box.kind("x")
        except ValueError as e:
            return "value", e.args
        except (KeyError, TypeError):
            return "other"
        finally:
            box.seen = True

    return around(f, lambda: setattr(box, "kind", KeyError), state=lambda: box.__dict__.get("seen"))


@case
def exception_groups():
    box = Box(n=2)

    def f():
        results = []
        try:
            raise ExceptionGroup("many", [ValueError(i) for i in range(box.n)] + [KeyError(1)])
        except* ValueError as group:
            results.append(len(group.exceptions))
        except* KeyError:
            results.append("key")
        return results

    return around(f, lambda: setattr(box, "n", 3))


@case
def with_blocks():
    class C:
        def __init__(self, quiet):
            self.quiet, self.log = quiet, []

        def __enter__(self):
            self.log.append("in")
            return self

        def __exit__(self, kind, value, trace):
            self.log.append(None if kind is None else kind.__name__)
            return self.quiet

    c = C(True)

    def f():
        with c as reference, contextlib.suppress(KeyError):
            reference.log.append("body")
            raise ValueError("no")
        return "after"

    return around(f, lambda: setattr(c, "quiet", False), state=lambda: c.log)


@case
def context_manager_function():
    log, box = [], Box(x=1)

    @contextlib.contextmanager
    def scope(name):
        log.append(("in", name, box.x))
        try:
            yield box.x
        finally:
            log.append(("out", name))

    def f():
        with scope("a") as x, scope("b"):
            return x

    return around(f, lambda: setattr(box, "x", 2), state=lambda: log)


@case
def exit_stack():
    log = []

    class C:
        def __enter__(self):
            log.append("in")

        def __exit__(self, *_):
            log.append("out")

    def f():
        with contextlib.ExitStack() as stack:
            stack.enter_context(C())
            stack.callback(log.append, "back")

    return around(f, state=lambda: log)


@case
def patterns():
    @dataclasses.dataclass
    class P:
        x: int
        y: Any = None

    box = Box(v=P(1, [2, 3]))

    def f():
        match box.v:
            case P(1, [a, *rest]):
                return "p", a, rest
            case P(x=2, y=None):
                return "q"
            case {"k": v, **rest}:
                return v, rest
            case [1, (2 | 3) as b]:
                return b
            case str() | None:
                return "s"
            case int(n) if n > 3:
                return n
            case _:
                return "other"

    values = (P(2), {"k": 1, "z": 2}, [1, 3], "x", None, 7, 2, P(1, (5,)), (1, 2))
    return around(f, *(functools.partial(setattr, box, "v", v) for v in values))


@case
def recursion():
    def total(tree):
        return tree if isinstance(tree, int) else sum(total(t) for t in tree)

    tree = [1, [2, [3]]]
    return around(lambda: total(tree), lambda: tree[1][1].append(4), lambda: tree.append(5))


@case
def mutual_recursion():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    box = Box(n=4)
    return around(lambda: even(box.n), lambda: setattr(box, "n", 5))


@case
def closures_made():
    box = Box(k=1)

    def make(k):
        def inner(x):
            nonlocal k
            k += x
            return k + box.k

        return inner

    def f():
        g = make(10)
        return g(1), g(2), [h(1) for h in (make(1), make(2))]

    return around(f, lambda: setattr(box, "k", 5))


@case
def decorators_inside():
    box = Box(k=2)

    def scaled(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            return function(*args, **kwargs) * box.k

        return inner

    def f():
        @scaled
        def g(x):
            return x + 1

        return g(3), g.__name__

    return around(f, lambda: setattr(box, "k", 5))


@case
def decorated_outside():
    box = Box(k=2)

    def scaled(function):
        @functools.wraps(function)
        def inner(*args):
            return function(*args) * box.k

        return inner

    @scaled
    def g(x):
        return x + box.k

    return around(lambda: g(3), lambda: setattr(box, "k", 5))


@case
def walrus_and_chains():
    box = Box(a=1, b=5)
    return around(
        lambda: ((y := box.a) < box.b < 7, y, 0 < box.a <= 1 != box.b),
        lambda: setattr(box, "b", 9),
        lambda: setattr(box, "a", 6),
    )


@case
def star_targets():
    items = [1, 2, 3, 4]

    def f():
        a, *b, c = items
        (d, e), *_ = [(a, c)]
        return a, b, c, d, e, [*items, *b], {**{"a": a}, "z": 1}

    return around(f, lambda: items.append(5), lambda: items.__delitem__(0))


@case
def late_binding():
    functions = [lambda: 1]
    return around(
        lambda: [g() for g in functions],
        lambda: functions.append(lambda: 2),
        lambda: functions.__setitem__(0, lambda: 3),
    )


@case
def registry_of_functions():
    registry: dict[str, Any] = {"a": lambda x: x}
    box = Box(name="a")
    return around(
        lambda: registry[box.name](2),
        lambda: registry.update(a=lambda x: x * 5),
        lambda: (registry.update(b=lambda x: -x), setattr(box, "name", "b")),
    )


@case
def names_absent():
    globals().pop("NOT_YET", None)

    def f():
        try:
            return NOT_YET
        except NameError as e:
            return str(e)

    return around(f, lambda: globals().update(NOT_YET=1), lambda: globals().pop("NOT_YET"))


@case
def shadowed_builtin():
    globals().pop("sorted_", None)

    def f():
        return max(1, 2)

    return around(f, lambda: globals().update(max=lambda *a: "mine"), lambda: globals().pop("max"))


@case
def assertions():
    box = Box(ok=True)

    def f():
        if not box.ok:
            raise AssertionError("not ok")
        return 1

    return around(f, lambda: setattr(box, "ok", False))


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
