"""Decorators, numbers, memory, and containers that change while they are read."""

from __future__ import annotations

import functools
import math
import os
import random
import types

import pytest

from tests.compile.observe.adversarial.stories import Cases, story

CASES = Cases()
case, refused = CASES.add, CASES.refused


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


@case
def symbol_int_subclass():
    class I(int):
        def __add__(s, o):
            return I(int(s) + o + 100)

    n = [I(1)]

    def f():
        n[0] = n[0] + 1
        return int(n[0])

    return story(f, lambda: n.__setitem__(0, 3), warm=4, state=lambda: int(n[0]))


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
