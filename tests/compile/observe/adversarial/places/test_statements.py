"""Values reached by patterns, calls with stars, iteration and special methods."""

from __future__ import annotations

import functools

import pytest

from tests.compile.observe.adversarial.places.uses import Places
from tests.compile.observe.adversarial.stories import Box

PLACES = Places()
place = PLACES.add


@place
def generator_closure(use):
    box = Box(x=0)

    def values():
        yield box.x

    return lambda: [use(v) for v in values()], lambda v: setattr(box, "x", v)


@place
def unpacked(use):
    items = [0, 1, 2]

    def f():
        first, *rest = items
        return use(first), len(rest)

    return f, lambda v: items.__setitem__(0, v)


@place
def starred_call(use):
    items = [0]
    return lambda: use(*items), lambda v: items.__setitem__(0, v)


@place
def keywords_call(use):
    table = {"v": 0}
    return lambda: (lambda v: use(v))(**table), lambda v: table.update(v=v)


@place
def matched_attribute(use):
    class P:
        __match_args__ = ("x",)

        def __init__(self):
            self.x = 0

    p = P()

    def f():
        match p:
            case P(x):
                return use(x)

    return f, lambda v: setattr(p, "x", v)


@place
def matched_key(use):
    table = {"x": 0}

    def f():
        match table:
            case {"x": x}:
                return use(x)

    return f, lambda v: table.update(x=v)


@place
def matched_item(use):
    items = [0, 1]

    def f():
        match items:
            case [x, *_]:
                return use(x)

    return f, lambda v: items.__setitem__(0, v)


@place
def format_field(use):
    box = Box(x=0)
    return lambda: use("{0.x!r}".format(box)), lambda v: setattr(box, "x", v)


@place
def mangled(use):
    class A:
        def __init__(self):
            self.__x = 0

        def get(self):
            return self.__x

    a = A()
    return lambda: use(a.get()), lambda v: setattr(a, "_A__x", v)


@place
def mapped(use):
    items = [0]
    return lambda: list(map(use, items)), lambda v: items.__setitem__(0, v)


@place
def reduced(use):
    items = [0]
    return lambda: functools.reduce(lambda a, b: (a, use(b)), items, None), lambda v: items.__setitem__(0, v)


@place
def iterated_object(use):
    class A:
        def __init__(self):
            self.items = [0]

        def __iter__(self):
            return iter(self.items)

    a = A()
    return lambda: [use(x) for x in a], lambda v: a.items.__setitem__(0, v)


@place
def old_iteration(use):
    class A:
        def __init__(self):
            self.items = [0]

        def __getitem__(self, i):
            return self.items[i]

    a = A()
    return lambda: [use(x) for x in a], lambda v: a.items.__setitem__(0, v)


@place
def context_manager(use):
    class C:
        def __init__(self):
            self.x = 0

        def __enter__(self):
            return self.x

        def __exit__(self, *_):
            return False

    c = C()

    def f():
        with c as x:
            return use(x)

    return f, lambda v: setattr(c, "x", v)


@place
def called_object(use):
    class C:
        def __init__(self):
            self.x = 0

        def __call__(self):
            return self.x

    c = C()
    return lambda: use(c()), lambda v: setattr(c, "x", v)


@place
def index_object(use):
    class C:
        def __init__(self):
            self.x = 0

        def __getitem__(self, key):
            return (self.x, key)[0]

    c = C()
    return lambda: use(c[5]), lambda v: setattr(c, "x", v)


@pytest.mark.parametrize("name", PLACES.names())
def test_uses(name: str) -> None:
    PLACES.check(name)
