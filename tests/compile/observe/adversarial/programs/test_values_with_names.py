"""Dataclasses, enums, formats, and names that are deleted or replaced."""

from __future__ import annotations

import builtins
import dataclasses
import enum
import string
import types

import pytest

from tests.compile.observe.adversarial.stories import Cases, story

CASES = Cases()
case, refused = CASES.add, CASES.refused


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


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
