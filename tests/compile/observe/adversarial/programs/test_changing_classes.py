"""Results that are kept, classes and dicts that are swapped, equality and partials."""

from __future__ import annotations

import abc
import functools

import pytest

from tests.compile.observe.adversarial.stories import Cases, story

CASES = Cases()
case, refused = CASES.add, CASES.refused


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


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
