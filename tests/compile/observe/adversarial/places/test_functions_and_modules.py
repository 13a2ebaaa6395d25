"""Values behind methods, arguments of functions, and modules."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

import pytest

from tests.compile.observe.adversarial.places.uses import Places
from tests.compile.observe.adversarial.stories import Box

PLACES = Places()
place = PLACES.add


@place
def bound_method(use):
    class A:
        def __init__(self):
            self.x = 0

        def get(self):
            return self.x

    a = A()
    get = a.get
    return lambda: use(get()), lambda v: setattr(a, "x", v)


@place
def replaced_method(use):
    class A:
        def get(self):
            return 0

    a = A()
    return lambda: use(a.get()), lambda v: setattr(A, "get", lambda self: v)


@place
def method_on_object(use):
    class A:
        def get(self):
            return 0

    a = A()
    return lambda: use(a.get()), lambda v: setattr(a, "get", lambda: v)


@place
def method_of_base(use):
    class A:
        def get(self):
            return 0

    class B(A):
        def get(self):
            return super().get()

    b = B()
    return lambda: use(b.get()), lambda v: setattr(A, "get", lambda self: v)


@place
def inserted_method(use):
    class A:
        def get(self):
            return 0

    class B(A):
        pass

    b = B()
    return lambda: use(b.get()), lambda v: setattr(B, "get", lambda self: v)


@place
def static_method(use):
    class A:
        get = staticmethod(lambda: 0)

    return lambda: use(A().get()), lambda v: setattr(A, "get", staticmethod(lambda: v))


@place
def class_method(use):
    class A:
        x: Any = 0

        @classmethod
        def get(cls):
            return cls.x

    return lambda: use(A().get()), lambda v: setattr(A, "x", v)


@place
def metaclass_attribute(use):
    class M(type):
        x: Any = 0

    class A(metaclass=M):
        pass

    return lambda: use(A.x), lambda v: setattr(M, "x", v)


@place
def default_argument(use):
    def get(x=0):
        return x

    return lambda: use(get()), lambda v: setattr(get, "__defaults__", (v,))


@place
def keyword_default(use):
    def get(*, x=0):
        return x

    return lambda: use(get()), lambda v: setattr(get, "__kwdefaults__", {"x": v})


@place
def mutable_default(use):
    def get(x=[0]):
        return x[0]

    return lambda: use(get()), lambda v: get.__defaults__[0].__setitem__(0, v)


@place
def function_attribute(use):
    def get():
        return get.x

    get.x = 0
    return lambda: use(get()), lambda v: setattr(get, "x", v)


@place
def replaced_code(use):
    def get():
        return 0

    def assign(v):
        space: dict[str, Any] = {}
        exec(f"def made(): return {v!r}", space)
        get.__code__ = space["made"].__code__

    return lambda: use(get()), assign


@place
def partial_argument(use):
    box = Box(call=functools.partial(lambda x: x, 0))
    return lambda: use(box.call()), lambda v: setattr(box, "call", functools.partial(lambda x: x, v))


@place
def partial_keywords(use):
    call = functools.partial(lambda x: x, x=0)
    return lambda: use(call()), lambda v: call.keywords.update(x=v)


@place
def partial_method(use):
    class A:
        def _get(self, x):
            return x + self.extra if type(x) is int and type(self.extra) is int else self.extra

        get = functools.partialmethod(_get, 0)

    a = A()
    a.extra = 0
    return lambda: use(a.get()), lambda v: setattr(a, "extra", v)


@place
def module_attribute(use):
    module = types.ModuleType("made_for_test")
    module.x = 0
    return lambda: use(module.x), lambda v: setattr(module, "x", v)


@place
def imported_attribute(use):
    module = sys.modules.setdefault("tests_places_module", types.ModuleType("tests_places_module"))
    module.x = 0

    def f():
        import tests_places_module

        return use(tests_places_module.x)

    return f, lambda v: setattr(module, "x", v)


@place
def imported_name(use):
    module = sys.modules.setdefault("tests_places_other", types.ModuleType("tests_places_other"))
    module.x = 0

    def f():
        from tests_places_other import x

        return use(x)

    return f, lambda v: setattr(module, "x", v)


@place
def module_getattr(use):
    module = types.ModuleType("lazy")
    table = {"x": 0}
    module.__getattr__ = lambda name: table[name]
    return lambda: use(module.x), lambda v: table.__setitem__("x", v)


@pytest.mark.parametrize("name", PLACES.names())
def test_uses(name: str) -> None:
    PLACES.check(name)
