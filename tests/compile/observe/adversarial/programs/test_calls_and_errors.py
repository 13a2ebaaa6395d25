"""Arguments, exceptions, recursion, and lookups along the classes."""

from __future__ import annotations

import pytest

from tests.compile.observe.adversarial.stories import Cases, story

CASES = Cases()
case, refused = CASES.add, CASES.refused


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


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
