"""Weak references, caches and context managers."""

from __future__ import annotations

import contextlib
import functools
import weakref

import pytest

from tests.compile.observe.adversarial.stories import Cases, story

CASES = Cases()
case, refused = CASES.add, CASES.refused


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


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
