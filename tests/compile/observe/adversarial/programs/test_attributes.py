"""Properties, slots, descriptors, namespaces, and classes made inside of a function."""

from __future__ import annotations

import abc
import collections
import enum
import types

import pytest

from tests.compile.observe.adversarial.stories import Cases, story

CASES = Cases()
case, refused = CASES.add, CASES.refused


@case
def prop_raises_getattr():
    class K:
        on = False

        @property
        def p(self):
            if not self.on:
                raise AttributeError("no")
            return 1

        def __getattr__(self, n):
            return "hook " + n

    k = K()

    def f():
        return k.p, hasattr(k, "p"), getattr(k, "p", 3)

    return story(
        f,
        lambda: setattr(K, "on", True),
        lambda: setattr(K, "__getattr__", lambda s, n: "other"),
        lambda: setattr(K, "on", False),
    )


@case
def slot_empty_getattr():
    class K:
        __slots__ = ("a",)

        def __getattr__(self, n):
            return "hook " + n

    k = K()

    def f():
        return k.a

    return story(f, lambda: setattr(k, "a", 3), lambda: delattr(k, "a"))


@case
def slot_empty():
    class K:
        __slots__ = ("a",)

    k = K()

    def f():
        return hasattr(k, "a"), getattr(k, "a", None)

    return story(f, lambda: setattr(k, "a", 3), lambda: delattr(k, "a"))


@case
def slot_filled_inside():
    class K:
        __slots__ = ("a", "b")

    k = K()

    def f():
        if not hasattr(k, "a"):
            k.a = 0
        k.a += 1
        return k.a

    return story(f, lambda: setattr(k, "a", 30), lambda: delattr(k, "a"), state=lambda: getattr(k, "a", None))


@case
def descr_raises():
    class D:
        def __get__(s, i, o):
            if n[0]:
                raise AttributeError("x")
            return 5

        def __set__(s, i, v):
            pass

    n = [0]

    class K:
        d = D()

        def __getattr__(self, x):
            return "hook"

    k = K()

    def f():
        return k.d

    return story(f, lambda: n.__setitem__(0, 1), lambda: n.__setitem__(0, 0))


@case
def ns_del():
    o = types.SimpleNamespace(x=1)

    def f():
        r = hasattr(o, "x")
        if r:
            del o.x
        return r, hasattr(o, "x")

    return story(f, lambda: setattr(o, "x", 1), state=lambda: dict(vars(o)))


@case
def module_del():
    m = types.ModuleType("m")
    m.x = 1

    def f():
        r = hasattr(m, "x")
        m.y = r
        return r, hasattr(m, "y")

    return story(f, lambda: delattr(m, "x"), state=lambda: sorted(k for k in vars(m) if k[0] != "_"))


@case
def class_init_subclass():
    class B:
        v = 1

        def __init_subclass__(cls, **kw):
            cls.kw = kw
            B.count = getattr(B, "count", 0) + 1

    def f():
        class K(B, a=2):
            pass

        return K.kw, K.v, B.count

    return story(f, lambda: setattr(B, "v", 3), state=lambda: getattr(B, "count", 0))


@case
def class_set_name():
    log = []

    class D:
        def __set_name__(s, o, n):
            log.append(n)

        def __get__(s, i, o):
            return len(log)

    def f():
        class K:
            x = D()

        return K().x

    return story(f, lambda: log.append(1), state=lambda: len(log))


@case
def class_meta_new():
    log = []

    class M(type):
        def __new__(m, n, b, ns):
            log.append(n)
            return super().__new__(m, n, b, ns)

        def __init__(c, n, b, ns):
            log.append(len(log))
            super().__init__(n, b, ns)

    class B(metaclass=M):
        pass

    def f():
        class K(B):
            pass

        return K.__name__, len(log)

    return story(f, lambda: log.append(1), state=lambda: len(log))


@case
def class_type3_init_subclass():
    log = []

    class B:
        def __init_subclass__(cls):
            log.append(cls.__name__)

    def f():
        K = type("K", (B,), {})
        return K.__name__, len(log)

    return story(f, lambda: log.append(1), state=lambda: len(log))


@case
def class_prepare():
    log = []

    class M(type):
        @classmethod
        def __prepare__(m, n, b):
            log.append(n)
            return {}

    class B(metaclass=M):
        pass

    def f():
        class K(B):
            x = 1

        return K.x, len(log)

    return story(f, lambda: log.append(1), state=lambda: len(log))


@case
def class_mro_entries():
    log = []

    class B:
        pass

    class G:
        def __mro_entries__(s, bases):
            log.append(1)
            return (B,)

    g = G()

    def f():
        class K(g):
            pass

        return K.__mro__[1].__name__, len(log)

    return story(f, lambda: log.append(1), state=lambda: len(log))


@case
def class_enum_inside():
    n = [1]

    def f():
        class E(enum.Enum):
            A = n[0]

        return E.A.value

    return story(f, lambda: n.__setitem__(0, 2))


@refused("eval() looks at the frame or runs a text")
def class_namedtuple_inside():
    n = [1]

    def f():
        P = collections.namedtuple("P", "a b")
        return P(n[0], 2).a

    return story(f, lambda: n.__setitem__(0, 2))


@case
def class_abc_inside():
    n = [1]

    def f():
        class A(abc.ABC):
            @abc.abstractmethod
            def m(self): ...

        class B(A):
            def m(self):
                return n[0]

        try:
            A()
        except TypeError:
            return B().m()

    return story(f, lambda: n.__setitem__(0, 2))


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
