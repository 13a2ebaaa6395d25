"""Operators, special methods and classes of other classes."""

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import itertools
import json
import math
import operator
import typing
from collections.abc import Callable
from typing import Any

import pytest

from tests.compile.observe.adversarial.stories import MAY_BE, Box, Cases, around

CASES = Cases()
case, refused = CASES.add, CASES.refused


class Number:
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        return Number(self.v + getattr(other, "v", other))

    def __radd__(self, other):
        return Number(other + self.v * 10)

    def __iadd__(self, other):
        self.v += other
        return self

    def __neg__(self):
        return Number(-self.v)

    def __eq__(self, other):
        return self.v == getattr(other, "v", other)

    def __lt__(self, other):
        return self.v < other.v

    def __hash__(self):
        return hash(self.v)

    def __bool__(self):
        return self.v > 0

    def __len__(self):
        return self.v

    def __contains__(self, x):
        return x == self.v

    def __getitem__(self, k):
        return self.v + k

    def __call__(self, x):
        return self.v * x

    def __str__(self):
        return f"<{self.v}>"

    def __repr__(self):
        return f"N({self.v})"

    def __format__(self, spec):
        return f"{self.v:{spec}}"

    def __int__(self):
        return self.v

    def __float__(self):
        return float(self.v)

    def __index__(self):
        return self.v

    def __abs__(self):
        return abs(self.v)

    def __round__(self, n=None):
        return self.v + 1

    def __bytes__(self):
        return bytes([self.v])

    def __reversed__(self):
        return iter([self.v, 0])

    def __matmul__(self, other):
        return self.v, other

    def __divmod__(self, other):
        return self.v, other

    def __pow__(self, other):
        return self.v, other


NUMBER_USES: dict[str, Callable[[Number], Any]] = {
    "add": lambda n: (n + 1).v, "radd": lambda n: (1 + n).v, "both": lambda n: (n + n).v, "neg": lambda n: (-n).v,
    "equal": lambda n: (n == 3, 3 == n, n != 3), "less": lambda n: (n < Number(4), n > Number(4)),
    "hash": lambda n: hash(n) == hash(3), "bool": lambda n: "t" if n else "f", "not": lambda n: not n, "len": lambda n: len(n),
    "contains": lambda n: 3 in n, "item": lambda n: n[5], "call": lambda n: n(7), "str": str, "repr": repr,
    "format": lambda n: (f"{n}", f"{n:>4}", f"{n!r}", "%s" % n, "{:3}".format(n), "%r" % [n]), "int": int, "float": float,
    "index": lambda n: [0, 1, 2, 3, 4, 5][n], "abs": abs, "round": round, "bytes": bytes, "reversed": lambda n: list(reversed(n)),
    "matmul": lambda n: n @ 2, "pow": lambda n: n**2, "sorted": lambda n: [x.v for x in sorted([Number(4), n, Number(1)])],
    "max": lambda n: max(n, Number(2)).v, "sum": lambda n: sum([n, Number(1)], Number(0)).v, "in_list": lambda n: n in [Number(3)],
    "list_equal": lambda n: [n] == [Number(3)], "tuple_less": lambda n: (1, n) < (1, Number(4)), "dict_key": lambda n: {n: 1}.get(Number(3)),
    "set": lambda n: len({n, Number(3)}), "join": lambda n: ",".join(map(str, [n, n])), "count": lambda n: [Number(3), 5].count(n),
    "any": lambda n: any([n, 0]), "all": lambda n: all([1, n]), "filter": lambda n: len(list(filter(None, [n, 1]))),
    "range": lambda n: list(range(n)), "index_of": lambda n: [Number(3), Number(4), Number(6)].index(n), "print_list": lambda n: str([n, (n,)]),
    "math": lambda n: math.sqrt(n), "min_key": lambda n: min([n, Number(2)], key=lambda x: -x.v).v, "slice": lambda n: "abcdefgh"[:n],
    "divmod": lambda n: n.__divmod__(3), "json": lambda n: json.dumps({"v": n.v}), "getattr": lambda n: getattr(n, "v") + n.__len__(),
    "groupby": lambda n: [k for k, _ in itertools.groupby([n.v, n.v, 1])], "chain": lambda n: list(itertools.chain([n.v], (1,))),
    "starmap": lambda n: list(itertools.starmap(lambda a, b: a + b + n.v, [(1, 2)])), "zip": lambda n: list(zip([n.v], "a", strict=True)),
    "accumulate": lambda n: list(itertools.accumulate([1, n.v])), "islice": lambda n: list(itertools.islice([1, 2, 3, 4, 5, 6, 7], n.v)),
    "operator": lambda n: operator.add(n, 1).v, "reduce": lambda n: functools.reduce(operator.add, [n, 1, 2]).v, "partial": lambda n: functools.partial(max, n.v)(2),
}  # fmt: skip

for _name, _use in NUMBER_USES.items():

    def _build(use: Any = _use) -> Any:
        n = Number(3)
        return around(lambda: use(n), lambda: setattr(n, "v", 6), lambda: setattr(n, "v", 2), state=lambda: n.v)

    CASES.add(_build, f"number_{_name}")


@case
def in_place_method():
    n = Number(1)
    box = Box(n=n)

    def f():
        box.n += 5
        return box.n is n, n.v

    return around(f, lambda: setattr(n, "v", 100), state=lambda: n.v)


@case
def reflected_priority():
    class A:
        def __add__(self, other):
            return "A.add"

    class B(A):
        def __radd__(self, other):
            return "B.radd"

    box = Box(a=A(), b=B())
    return around(
        lambda: (box.a + box.b, box.b + box.a, box.a + 1), lambda: setattr(B, "__radd__", lambda s, o: NotImplemented)
    )


@case
def not_implemented():
    class A:
        def __add__(self, other):
            return NotImplemented

        def __eq__(self, other):
            return NotImplemented

        __hash__ = None

    a = A()

    def f():
        try:
            return a + 1
        except TypeError as e:
            return str(e), a == 1, a != 1, a == a

    return around(f, lambda: setattr(A, "__radd__", lambda s, o: 5), lambda: setattr(A, "__add__", lambda s, o: 7))


@case
def operator_added_later():
    class A:
        pass

    a = A()

    def f():
        try:
            return len(a)
        except TypeError:
            return -1

    return around(f, lambda: setattr(A, "__len__", lambda self: 4))


@case
def truth_added_later():
    class A:
        pass

    a = A()
    return around(
        lambda: 1 if a else 2,
        lambda: setattr(A, "__len__", lambda self: 0),
        lambda: setattr(A, "__bool__", lambda self: True),
    )


@case
def equality_added_later():
    class A:
        pass

    a, b = A(), A()
    return around(lambda: a == b, lambda: setattr(A, "__eq__", lambda self, other: True))


@case
def compared_containers():
    a, b = [1, {"k": (2,)}], [1, {"k": (2,)}]
    return around(lambda: a == b, lambda: b[1].update(k=(3,)), lambda: b[1].update(k=(2,)))


@case
def total_ordering():
    @functools.total_ordering
    class A:
        def __init__(self, k):
            self.k = k

        def __eq__(self, other):
            return self.k == other.k

        def __lt__(self, other):
            return self.k < other.k

    a = A(1)
    return around(lambda: (a >= A(2), a <= A(2)), lambda: setattr(a, "k", 5))


@case
def string_subclass():
    class S(str):
        pass

    box = Box(s=S("ab"))
    box.s.extra = 1
    return around(
        lambda: (box.s.upper(), box.s + "c", box.s.extra, len(box.s)),
        lambda: setattr(box.s, "extra", 2),
        lambda: setattr(box, "s", S("zz")) or setattr(box.s, "extra", 2),
    )


@case
def int_subclass():
    class I(int):
        pass

    box = Box(i=I(3))
    return around(lambda: (box.i + 1, [0, 1, 2, 3, 4][box.i], box.i == 3), lambda: setattr(box, "i", I(4)))


@case
def int_enum():
    class E(enum.IntEnum):
        A = 1
        B = 2

    box = Box(e=E.A)
    return around(lambda: (box.e + 1, [5, 6, 7][box.e], box.e.name, E(box.e + 0).name), lambda: setattr(box, "e", E.B))


@case
def flags():
    class F(enum.Flag):
        A = 1
        B = 2

    box = Box(f=F.A)
    return around(lambda: (bool(box.f & F.B), F.A in box.f, (box.f | F.B).value), lambda: setattr(box, "f", F.B))


@case
def enum_lookup():
    class E(enum.Enum):
        A = "a"
        B = "b"

    box = Box(k="a")
    return around(
        lambda: (E(box.k).name, E["A"].value, [e.value for e in E], len(E), E.A in E), lambda: setattr(box, "k", "b")
    )


@case
def descriptor_set():
    class Positive:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, obj, kind=None):
            return self if obj is None else getattr(obj, self.name)

        def __set__(self, obj, value):
            setattr(obj, self.name, abs(value))

    class A:
        x = Positive()

    a = A()
    a.x = 1

    def f():
        a.x = a.x - 5
        return a.x

    return around(f, lambda: setattr(a, "x", -9), state=lambda: a)


@case
def class_in_function():
    box = Box(x=1)

    def f():
        class A:
            y = box.x

            def get(self):
                return self.y + box.x

        return A().get()

    return around(f, lambda: setattr(box, "x", 5))


@case
def metaclass_call():
    class M(type):
        def __call__(cls, *args):
            result = super().__call__(*args)
            result.tag = cls.tag
            return result

    class A(metaclass=M):
        tag = 1

        def __init__(self, x):
            self.x = x

    return around(lambda: (A(5).tag, A(6).x), lambda: setattr(A, "tag", 2))


@case
def singleton():
    class A:
        instance = None

        def __new__(cls):
            if cls.instance is None:
                cls.instance = super().__new__(cls)
                cls.instance.n = 0
            return cls.instance

    def f():
        a = A()
        a.n += 1
        return a.n, a is A()

    return around(f, lambda: setattr(A, "instance", None))


@case
def subclass_hook():
    class A(abc.ABC):
        @abc.abstractmethod
        def go(self): ...

    class B:
        pass

    b = B()
    return around(lambda: (isinstance(b, A), issubclass(B, A)), lambda: A.register(B))


@refused(MAY_BE)
def protocol():
    @typing.runtime_checkable
    class HasGo(typing.Protocol):
        go: int

    box = Box()
    return around(lambda: isinstance(box, HasGo), lambda: setattr(box, "go", 1))


@case
def shadowed_super():
    box = Box(x=1)

    class Proxy:
        def __init__(self, *args):
            self.args = len(args)

        def go(self):
            return self.args, box.x

    super = Proxy

    class A:
        def go(self):
            return super().go(), super(A, self).go()

    a = A()
    return around(lambda: a.go(), lambda: setattr(box, "x", 2))


@case
def multiple_inheritance():
    class A:
        def go(self):
            return ["A"]

    class B(A):
        def go(self):
            return ["B", *super().go()]

    class C(A):
        def go(self):
            return ["C", *super().go()]

    class D(B, C):
        pass

    d = D()
    return around(lambda: d.go(), lambda: setattr(C, "go", lambda self: ["new"]), lambda: delattr(B, "go"))


@case
def dataclass_replace():
    @dataclasses.dataclass(frozen=True)
    class C:
        x: int
        y: int = 2

    box = Box(c=C(1))
    return around(
        lambda: (
            dataclasses.replace(box.c, y=5).y,
            box.c == C(1),
            dataclasses.asdict(box.c),
            hash(box.c) == hash(C(1)),
            repr(box.c).rpartition(".")[2],
        ),
        lambda: setattr(box, "c", C(7)),
    )


@case
def dataclass_default_factory():
    @dataclasses.dataclass
    class C:
        xs: list = dataclasses.field(default_factory=list)
        n: int = 0

        def __post_init__(self):
            self.n = len(self.xs)

    box = Box(x=1)
    return around(lambda: (C([box.x]).n, C().xs), lambda: setattr(box, "x", 4))


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
