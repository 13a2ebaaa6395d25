"""Functions that set attributes, globals and cells, and that give away what they made."""

from __future__ import annotations

import functools

import pytest

from tests.compile.observe.adversarial.stories import Box, Cases, around

CASES = Cases()
case, refused = CASES.add, CASES.refused


@case
def sets_attribute():
    box, k = Box(x=1), [1]

    def f():
        box.y = box.x + k[0]
        return box.y

    return around(f, lambda: k.__setitem__(0, 5), state=lambda: box)


@case
def counts():
    box = Box(n=0)

    def f():
        box.n += 1
        return box.n

    return around(f, lambda: setattr(box, "n", 10), state=lambda: box)


@case
def initialises_once():
    box = Box(mask=None, made=0)

    def f():
        if box.mask is None:
            box.mask = [1, 2, 3]
            box.made += 1
        return sum(box.mask)

    return around(f, lambda: setattr(box, "mask", None), lambda: box.mask.append(4), state=lambda: box)


@case
def initialises_by_hasattr():
    box = Box()

    def f():
        if not hasattr(box, "cache"):
            box.cache = {}
        box.cache["k"] = len(box.cache)
        return box.cache["k"]

    return around(f, lambda: delattr(box, "cache"), state=lambda: box)


@case
def global_write():
    globals()["WRITTEN"] = 0

    def f():
        global WRITTEN
        WRITTEN = WRITTEN + 2
        return WRITTEN

    return around(f, lambda: globals().update(WRITTEN=7), state=lambda: globals()["WRITTEN"])


@case
def nonlocal_write():
    n = 0

    def f():
        nonlocal n
        n += 1
        return n

    def reset():
        nonlocal n
        n = 100

    return around(f, reset, state=lambda: n)


@case
def two_closures_one_cell():
    n = 0

    def bump():
        nonlocal n
        n += 1

    def f():
        bump()
        bump()
        return n

    return around(f, state=lambda: n)


@case
def deletes_attribute():
    box = Box(x=1)

    def f():
        if hasattr(box, "x"):
            del box.x
            return 1
        return 0

    return around(f, lambda: setattr(box, "x", 3), state=lambda: box)


@case
def class_counter():
    class A:
        count = 0

        def __init__(self):
            A.count += 1

    return around(lambda: (A(), A.count)[1], lambda: setattr(A, "count", 10), state=lambda: A.count)


@case
def slots_written():
    class S:
        __slots__ = ("x", "y")

    s = S()
    s.x = 1

    def f():
        s.y = s.x + 1
        return s.y

    return around(f, lambda: setattr(s, "x", 9), state=lambda: (s.x, s.y))


@case
def property_setter():
    class A:
        def __init__(self):
            self._x = 1

        @property
        def x(self):
            return self._x

        @x.setter
        def x(self, value):
            self._x = value * 2

    a = A()

    def f():
        a.x = a.x + 1
        return a.x

    return around(f, lambda: setattr(a, "_x", 0), state=lambda: a)


@case
def setattr_hook():
    class A:
        def __init__(self):
            object.__setattr__(self, "log", [])

        def __setattr__(self, name, value):
            self.log.append(name)
            object.__setattr__(self, name, value)

    a = A()

    def f():
        a.x = 1
        setattr(a, "y", a.x)
        return len(a.log)

    return around(f, lambda: a.log.clear(), state=lambda: a)


@case
def dict_of_object_written():
    box = Box(x=1)

    def f():
        box.__dict__["y"] = box.x
        vars(box)["z"] = box.y
        return box.z

    return around(f, lambda: setattr(box, "x", 5), state=lambda: box)


@case
def function_attribute_written():
    def f():
        f.calls = getattr(f, "calls", 0) + 1
        return f.calls

    return around(f, lambda: setattr(f, "calls", 9), state=lambda: getattr(f, "calls", None))


@case
def cached_property_filled():
    class A:
        def __init__(self):
            self.x = 1

        @functools.cached_property
        def slow(self):
            return self.x + 1

    a = A()
    return around(lambda: a.slow, lambda: setattr(a, "x", 5), lambda: a.__dict__.pop("slow"), state=lambda: a)


@case
def object_made_and_kept():
    box = Box(last=None)

    def f():
        box.last = Box(parent=box, items=[box.last is None])
        return box.last.items

    return around(f, lambda: setattr(box, "last", None), state=lambda: box.last.items)


@case
def object_made_as_key():
    table = {}

    def f():
        key = Box(x=1)
        table[key] = 5
        table[1, "a"] = table.get((1, "a"), 0) + 1
        return len(table), table[key]

    return around(f, table.clear, state=lambda: [(type(k).__name__, v) for k, v in table.items()])


@case
def kept_builtin_methods():
    log, table = [], {"a": 1}
    box = Box(append=log.append, get=table.get)

    def f():
        box.append(box.get("a"))
        return len(log)

    return around(f, lambda: table.update(a=2), lambda: setattr(box, "get", {"a": 9}.get), state=lambda: log)


@case
def moved_between_places():
    box = Box(a=[1], b=None)

    def f():
        box.a, box.b = box.b, box.a
        if box.b is not None:
            box.b.append(2)
        return box.a

    return around(f, lambda: setattr(box, "a", [7]), state=lambda: box)


@case
def raised_class():
    class Problem(Exception):
        def __init__(self):
            super().__init__(box.x)

    box = Box(x=1)

    def f():
        try:
            raise Problem
        except Problem as e:
            return e.args

    return around(f, lambda: setattr(box, "x", 2))


@case
def object_returned():
    class A:
        def __init__(self, x):
            self.x = x
            self.me = self

    box = Box(x=1)

    def f():
        a = A(box.x)
        return a.me is a, [a.x, a.me.me.x]

    return around(f, lambda: setattr(box, "x", 2))


@case
def shared_result():
    box = Box()

    def f():
        shared = [1]
        box.a, box.b = shared, shared
        box.a.append(2)
        return box.a is box.b

    return around(f, lambda: setattr(box, "a", 0), state=lambda: box)


@case
def result_is_outside():
    items = [1]
    table = {"i": items}

    def f():
        return table["i"]

    return around(lambda: f() is items, lambda: table.update(i=[1]))


@case
def effect_then_raise():
    log, box = [], Box(x=1)

    def f():
        log.append(box.x)
        raise ValueError(f"{box.x}")

    return around(f, lambda: setattr(box, "x", 2), state=lambda: log)


@case
def effect_then_caught():
    log, table = [], {}

    def f():
        try:
            log.append("try")
            return table["x"]
        except KeyError:
            log.append("missing")
            return None
        finally:
            log.append("end")

    return around(f, lambda: table.update(x=3), state=lambda: log)


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
