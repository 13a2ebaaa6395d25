"""Functions in classes of their own: generators, patterns, classes made inside, slots, descriptors, failing imports ...

Each is called warm, the world is changed, and it is called again, beside the plain function in an equal world.
"""

from __future__ import annotations

import abc
import builtins
import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import math
import operator
import os
import random
import string
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tests.compile.observe.observed import check

CALL: Any = ((), {})
CASES: list[Any] = []


def case(make: Any) -> Any:
    CASES.append(pytest.param(make, None, id=make.__name__))
    return make


def refused(reason: str) -> Callable[[Any], Any]:
    def add(make: Any) -> Any:
        CASES.append(pytest.param(make, reason, id=make.__name__))
        return make

    return add


def story(function: Any, *changes: Any, state: Any = lambda: None, warm: int = 2) -> Any:
    """Calls, and after each change two more."""
    steps = [CALL] * warm
    for change in changes:
        steps += [change, CALL, CALL]
    return function, steps, state


# Classes and attributes -----------------------------------------------------------------------------------------------


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


# Control flow, generators, patterns and the library -------------------------------------------------------------------


@case
def gen_send():
    w = {"k": 1}

    def f():
        def g():
            total = 0
            while True:
                got = yield total
                if got is None:
                    return total
                total += got * w["k"]

        it = g()
        next(it)
        it.send(2)
        it.send(3)
        try:
            it.send(None)
        except StopIteration as e:
            return e.value

    return story(f, lambda: w.update(k=5))


@case
def gen_close_finally():
    log = []
    n = [3]

    def f():
        def g():
            try:
                for i in range(10):
                    yield i
            finally:
                log.append(n[0])

        out = []
        it = g()
        for x in it:
            if x >= n[0]:
                break
            out.append(x)
        it.close()
        return out

    return story(f, lambda: n.__setitem__(0, 5), state=lambda: list(log))


@case
def gen_throw():
    d = {"a": 1}

    def f():
        def g():
            try:
                yield 1
            except ValueError as e:
                yield d["a"] + len(str(e))

        it = g()
        next(it)
        return it.throw(ValueError("abc"))

    return story(f, lambda: d.update(a=7))


@case
def gen_delegate_return():
    L = [1, 2, 3]

    def f():
        def inner():
            r = 0
            for x in L:
                r += x
                yield x
            return r

        def outer():
            r = yield from inner()
            yield r * 10

        return list(outer())

    return story(f, lambda: L.append(4), lambda: L.__setitem__(0, 9))


@case
def gen_expr_closure_late():
    k = [1]

    def f():
        g = (x * k[0] for x in (1, 2, 3))
        k2 = k[0]
        return sum(g) + k2

    return story(f, lambda: k.__setitem__(0, 4))


@case
def it_chain_islice():
    a = [1, 2]
    b = (3, 4)
    w = types.SimpleNamespace(a=a, b=b, n=3)

    def f():
        return list(itertools.islice(itertools.chain(w.a, w.b), w.n))

    return story(f, lambda: a.append(9), lambda: setattr(w, "n", 4), lambda: setattr(w, "b", (7, 8)))


@case
def it_groupby():
    L = ["a", "ab", "b"]

    def f():
        return [(k, list(g)) for k, g in itertools.groupby(L, key=lambda x: x[0])]

    return story(f, lambda: L.append("c"), lambda: L.insert(0, "b"))


@case
def it_accumulate():
    L = [1, 2, 3]
    op = [operator.add]

    def f():
        return list(itertools.accumulate(L, op[0]))

    return story(f, lambda: L.append(5), lambda: op.__setitem__(0, operator.mul))


@case
def it_product_cycle():
    L = [1, 2]

    def f():
        c = itertools.cycle(L)
        return [next(c) for _ in range(5)], list(itertools.product(L, repeat=2)), list(itertools.combinations(L, 2))

    return story(f, lambda: L.append(3))


@case
def it_takewhile_dropwhile():
    L = [1, 2, 5, 1]
    t = [3]

    def f():
        return list(itertools.takewhile(lambda x: x < t[0], L)), list(itertools.dropwhile(lambda x: x < t[0], L))

    return story(f, lambda: t.__setitem__(0, 6), lambda: L.insert(0, 4))


@case
def it_zip_longest_fill():
    a = [1, 2, 3]
    b = [4]
    fv = [0]

    def f():
        return list(itertools.zip_longest(a, b, fillvalue=fv[0]))

    return story(f, lambda: b.append(2), lambda: fv.__setitem__(0, -1))


@case
def it_tee():
    L = [1, 2]

    def f():
        a, b = itertools.tee(L)
        next(a)
        return list(a), list(b)

    return story(f, lambda: L.append(3))


@case
def it_pairwise_batched():
    L = [1, 2, 3]

    def f():
        return (
            list(itertools.pairwise(L)),
            list(itertools.compress(L, [1, 0, 1])),
            list(itertools.filterfalse(lambda x: x % 2, L)),
            list(itertools.starmap(pow, [(x, 2) for x in L])),
        )

    return story(f, lambda: L.append(4))


@refused("'z' is an iterator made outside, which the function advances")
def zip_outside():
    a = [1, 2, 3]
    z = zip(a, a)

    def f():
        return next(z, None)

    return story(f)


@case
def reversed_inside():
    a = [1, 2, 3]
    d = {1: 2, 3: 4}

    def f():
        return list(reversed(a)), list(reversed(d)), [*reversed(range(len(a)))]

    return story(f, lambda: a.append(7), lambda: d.update({9: 9}))


@case
def dict_views_outside():
    d = {1: 2}
    k = d.keys()
    v = d.values()
    it = d.items()

    def f():
        return list(k), list(v), 3 in k

    return story(f, lambda: d.update({3: 4}))


@case
def walrus_comp():
    L = [1, 2, 3]
    lim = [2]

    def f():
        return [y for x in L if (y := x * 2) > lim[0]], y if False else 0

    return story(f, lambda: lim.__setitem__(0, 4))


@case
def walrus_while():
    L = [3, 2, 1]
    i = [0]

    def f():
        n = 0
        j = 0
        while (v := L[j]) > i[0]:
            n += v
            j += 1
        return n

    return story(lambda: f() if i[0] > 0 else 0, lambda: i.__setitem__(0, 1), lambda: i.__setitem__(0, 2))


@case
def match_seq():
    box = [[1, 2, 3]]

    def f():
        match box[0]:
            case [1, *rest]:
                return ("one", rest)
            case [a, b]:
                return (a, b)
            case _:
                return None

    return story(f, lambda: box.__setitem__(0, [4, 5]), lambda: box[0].append(5), lambda: box.__setitem__(0, (1, 7)))


@case
def match_map():
    d = {"kind": "a", "v": 1}

    def f():
        match d:
            case {"kind": "a", "v": v, **rest}:
                return v, rest
            case {"kind": k}:
                return k
            case {}:
                return 0

    return story(f, lambda: d.update(z=3), lambda: d.update(kind="b"), lambda: d.pop("kind"))


@case
def match_cls():
    @dataclasses.dataclass
    class P:
        x: int
        y: int

    p = [P(1, 2)]

    def f():
        match p[0]:
            case P(1, y):
                return y
            case P(x=x, y=0):
                return -x
            case int(n):
                return n
            case str() as t:
                return t
            case None:
                return "n"
            case _:
                return "other"

    return story(
        f,
        lambda: setattr(p[0], "y", 5),
        lambda: setattr(p[0], "x", 3),
        lambda: setattr(p[0], "y", 0),
        lambda: p.__setitem__(0, 4),
        lambda: p.__setitem__(0, "s"),
        lambda: p.__setitem__(0, None),
    )


@case
def match_match_args_changes():
    class P:
        __match_args__ = ("a", "b")

        def __init__(s):
            s.a = 1
            s.b = 2

    p = P()

    def f():
        match p:
            case P(u, v):
                return u, v

    return story(f, lambda: setattr(P, "__match_args__", ("b", "a")))


@case
def match_guard_value():
    class K:
        A = 1

    st = [1]
    lim = [0]

    def f():
        match st[0]:
            case K.A if lim[0]:
                return "g"
            case K.A:
                return "A"
            case 1 | 2:
                return "12"
            case -1.5:
                return "f"
            case _:
                return "_"

    return story(
        f,
        lambda: lim.__setitem__(0, 1),
        lambda: setattr(K, "A", 2),
        lambda: st.__setitem__(0, -1.5),
        lambda: st.__setitem__(0, True),
    )


@refused("async_by_hand.<locals>.g is asynchronous")
def async_by_hand():
    v = [1]

    async def g():
        return v[0]

    def f():
        co = g()
        try:
            co.send(None)
        except StopIteration as e:
            return e.value

    return story(f, lambda: v.__setitem__(0, 3))


@case
def nested_nonlocal():
    def make():
        n = 0

        def inc(by):
            nonlocal n

            def really():
                nonlocal n
                n += by
                return n

            return really()

        return inc, lambda: n

    inc, get = make()

    def f():
        return inc(2), get()

    return story(f, lambda: inc(10), state=get)


@refused("the variable n outside gets its first value")
def nonlocal_del():
    def make():
        n = 5

        def f():
            nonlocal n
            try:
                v = n
            except NameError:
                v = None
            n = 6
            return v

        def d():
            nonlocal n
            del n

        return f, d

    f, d = make()
    return story(f, d)


@case
def class_body():
    base = [1]

    def f():
        class K:
            x = base[0]
            y = [x + i for i in range(2)]

            def m(self):
                return self.x + len(self.y)

            z = property(lambda self: self.x)

        return K().m(), K.z.fget(K()), K.__name__, K.__qualname__

    return story(f, lambda: base.__setitem__(0, 9))


@case
def dynamic_type3():
    n = ["a"]

    def f():
        K = type("K", (), {n[0]: 1, "m": lambda self: 2})
        return hasattr(K(), "a"), K().m()

    return story(f, lambda: n.__setitem__(0, "b"))


@case
def slots_inherit():
    class P:
        __slots__ = ("a",)

    class Q(P):
        __slots__ = ("c", "__dict__")

    q = Q()
    q.a = 1
    q.c = 2
    q.d = 3

    def f():
        q.c += q.a
        q.d += 1
        q.e = q.c
        return q.a, q.c, q.d, sorted(q.__dict__)

    return story(f, lambda: setattr(q, "a", 4), state=lambda: (q.a, q.c, dict(q.__dict__)))


@case
def weakref_die():
    class O:
        v = 1

    o = [O()]
    r = weakref.ref(o[0])

    def f():
        x = r()
        return None if x is None else x.v

    return story(f, lambda: setattr(O, "v", 2), lambda: o.clear())


@refused("'w.data' has a ReferenceType as a key")
def weakkeydict():
    class O:
        pass

    o = O()
    w = weakref.WeakKeyDictionary({o: 1})

    def f():
        return w.get(o), len(w), o in w

    return story(f, lambda: w.__setitem__(o, 4))


@case
def weakvaluedict():
    class O:
        def __init__(s):
            s.n = 1

    o = O()
    w = weakref.WeakValueDictionary({"k": o})

    def f():
        x = w.get("k")
        return x.n if x is not None else None

    return story(f, lambda: setattr(o, "n", 4))


@refused("'a member of w.data' is a weak reference, such as WeakSet and WeakKeyDictionary hold")
def weakset():
    class O:
        pass

    o = O()
    w = weakref.WeakSet([o])
    l = [o]

    def f():
        return len(w), o in w

    return story(f, lambda: l.append(O()) or w.add(l[-1]))


@refused("'p' is a weak proxy, whose object may be gone or changed unseen")
def weakproxy():
    class O:
        pass

    o = O()
    o.v = 1
    p = weakref.proxy(o)

    def f():
        return p.v

    return story(f, lambda: setattr(o, "v", 4))


@case
def cached_prop():
    class K:
        n = 1

        @functools.cached_property
        def v(self):
            return self.n * 10

    k = K()

    def f():
        return k.v

    return story(
        f,
        lambda: setattr(K, "n", 2),
        lambda: k.__dict__.pop("v", None),
        lambda: k.__dict__.__setitem__("v", 77),
        state=lambda: dict(k.__dict__),
    )


@case
def lru_changed():
    w = [1]

    @functools.lru_cache(maxsize=None)
    def g(x):
        return x * w[0]

    def f():
        return g(2) + g(3)

    return story(f, lambda: w.__setitem__(0, 5), lambda: g.cache_clear(), lambda: g(2))


@refused("lru_method.<locals>.K.g keeps results for objects")
def lru_method():
    class K:
        def __init__(s):
            s.n = 1

        @functools.lru_cache
        def g(self, x):
            return self.n * x

    k = K()

    def f():
        return k.g(2)

    return story(f, lambda: setattr(k, "n", 4), lambda: K.g.cache_clear())


@refused("functools._lru_cache_wrapper() is written in C, and nobody knows what it reads")
def fcache_inside():
    n = [1]

    def f():
        @functools.cache
        def fib(k):
            return k if k < 2 else fib(k - 1) + fib(k - 2)

        return fib(10) * n[0]

    return story(f, lambda: n.__setitem__(0, 2))


@case
def cm_suppress():
    d = {}

    def f():
        with contextlib.suppress(KeyError):
            return d["x"]
        return "none"

    return story(f, lambda: d.update(x=1))


@case
def cm_nullcontext():
    v = [contextlib.nullcontext(3)]

    def f():
        with v[0] as x:
            return x

    return story(f, lambda: v.__setitem__(0, contextlib.nullcontext(5)))


@case
def cm_gen_outside_state():
    stack = []

    @contextlib.contextmanager
    def ctx(n):
        stack.append(n)
        try:
            yield len(stack)
        finally:
            stack.pop()

    def f():
        with ctx(1) as a, ctx(2) as b:
            return a, b

    return story(f, lambda: stack.append(9), state=lambda: list(stack))


@case
def cm_decorator():
    log = []

    class D(contextlib.ContextDecorator):
        def __enter__(s):
            log.append("in")
            return s

        def __exit__(s, *a):
            log.append("out")
            return False

    @D()
    def g(x):
        return x + len(log)

    def f():
        return g(1)

    return story(f, lambda: log.clear(), state=lambda: list(log))


@case
def cm_exitstack_cb():
    log = []

    def f():
        with contextlib.ExitStack() as st:
            st.callback(log.append, 1)
            st.callback(lambda: log.append(len(log)))
            return len(log)

    return story(f, lambda: log.clear(), state=lambda: list(log))


@case
def cm_swallow():
    on = [True]

    class S:
        def __enter__(s):
            return s

        def __exit__(s, t, v, tb):
            return on[0]

    def f():
        with S():
            raise ValueError("x")
        return "swallowed"

    return story(f, lambda: on.__setitem__(0, False))


@case
def dc_replace():
    @dataclasses.dataclass(frozen=True)
    class P:
        x: int = 1
        y: int = 2

        def __post_init__(self):
            object.__setattr__(self, "z", self.x + self.y + K[0])

    K = [0]
    p = [P()]

    def f():
        q = dataclasses.replace(p[0], x=5)
        return q.x, q.y, q.z

    return story(f, lambda: K.__setitem__(0, 3), lambda: p.__setitem__(0, P(7, 8)))


@case
def dc_asdict():
    @dataclasses.dataclass
    class P:
        x: int = 1
        l: list = dataclasses.field(default_factory=list)

    p = P()

    def f():
        return dataclasses.asdict(p), dataclasses.astuple(p), [fl.name for fl in dataclasses.fields(p)]

    return story(f, lambda: p.l.append(1), lambda: setattr(p, "x", 9))


@case
def dc_order_hash():
    @dataclasses.dataclass(order=True, frozen=True)
    class P:
        x: int
        y: int = 0

    L = [P(2), P(1)]

    def f():
        return sorted(L)[0].x, max(L).x, hash(L[0]) == hash(P(2)), P(1) in L, {P(2): 1}[L[0]]

    return story(f, lambda: L.append(P(0)), lambda: L.append(P(9)))


@case
def enum_flag():
    class F(enum.Flag):
        A = 1
        B = 2
        C = 4

    v = [F.A]

    def f():
        return (v[0] | F.B).value, F.A in v[0], bool(v[0] & F.C), v[0].name, len(F), list(F)[0].name

    return story(f, lambda: v.__setitem__(0, F.C | F.A))


@case
def enum_by_name():
    class E(enum.Enum):
        A = 1
        B = 2

        @property
        def dbl(self):
            return self.value * k[0]

    k = [2]
    n = ["A"]

    def f():
        return E[n[0]].dbl, E(1) is E.A, E.__members__["B"].value

    return story(f, lambda: k.__setitem__(0, 3), lambda: n.__setitem__(0, "B"))


@case
def enum_missing():
    class E(enum.Enum):
        A = 1

        @classmethod
        def _missing_(cls, v):
            return cls.A if flag[0] else None

    flag = [True]

    def f():
        try:
            return E(9).name
        except ValueError as e:
            return str(e)

    return story(f, lambda: flag.__setitem__(0, False))


@case
def strenum():
    class E(str, enum.Enum):
        A = "a"

    class G(enum.IntEnum):
        X = 1

    class H(enum.StrEnum):
        P = enum.auto()

    v = ["a"]

    def f():
        return (
            E.A == v[0],
            f"{E.A.value}-{H.P}",
            G.X + 1,
            G.X == 1,
            [10, 20][G.X],
            {H.P: 1}.get("p"),
            str(G.X),
            f"{G.X:03d}",
        )

    return story(f, lambda: v.__setitem__(0, "b"))


@case
def fmt_outside():
    class K:
        def __init__(s):
            s.a = {"b": [1, 2]}

        def __format__(s, sp):
            return f"<{sp}:{len(s.a)}>"

    k = K()
    w = [3]

    def f():
        return (
            f"{k.a['b'][1]:>{w[0]}}|{k:x}|{k.a!r:.5}",
            "{0.a[b]} {x:{y}}".format(k, x=1, y=w[0]),
            "%s %05d" % (k.a, w[0]),
            "%(q)s" % {"q": w},
        )

    return story(f, lambda: w.__setitem__(0, 6), lambda: k.a["b"].append(3), lambda: k.a.update(c=1))


@case
def template_join():
    L = ["a", "b"]
    t = string.Template("$x-$y")
    sep = [","]

    def f():
        return sep[0].join(L), t.substitute(x=L[0], y=L[1]), "a,b".split(sep[0])

    return story(f, lambda: L.__setitem__(1, "z"), lambda: sep.__setitem__(0, ";"))


@case
def global_del():
    g = {"__builtins__": builtins}
    exec(
        "X=1\ndef f():\n    global X\n    try:\n        v=X\n        del X\n    except NameError:\n        v=None\n        X=2\n    return v",
        g,
    )
    return story(g["f"], lambda: g.__setitem__("X", 9), state=lambda: g.get("X"))


@case
def builtin_monkey():
    g = {"__builtins__": builtins}
    exec("def f(): return max(1,2), len([1])", g)
    return story(g["f"], lambda: g.__setitem__("max", min), lambda: g.pop("max"))


@case
def del_stuff():
    d = {"a": 1, "b": 2}
    l = [1, 2, 3, 4]
    o = types.SimpleNamespace(x=1)

    def f():
        if "a" in d:
            del d["a"]
        del l[-1:]
        if hasattr(o, "x"):
            del o.x
        return len(d), len(l), hasattr(o, "x")

    return story(
        f,
        lambda: d.update(a=5),
        lambda: l.extend([1, 2]),
        lambda: setattr(o, "x", 1),
        state=lambda: (dict(d), list(l), vars(o).copy()),
    )


# Calls, errors, classes, numbers and containers -----------------------------------------------------------------------


@case
def star_args():
    a = [1, 2]
    k = {"z": 3}

    def g(*p, q=0, **kw):
        return p, q, sorted(kw.items())

    def f():
        return g(*a, *(9,), q=len(a), **k, **{"w": 1})

    return story(f, lambda: a.append(5), lambda: k.update(y=2))


@case
def kwonly_default_mut():
    def g(*, x=[1], y={"a": 1}):
        x.append(len(x))
        return len(x), y["a"]

    def f():
        return g()

    return story(
        f,
        lambda: g.__kwdefaults__["y"].update(a=9),
        lambda: g.__kwdefaults__.__setitem__("x", [7, 7, 7]),
        lambda: setattr(g, "__kwdefaults__", {"x": [0], "y": {"a": 0}}),
        state=lambda: list(g.__kwdefaults__["x"]),
    )


@case
def defaults_rebind():
    def g(x=1, y=2):
        return x + y

    def f():
        return g()

    return story(
        f, lambda: setattr(g, "__defaults__", (5, 6)), lambda: setattr(g, "__code__", (lambda x=0, y=0: x * y).__code__)
    )


@case
def exc_inside():
    d = {"a": 1}

    def f():
        try:
            return d["b"]
        except KeyError as e:
            return "miss", e.args[0], type(e).__name__
        finally:
            d["n"] = d.get("n", 0) + 1

    return story(f, lambda: d.update(b=3), state=lambda: dict(d))


@case
def exc_chain():
    L = []

    def f():
        try:
            try:
                L[0]
            except IndexError as e:
                raise ValueError("x") from e
        except ValueError as v:
            return str(v), type(v.__cause__).__name__, v.__suppress_context__
        return "ok"

    return story(f, lambda: L.append(1))


@case
def exc_note_group():
    n = [0]

    def f():
        try:
            raise ExceptionGroup("g", [ValueError(n[0]), TypeError("t")])
        except* ValueError as g:
            r = g.exceptions[0].args
        except* TypeError:
            r = r + (1,)
        return r

    return story(f, lambda: n.__setitem__(0, 4))


@case
def exc_custom():
    class E(Exception):
        code = 3

        def __init__(s, m):
            super().__init__(m)
            s.m = m

        def __str__(s):
            return f"{s.m}:{s.code}"

    m = ["a"]

    def f():
        try:
            raise E(m[0])
        except E as e:
            return str(e), e.code, repr(e)

    return story(f, lambda: setattr(E, "code", 5), lambda: m.__setitem__(0, "b"))


@case
def exc_escapes_with_effect():
    n = [0]

    def f():
        n[0] += 1
        if n[0] % 2:
            raise RuntimeError(f"odd {n[0]}")
        return n[0]

    return story(f, lambda: n.__setitem__(0, 7), state=lambda: n[0])


@case
def finally_return():
    log = []

    def f():
        for i in range(3):
            try:
                log.append(i)
                if i == len(log):
                    continue
                if i == 2:
                    return "r"
            finally:
                log.append("f")
        return "e"

    return story(f, lambda: log.clear(), state=lambda: list(log))


@case
def else_for_while():
    L = [1, 2]

    def f():
        for x in L:
            if x == 9:
                break
        else:
            return "none"
        return "found"

    return story(f, lambda: L.append(9), lambda: L.clear())


@case
def recursion_mut():
    memo = {}

    def fib(n):
        if n in memo:
            return memo[n]
        memo[n] = n if n < 2 else fib(n - 1) + fib(n - 2)
        return memo[n]

    def f():
        return fib(6)

    return story(f, lambda: memo.clear(), lambda: memo.update({6: 100}), state=lambda: dict(memo))


@case
def tree_recursion():
    t = {"v": 1, "c": [{"v": 2, "c": []}]}

    def tot(n):
        return n["v"] + sum(tot(c) for c in n["c"])

    def f():
        return tot(t)

    return story(f, lambda: t["c"][0]["c"].append({"v": 5, "c": []}), lambda: t["c"].clear())


@case
def prop_setter_valid():
    class K:
        def __init__(s):
            s._v = 0

        @property
        def v(s):
            return s._v

        @v.setter
        def v(s, x):
            if x > 3:
                raise ValueError("big")
            s._v = x

    k = K()

    def f():
        try:
            k.v += 1
        except ValueError:
            k._v = 0
        return k.v

    return story(f, lambda: setattr(k, "_v", 3), state=lambda: k._v)


@case
def super_multi():
    class A:
        def m(s):
            return ["A"]

    class B(A):
        def m(s):
            return ["B"] + super().m()

    class Cc(A):
        def m(s):
            return ["C"] + super().m()

    class D(B, Cc):
        def m(s):
            return ["D"] + super().m()

    d = D()

    def f():
        return d.m()

    return story(
        f, lambda: setattr(Cc, "m", lambda s: ["C2"]), lambda: setattr(D, "__bases__", (Cc, B)), lambda: delattr(B, "m")
    )


@case
def super_class_attr():
    class A:
        x = [1]

    class B(A):
        @classmethod
        def g(cls):
            return super().x, cls.x

        @property
        def p(s):
            return super().x[0]

    b = B()

    def f():
        return B.g()[0][0], b.p

    return story(f, lambda: A.x.__setitem__(0, 4), lambda: setattr(A, "x", [8]))


@case
def meta_call():
    class M(type):
        def __call__(cls, *a):
            cls.n = getattr(cls, "n", 0) + 1
            return super().__call__(*a)

    class K(metaclass=M):
        def __init__(s, v):
            s.v = v

    def f():
        return K(1).v, K.n

    return story(f, lambda: setattr(K, "n", 10), state=lambda: getattr(K, "n", 0))


@case
def meta_getitem_iter_len():
    class M(type):
        items = [1, 2]

        def __getitem__(c, i):
            return c.items[i]

        def __iter__(c):
            return iter(c.items)

        def __len__(c):
            return len(c.items)

        def __contains__(c, v):
            return v in c.items

        def __bool__(c):
            return len(c.items) > 1

    class K(metaclass=M):
        pass

    def f():
        return K[0], list(K), len(K), 5 in K, bool(K), 1 if K else 0

    return story(f, lambda: M.items.append(5), lambda: M.items.__delitem__(slice(1, None)))


@case
def descr_nondata_shadow():
    class D:
        def __get__(s, i, o):
            return k[0]

    k = [1]

    class K:
        d = D()

    o = K()

    def f():
        return o.d

    return story(f, lambda: k.__setitem__(0, 2), lambda: o.__dict__.__setitem__("d", 77), lambda: setattr(K, "d", 5))


@case
def descr_set_delete():
    log = []

    class D:
        def __get__(s, i, o):
            return i.__dict__.get("_d", 0)

        def __set__(s, i, v):
            i.__dict__["_d"] = v
            log.append(v)

        def __delete__(s, i):
            i.__dict__.pop("_d", None)
            log.append("del")

    class K:
        d = D()

    o = K()

    def f():
        o.d += 1
        r = o.d
        if r > 2:
            del o.d
        return r

    return story(f, lambda: setattr(o, "d", 10), state=lambda: (list(log), dict(vars(o))))


@case
def module_reload():
    m = types.ModuleType("made_module")
    exec("def g(): return 1\nK=5", m.__dict__)
    sys.modules["made_module"] = m

    def f():
        import made_module

        return made_module.g(), made_module.K

    def reload():
        exec("def g(): return 2\nK=6", m.__dict__)

    def repl():
        n = types.ModuleType("made_module")
        exec("def g(): return 3\nK=7", n.__dict__)
        sys.modules["made_module"] = n

    return story(f, reload, repl)


@case
def from_import_inside():
    m = types.ModuleType("second_module")
    m.K = 1
    sys.modules["second_module"] = m

    def f():
        from second_module import K

        return K

    return story(f, lambda: setattr(m, "K", 3), lambda: sys.modules.pop("second_module", None))


@case
def import_fail_caught():
    def f():
        try:
            import absent_module

            return absent_module.K
        except ImportError:
            return None

    def add():
        m = types.ModuleType("absent_module")
        m.K = 1
        sys.modules["absent_module"] = m

    return (lambda r: (sys.modules.pop("absent_module", None), r)[1])(story(f, add))


@case
def monkey_global_fn():
    g = {"__builtins__": builtins}
    exec("def h(x): return x+1\ndef f(): return h(1)", g)
    return story(
        g["f"], lambda: g.__setitem__("h", lambda x: x * 10), lambda: g.__setitem__("h", max.__call__ if 0 else abs)
    )


@case
def monkey_method_instance():
    class K:
        def m(s):
            return 1

    k = K()

    def f():
        return k.m()

    return story(
        f,
        lambda: setattr(k, "m", lambda: 2),
        lambda: delattr(k, "m"),
        lambda: setattr(K, "m", staticmethod(lambda: 3)),
        lambda: setattr(K, "m", classmethod(lambda c: c.__name__)),
    )


@case
def sort_key():
    L = [3, 1, 2]
    sign = [1]

    def f():
        return (
            sorted(L, key=lambda x: x * sign[0]),
            min(L, key=lambda x: -x * sign[0]),
            max(L, key=lambda x: x % 3, default=0),
        )

    return story(f, lambda: sign.__setitem__(0, -1), lambda: L.append(9))


@case
def sort_key_method_obj():
    class K:
        def __init__(s, n):
            s.n = n

        def key(s):
            return s.n * w[0]

        def __lt__(s, o):
            return s.n < o.n

        def __repr__(s):
            return f"K{s.n}"

    w = [1]
    L = [K(2), K(1)]

    def f():
        return [k.n for k in sorted(L, key=K.key)], min(L).n, [k.n for k in sorted(L, reverse=True)]

    return story(
        f,
        lambda: w.__setitem__(0, -1),
        lambda: setattr(L[0], "n", 0),
        lambda: setattr(K, "__lt__", lambda s, o: s.n > o.n),
    )


@case
def cmp_to_key():
    L = [1, 3, 2]
    d = [1]

    def f():
        return sorted(L, key=functools.cmp_to_key(lambda a, b: d[0] * (a - b)))

    return story(f, lambda: d.__setitem__(0, -1))


@refused("Python's random numbers are drawn (Random.random)")
def rnd_state_outside():
    r = random.Random(1)

    def f():
        return r.random()

    return story(f)


@case
def env_reads():
    os.environ.pop("RUNNEL_TEST_NAME", None)

    def f():
        return os.environ.get("RUNNEL_TEST_NAME"), "RUNNEL_TEST_NAME" in os.environ, os.getenv("RUNNEL_TEST_NAME", "d")

    return story(f, lambda: os.environ.__setitem__("RUNNEL_TEST_NAME", "1"), lambda: os.environ.pop("RUNNEL_TEST_NAME"))


@case
def deco_wraps():
    n = [0]

    def deco(k):
        def d(fn):
            @functools.wraps(fn)
            def w(*a, **kw):
                n[0] += k
                return fn(*a, **kw)

            return w

        return d

    @deco(2)
    def g(x):
        return x + n[0]

    def f():
        return g(1), g.__name__

    return story(f, lambda: n.__setitem__(0, 50), state=lambda: n[0])


@case
def deco_class():
    class Count:
        def __init__(s, fn):
            functools.update_wrapper(s, fn)
            s.fn = fn
            s.n = 0

        def __call__(s, *a):
            s.n += 1
            return s.fn(*a)

        def __get__(s, i, o=None):
            return functools.partial(s, i) if i is not None else s

    class K:
        @Count
        def m(self, x):
            return x + self.b

    k = K()
    k.b = 1

    def f():
        return k.m(2), K.m.n

    return story(f, lambda: setattr(k, "b", 5), state=lambda: K.m.n)


@case
def operator_overload_inplace():
    class V:
        def __init__(s, x):
            s.x = x

        def __iadd__(s, o):
            s.x += o
            return s

        def __add__(s, o):
            return V(s.x + o)

        __radd__ = __add__

    v = V(1)

    def f():
        nonlocal v
        v += 1
        return (v + 1).x, (1 + v).x, sum([v, 2], 0).x if False else v.x

    return story(f, lambda: setattr(v, "x", 10), state=lambda: v.x)


@case
def int_cache_is():
    a = [257]

    def f():
        return a[0] == 257, a[0] is not None

    return story(f, lambda: a.__setitem__(0, None))


@refused("'m' is a memoryview, a view of something outside")
def memview():
    b = bytearray(b"abc")
    m = memoryview(b)

    def f():
        return m[0], len(m)

    return story(f, lambda: b.__setitem__(0, 90))


@case
def getattr_dyn_set():
    o = types.SimpleNamespace()
    names = ["a"]

    def f():
        for n in names:
            setattr(o, n, getattr(o, n, 0) + 1)
        return {n: getattr(o, n) for n in names}

    return story(f, lambda: names.append("b"), lambda: setattr(o, "a", 40), state=lambda: dict(vars(o)))


@case
def class_counter_sub():
    class A:
        reg = []

        def __init__(s):
            type(s).reg.append(len(type(s).reg))
            s.i = len(A.reg)

    class B(A):
        reg = [9]

    def f():
        return A().i, B().i, len(B.reg)

    return story(f, lambda: A.reg.clear(), state=lambda: (list(A.reg), list(B.reg)))


@case
def dict_order_iter_change():
    d = {"b": 1, "a": 2}

    def f():
        return [k for k in d], list(d.items())[0], next(iter(d)), d | {"z": 1}, dict(reversed(d.items()))

    return story(f, lambda: (d.pop("b"), d.__setitem__("b", 1)))


@case
def dict_mutated_in_iter():
    d = {1: 1}
    on = [0]

    def f():
        try:
            for k in d:
                if on[0]:
                    d[k + 10] = 1
        except RuntimeError as e:
            return str(e)
        return len(d)

    return story(f, lambda: on.__setitem__(0, 1), state=lambda: dict(d))


@case
def list_mutated_in_iter():
    L = [1, 2, 3]

    def f():
        out = []
        for x in L:
            out.append(x)
            if x == 2 and len(L) < 6:
                L.append(9)
        return out

    return story(f, lambda: L.insert(0, 2), state=lambda: list(L))


@case
def set_iter_small():
    S = {1, 2}

    def f():
        return sorted(S), sum(S), 5 in S, S & {1, 5}, S <= {1, 2, 3}, len(S | {7})

    return story(f, lambda: S.add(5))


@refused("'d' has a frozenset as a key")
def frozen_keys():
    d = {frozenset({1}): 1, (1, "a"): 2, None: 3, True: 4, 1.5: 5}
    k = [frozenset({1})]

    def f():
        return d[k[0]], d[(1, "a")], d[None], d[1], d[1.5]

    return story(f, lambda: d.__setitem__(k[0], 9), lambda: d.__setitem__(True, 8), lambda: d.__setitem__((1, "a"), 7))


@case
def nan_keys_values():
    d = {"x": float("nan")}

    def f():
        return d["x"] != d["x"], -0.0 if d.get("y") else 0.0

    return story(f, lambda: d.update(y=1))


@case
def neg_zero():
    d = [0.0]

    def f():
        return math.copysign(1, d[0]), str(d[0])

    return story(f, lambda: d.__setitem__(0, -0.0), lambda: d.__setitem__(0, 0))


@case
def bool_int_swap():
    d = [1]

    def f():
        return d[0], type(d[0]).__name__, d[0] == True

    return story(f, lambda: d.__setitem__(0, True), lambda: d.__setitem__(0, 1.0))


@case
def big_ints():
    d = [1 << 70]

    def f():
        return d[0] + 1, d[0].bit_length(), -d[0] // 3

    return story(f, lambda: d.__setitem__(0, 1 << 71))


@case
def symbol_zero_div():
    n = [3]

    def f():
        n[0] -= 1
        try:
            return 6 // n[0]
        except ZeroDivisionError:
            return "z"

    return story(f, lambda: n.__setitem__(0, 1), warm=6, state=lambda: n[0])


@case
def symbol_as_index():
    n = [-1]
    L = [10, 20, 30]

    def f():
        n[0] = (n[0] + 1) % len(L)
        return L[n[0]], L[: n[0]], range(n[0]), "abc"[n[0]], [0] * n[0]

    return story(f, lambda: L.append(40), warm=6, state=lambda: n[0])


@case
def symbol_type_change():
    n = [1]

    def f():
        n[0] = n[0] + 1
        return n[0], type(n[0]).__name__, isinstance(n[0], int)

    return story(f, lambda: n.__setitem__(0, 2.5), lambda: n.__setitem__(0, True), warm=4, state=lambda: n[0])


@refused("a I made in the function leaves it")
def symbol_int_subclass():
    class I(int):
        def __add__(s, o):
            return I(int(s) + o + 100)

    n = [I(1)]

    def f():
        n[0] = n[0] + 1
        return int(n[0])

    return story(f, lambda: n.__setitem__(0, 3), warm=4, state=lambda: int(n[0]))


@case
def returned_alias():
    L = [1]
    d = {"l": L}

    def f():
        return d["l"] is L, d["l"], L

    return story(f, lambda: d.__setitem__("l", [1]))


@case
def returns_bound():
    class K:
        def m(s):
            return 1

    k = K()

    def f():
        return k.m.__self__ is k, k.m.__func__ is K.m, k.m == k.m

    return story(f, lambda: setattr(K, "m", lambda s: 2))


@case
def abc_register():
    class A(abc.ABC):
        pass

    class B:
        pass

    b = B()

    def f():
        return isinstance(b, A), issubclass(B, A)

    return story(f, lambda: A.register(B))


@case
def isinstance_hook():
    on = [True]

    class M(type):
        def __instancecheck__(c, o):
            return on[0]

    class K(metaclass=M):
        pass

    def f():
        return isinstance(3, K)

    return story(f, lambda: on.__setitem__(0, False))


@case
def class_swap():
    class A:
        def m(s):
            return 1

    class B:
        def m(s):
            return 2

    o = A()

    def f():
        return o.m(), type(o).__name__

    return story(f, lambda: setattr(o, "__class__", B))


@case
def dict_swap():
    class A:
        pass

    o = A()
    o.x = 1

    def f():
        return o.x, vars(o)["x"], o.__dict__.get("y")

    return story(f, lambda: setattr(o, "__dict__", {"x": 5, "y": 6}))


@case
def annotations_read():
    class A:
        x: int = 1

    def f():
        return sorted(A.__annotations__), A.x

    return story(f, lambda: A.__annotations__.update(y=str))


@case
def doc_name_read():
    def g():
        "doc"

    class K:
        "kdoc"

    def f():
        return g.__doc__, g.__name__, K.__doc__, K.__name__, g.__module__

    return story(
        f, lambda: setattr(g, "__doc__", "n"), lambda: setattr(K, "__name__", "Z"), lambda: setattr(g, "__name__", "h")
    )


@refused("a container is asked for a NaN, which it finds by which object it is")
def eq_identity_nan_in():
    x = float("nan")
    L = [x]
    y = [x]

    def f():
        return y[0] in L, L.index(y[0]), L.count(y[0]), L == y

    return story(f, lambda: y.__setitem__(0, float("nan")))


@case
def unhashable_hash_change():
    class K:
        def __init__(s, n):
            s.n = n

        def __hash__(s):
            return s.n

        def __eq__(s, o):
            return s.n == o.n

    a = K(1)
    d = {a: "v"}

    def f():
        return d.get(K(1)), a in d, len(d)

    return story(f, lambda: setattr(a, "n", 2), lambda: d.__setitem__(K(1), "w"))


@case
def partial_mut():
    p = functools.partial(lambda a, b=0: a + b, 1)
    h = [p]

    def f():
        return h[0](b=2)

    return story(
        f,
        lambda: h.__setitem__(0, functools.partial(lambda a, b=0: a * b, 3)),
        lambda: h.__setitem__(0, functools.partial(h[0].func, 9)),
    )


@case
def partialmethod_():
    class K:
        def m(s, a, b):
            return a + b + s.z

        n = functools.partialmethod(m, 1)

    k = K()
    k.z = 0

    def f():
        return k.n(2)

    return story(f, lambda: setattr(k, "z", 5), lambda: setattr(K, "m", lambda s, a, b: 0))


@case
def total_order():
    @functools.total_ordering
    class K:
        def __init__(s, n):
            s.n = n

        def __eq__(s, o):
            return s.n == o.n

        def __lt__(s, o):
            return s.n < o.n

    a, b = K(1), K(2)

    def f():
        return a <= b, a > b, a >= b, max(a, b).n, sorted([b, a])[0].n

    return story(f, lambda: setattr(a, "n", 3))


@pytest.mark.parametrize(("make", "reason"), CASES)
def test_program(make: Any, reason: str | None) -> None:
    check(make, reason)
