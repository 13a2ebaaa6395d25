"""Values behind attributes of objects and classes."""

from __future__ import annotations

import operator
from typing import Any

import pytest

from tests.compile.observe.adversarial.places.uses import Places
from tests.compile.observe.adversarial.stories import Box

PLACES = Places()
place = PLACES.add


@place
def class_attribute(use):
    class A:
        x: Any = 0

    return lambda: use(A.x), lambda v: setattr(A, "x", v)


@place
def class_attribute_through_object(use):
    class A:
        x: Any = 0

    a = A()
    return lambda: use(a.x), lambda v: setattr(A, "x", v)


@place
def shadowed_class_attribute(use):
    class A:
        x: Any = 0

    a = A()
    return lambda: use(a.x), lambda v: setattr(a, "x", v)


@place
def inherited_attribute(use):
    class A:
        x: Any = 0

    class B(A):
        pass

    class C(B):
        pass

    return lambda: use(C.x), lambda v: setattr(B, "x", v)


@place
def property_value(use):
    class A:
        def __init__(self):
            self._x = 0

        @property
        def x(self):
            return self._x

    a = A()
    return lambda: use(a.x), lambda v: setattr(a, "_x", v)


@place
def replaced_property(use):
    class A:
        x = property(lambda self: 0)

    a = A()
    return lambda: use(a.x), lambda v: setattr(A, "x", property(lambda self: v))


@place
def property_over_attribute(use):
    class A:
        pass

    a = A()
    a.x = 0
    return lambda: use(a.x), lambda v: setattr(A, "x", property(lambda self: v))


@place
def slot(use):
    class A:
        __slots__ = ("x",)

    a = A()
    a.x = 0
    return lambda: use(a.x), lambda v: setattr(a, "x", v)


@place
def descriptor(use):
    class D:
        def __init__(self):
            self.held = 0

        def __get__(self, obj, kind=None):
            return self.held

    d = D()

    class A:
        x = d

    a = A()
    return lambda: use(a.x), lambda v: setattr(d, "held", v)


@place
def getattr_hook(use):
    class A:
        def __init__(self):
            self.table = {"x": 0}

        def __getattr__(self, name):
            return self.table[name]

    a = A()
    return lambda: use(a.x), lambda v: a.table.__setitem__("x", v)


@place
def getattr_hook_hidden(use):
    class A:
        def __getattr__(self, name):
            return 0

    a = A()
    return lambda: use(a.x), lambda v: setattr(a, "x", v)


@place
def getattribute(use):
    class A:
        def __init__(self):
            self.x = 0

        def __getattribute__(self, name):
            return object.__getattribute__(self, name)

    a = A()
    return lambda: use(a.x), lambda v: setattr(a, "x", v)


@place
def computed_name(use):
    box = Box(long_name=0)
    return lambda: use(getattr(box, "_".join(("long", "name")))), lambda v: setattr(box, "long_name", v)


@place
def vars_item(use):
    box = Box(x=0)
    return lambda: use(vars(box)["x"]), lambda v: setattr(box, "x", v)


@place
def dict_of_object(use):
    box = Box(x=0)
    return lambda: use(box.__dict__["x"]), lambda v: box.__dict__.update(x=v)


@place
def attrgetter(use):
    box = Box(inner=Box(x=0))
    get = operator.attrgetter("inner.x")
    return lambda: use(get(box)), lambda v: setattr(box.inner, "x", v)


@place
def itemgetter(use):
    table = {"x": 0}
    return lambda: use(operator.itemgetter("x")(table)), lambda v: table.__setitem__("x", v)


@place
def methodcaller(use):
    box = Box(x=0)
    box.__class__ = type("Getter", (Box,), {"get": lambda self, name: getattr(self, name)})
    return lambda: use(operator.methodcaller("get", "x")(box)), lambda v: setattr(box, "x", v)


@pytest.mark.parametrize("name", PLACES.names())
def test_uses(name: str) -> None:
    PLACES.check(name)
