"""Values in dataclasses, enums, weak references, subclasses of containers."""

from __future__ import annotations

import collections
import contextvars
import dataclasses
import enum
import os
import types
import typing
import weakref
from typing import Any

import pytest

from tests.compile.observe.adversarial.places.uses import Places
from tests.compile.observe.adversarial.stories import Box

PLACES = Places()
place = PLACES.add


@place
def dataclass_field(use):
    @dataclasses.dataclass
    class D:
        x: Any

    d = D(0)
    return lambda: use(d.x), lambda v: setattr(d, "x", v)


@place
def dataclass_method(use):
    @dataclasses.dataclass
    class D:
        x: Any

        def get(self):
            return self.x

    d = D(0)
    return lambda d=d: use(d.get()), lambda v: setattr(d, "x", v)


@place
def named_tuple_field(use):
    class P(typing.NamedTuple):
        x: Any

        def get(self):
            return self.x

    box = Box(p=P(0))
    return lambda: use(box.p.get()), lambda v: setattr(box, "p", P(v))


@place
def plain_named_tuple(use):
    P = collections.namedtuple("P", "x y")
    box = Box(p=P(0, 1))
    return lambda: use(box.p.x if box.p[1] else box.p.y), lambda v: setattr(box, "p", box.p._replace(x=v))


@place
def enum_value(use):
    class E(enum.Enum):
        A = 0

    member = E.A
    return lambda: use(member.value), lambda v: setattr(member, "_value_", v)


@place
def enum_member(use):
    class E(enum.Enum):
        A = 0
        B = 2

    box = Box(e=E.A)
    return lambda: use(box.e.value), lambda v: setattr(box, "e", E.B)


@place
def enum_attribute(use):
    class E(enum.Enum):
        A = 0

    E.A.extra = 0
    return lambda: use(E.A.extra), lambda v: setattr(E.A, "extra", v)


@place
def weak_reference(use):
    box = Box(x=0)
    reference = weakref.ref(box)

    def f():
        holder = reference()
        return use(holder.x) if holder is not None else box

    return f, lambda v: setattr(box, "x", v)


@place
def context_variable(use):
    variable: Any = contextvars.ContextVar("variable", default=0)
    return lambda: use(variable.get()), lambda v: variable.set(v)


@place
def environment(use):
    os.environ["RUNNEL_TEST_PLACE"] = "0"
    return lambda: use(os.environ.get("RUNNEL_TEST_PLACE")), lambda v: os.environ.update(RUNNEL_TEST_PLACE=str(v))


@place
def simple_namespace(use):
    space = types.SimpleNamespace(x=0)
    return lambda: use(space.x), lambda v: setattr(space, "x", v)


@place
def list_subclass(use):
    class L(list):
        def __getitem__(self, i):
            return list.__getitem__(self, i)

    items = L([0])
    items.extra = 0
    return lambda: (use(items[0]), items.extra), lambda v: items.__setitem__(0, v)


@place
def dict_subclass(use):
    class D(dict):
        def __missing__(self, key):
            return self.fallback

    table = D()
    table.fallback = 0
    return lambda: use(table["x"]), lambda v: setattr(table, "fallback", v)


@place
def set_member(use):
    members: set[Any] = {0}

    def assign(v):
        members.clear()
        members.add(v)

    return lambda: [use(x) for x in members], assign


@place
def dict_key(use):
    table: dict[Any, int] = {0: 1}

    def assign(v):
        table.clear()
        table[v] = 1

    return lambda: [use(k) for k in table], assign


@pytest.mark.parametrize("name", PLACES.names())
def test_uses(name: str) -> None:
    PLACES.check(name)
