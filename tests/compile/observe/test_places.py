"""Every place a value can be read from, times every way to use it, through a series of changes: the same as Python."""

from __future__ import annotations

import collections
import contextvars
import dataclasses
import enum
import functools
import operator
import os
import sys
import types
import typing
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tests.compile.observe.observed import check

pytestmark = pytest.mark.suite


Set = Callable[[Any], None]
Place = Callable[[Callable[[Any], Any]], tuple[Callable[..., Any], Set]]
PLACES: dict[str, Place] = {}
ABSENT = object()


def place(build: Place) -> Place:
    PLACES[build.__name__] = build
    return build


class Box:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


GLOBAL = 0


@place
def global_name(use):
    globals().update(GLOBAL=0)
    return lambda: use(GLOBAL), lambda v: globals().update(GLOBAL=v)


@place
def cell(use):
    reference = 0

    def assign(v):
        nonlocal reference
        reference = v

    return lambda: use(reference), assign


@place
def outer_cell(use):
    reference = 0

    def outer():
        return lambda: use(reference)

    def assign(v):
        nonlocal reference
        reference = v

    return lambda: outer()(), assign


@place
def attribute(use):
    box = Box(x=0)
    return lambda: use(box.x), lambda v: setattr(box, "x", v)


@place
def nested_attribute(use):
    box = Box(inner=Box(x=0))
    return lambda: use(box.inner.x), lambda v: setattr(box.inner, "x", v)


@place
def replaced_owner(use):
    box = Box(inner=Box(x=0))
    return lambda: use(box.inner.x), lambda v: setattr(box, "inner", Box(x=v))


@place
def list_item(use):
    items = [0, 0]
    return lambda: use(items[1]), lambda v: items.__setitem__(1, v)


@place
def last_item(use):
    items = [0]
    return lambda: use(items[-1]), lambda v: items.append(v)


@place
def list_slice(use):
    items = [0, 0, 0]
    return lambda: use(items[1:][0]), lambda v: items.__setitem__(1, v)


@place
def dict_item(use):
    table = {"x": 0}
    return lambda: use(table["x"]), lambda v: table.__setitem__("x", v)


@place
def dict_get(use):
    table = {"x": 0}
    return lambda: use(table.get("x", -1)), lambda v: table.__setitem__("x", v)


@place
def dict_appearing(use):
    table: dict[str, Any] = {}
    return lambda: use(table.get("x", 0)), lambda v: table.__setitem__("x", v)


@place
def dict_values(use):
    table = {"x": 0}
    return lambda: use(next(iter(table.values()))), lambda v: table.__setitem__("x", v)


@place
def dict_items(use):
    table = {"x": 0}
    return lambda: [use(v) for _, v in table.items()], lambda v: table.__setitem__("x", v)


@place
def tuple_key(use):
    table = {(1, "a"): 0}
    return lambda: use(table[1, "a"]), lambda v: table.__setitem__((1, "a"), v)


@place
def default_dict(use):
    table: Any = collections.defaultdict(int)
    return lambda: use(table["x"]), lambda v: table.__setitem__("x", v)


@place
def deque_item(use):
    items = collections.deque([0])
    return lambda: use(items[0]), lambda v: items.appendleft(v)


@place
def user_dict(use):
    table = collections.UserDict(x=0)
    return lambda: use(table["x"]), lambda v: table.__setitem__("x", v)


@place
def user_list(use):
    items = collections.UserList([0])
    return lambda: use(items[0]), lambda v: items.__setitem__(0, v)


@place
def chain_map(use):
    table = collections.ChainMap({}, {"x": 0})
    return lambda: use(table["x"]), lambda v: table.maps[0].__setitem__("x", v)


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


def _match(v):
    match v:
        case 1:
            return "one"
        case bool() | str():
            return "bool or text"
        case None:
            return "none"
        case _:
            return "other"


USES: dict[str, Callable[[Any], Any]] = {
    "value": lambda v: v,
    "sum": lambda v: v + 1,
    "truth": lambda v: "yes" if v else "no",
    "and_or": lambda v: (v and 5) or (not v),
    "equal": lambda v: (v == 1, v != 2),
    "none": lambda v: v is None,
    "not_none": lambda v: 3 if v is not None else 4,
    "text": lambda v: f"{v!r:>5}",
    "type": lambda v: type(v).__name__,
    "instance": lambda v: (isinstance(v, int), isinstance(v, (str, float))),
    "match": _match,
    "member": lambda v: v in (1, "1", 1.0),
    "key": lambda v: {v: 7}.get(1, "no"),
    "minus": lambda v: -v,
}


TOGETHER = 3  # uses of one place; neighbours have others, so that each use meets every fifth place


@pytest.mark.parametrize("name", PLACES)
def test_place(name: str) -> None:
    start = list(PLACES).index(name) * TOGETHER
    uses = list(USES.values())
    for i in range(start, start + TOGETHER):
        _check_place(PLACES[name], uses[i % len(uses)])


def _check_place(place: Place, use: Callable[[Any], Any]) -> None:
    def make() -> Any:
        function, assign = place(use)
        call: Any = ((), {})
        steps: list[Any] = [call, call]
        for value in (1, 2, True, 1.0, "1", None, 1):
            steps += [functools.partial(assign, value), call, call]
        return function, steps

    target = check(make)
    assert target is not None
    calls = 2 * (1 + 7)
    if not target.raised:
        assert target.runs <= calls // 2, "a call right after another ran again"
