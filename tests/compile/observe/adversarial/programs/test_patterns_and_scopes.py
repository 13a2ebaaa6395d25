"""Patterns, coroutines by hand, nested scopes, and classes made by calls."""

from __future__ import annotations

import dataclasses

import pytest

from tests.compile.observe.adversarial.stories import Cases, story

CASES = Cases()
case, refused = CASES.add, CASES.refused


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


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
