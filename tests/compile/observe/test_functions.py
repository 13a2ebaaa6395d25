"""Functions that change things outside, ask who is who, or call what cannot be seen: observed as Python runs them."""

from __future__ import annotations

import abc
import bisect
import collections
import contextlib
import contextvars
import copy
import dataclasses
import datetime
import enum
import functools
import heapq
import io
import itertools
import json
import logging
import math
import operator
import os
import random
import re
import string
import threading
import time
import typing
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tests.compile.observe.observed import check

pytestmark = pytest.mark.suite


CASES: dict[str, tuple[Callable[[], Any], str | None]] = {}
CALL: Any = ((), {})


def case(build: Any) -> Any:
    """The build gives (function, steps[, state])."""
    CASES[build.__name__] = (build, None)
    return build


MAY_BE = "?"  # refused on some versions of Python, the same on others


def refused(reason: str) -> Any:
    def add(build: Any) -> Any:
        CASES[build.__name__] = (build, reason)
        return build

    return add


def around(function: Any, *changes: Any, state: Any = None, args: tuple[Any, ...] = ()) -> Any:
    """Two calls before and after each change."""
    call = (args, {})
    steps: list[Any] = [call, call]
    for change in changes:
        steps += [change, call, call]
    return (function, steps) if state is None else (function, steps, state)


class Box:
    kind = "box"

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def double(self) -> Any:
        return self.x * 2


# Effects --------------------------------------------------------------------------------------------------------------


@case
def sets_attribute():
    box, k = Box(x=1), [1]

    def f():
        box.y = box.x + k[0]
        return box.y

    return around(f, lambda: k.__setitem__(0, 5), state=lambda: box)


@case
def counts():
    box = Box(n=0)

    def f():
        box.n += 1
        return box.n

    return around(f, lambda: setattr(box, "n", 10), state=lambda: box)


@case
def initialises_once():
    box = Box(mask=None, made=0)

    def f():
        if box.mask is None:
            box.mask = [1, 2, 3]
            box.made += 1
        return sum(box.mask)

    return around(f, lambda: setattr(box, "mask", None), lambda: box.mask.append(4), state=lambda: box)


@case
def initialises_by_hasattr():
    box = Box()

    def f():
        if not hasattr(box, "cache"):
            box.cache = {}
        box.cache["k"] = len(box.cache)
        return box.cache["k"]

    return around(f, lambda: delattr(box, "cache"), state=lambda: box)


@case
def appends():
    log, box = [], Box(x=1)

    def f():
        log.append(box.x)
        log.append((box.x, [box.x]))

    return around(f, lambda: setattr(box, "x", 2), log.clear, state=lambda: log)


@case
def appended_last():
    log, box = [5, 6], Box(x=1)

    def f():
        log.append(box.x)
        return log[-1], log[0]

    return around(f, lambda: log.__setitem__(0, 9), state=lambda: log)


@case
def appended_then_length():
    log = []

    def f():
        log.append(1)
        return len(log)

    return around(f, log.clear, state=lambda: log)


@case
def bounded_history():
    log = []

    def f():
        log.append(len(log))
        if len(log) > 3:
            log.pop(0)
        return list(log)

    return around(f, lambda: log.extend([7, 8]), state=lambda: log)


@case
def deque_history():
    log = collections.deque(maxlen=2)

    def f():
        log.append(1)
        log.append(2)

    return around(f, log.clear, state=lambda: log)


@case
def extends_itself():
    items = [1]

    def f():
        items.extend(items[:2])
        return items[-1]

    return around(f, lambda: items.insert(0, 5), state=lambda: items)


@case
def inserts_and_removes():
    items = [3, 1, 2]

    def f():
        items.insert(1, 7)
        items.remove(3)
        items.append(3)
        items.reverse()
        return items.index(7)

    return around(f, lambda: items.append(9), state=lambda: items)


@case
def sorts_in_place():
    items = [3, 1, 2]

    def f():
        items.sort(key=lambda x: -x)
        return items[0]

    return around(f, lambda: items.append(9), state=lambda: items)


@case
def slice_assignment():
    items = [1, 2, 3]

    def f():
        items[1:] = [items[0], 5]
        del items[0]
        return items

    return around(f, lambda: items.append(4), state=lambda: items)


@case
def list_in_place_operators():
    items = [1]
    box = Box(items=items)

    def f():
        box.items += [2]
        box.items *= 2
        return len(items)

    return around(f, items.clear, state=lambda: (items, box))


@case
def dict_updates():
    table = {"a": 1}

    def f():
        table["b"] = table["a"] + 1
        table.update(c=3, a=table["a"])
        table.setdefault("d", []).append(1)
        return table.pop("c"), table.get("zz")

    return around(f, lambda: table.update(a=7), lambda: table.pop("d"), state=lambda: table)


@case
def dict_order():
    table = {"a": 1, "b": 2}

    def f():
        table["a"] = table.pop("a")
        return list(table)

    return around(f, lambda: table.update(c=1), state=lambda: table)


@case
def counts_words():
    counts = collections.Counter()

    def f():
        for word in ("a", "b", "a"):
            counts[word] += 1
        return counts["a"], counts["zz"]

    return around(f, counts.clear, state=lambda: dict(counts))


@case
def groups():
    groups = collections.defaultdict(list)
    items = [1, 2, 3]

    def f():
        for x in items:
            groups[x % 2].append(x)

    return around(f, lambda: items.append(4), groups.clear, state=lambda: dict(groups))


@case
def ordered_moves():
    table = collections.OrderedDict(a=1, b=2, c=3)

    def f():
        table.move_to_end("a")
        return next(iter(table))

    return around(f, lambda: table.pop("b"), state=lambda: table)


@case
def memo_by_hand():
    memo, box = {}, Box(x=2)

    def square(x):
        if x not in memo:
            memo[x] = x * x
        return memo[x]

    return around(
        lambda: square(box.x), lambda: setattr(box, "x", 3), memo.clear, lambda: memo.update({3: 0}), state=lambda: memo
    )


@case
def adds_to_set():
    observed = {1}

    def f():
        fresh = 2 not in observed
        observed.add(2)
        observed.discard(1)
        return fresh

    return around(f, observed.clear, state=lambda: observed)


@case
def set_operators():
    a, b = {1, 2}, {2, 3}

    def f():
        nonlocal a
        a |= b
        return sorted(a), a & b, a - b, 3 in a

    return around(f, lambda: b.add(7), state=lambda: (a, b))


@case
def byte_array():
    data = bytearray(b"ab")

    def f():
        data.append(99)
        data[0] = 120
        return bytes(data)

    return around(f, lambda: data.extend(b"zz"), state=lambda: data)


@case
def global_write():
    globals()["WRITTEN"] = 0

    def f():
        global WRITTEN
        WRITTEN = WRITTEN + 2
        return WRITTEN

    return around(f, lambda: globals().update(WRITTEN=7), state=lambda: globals()["WRITTEN"])


@case
def nonlocal_write():
    n = 0

    def f():
        nonlocal n
        n += 1
        return n

    def reset():
        nonlocal n
        n = 100

    return around(f, reset, state=lambda: n)


@case
def two_closures_one_cell():
    n = 0

    def bump():
        nonlocal n
        n += 1

    def f():
        bump()
        bump()
        return n

    return around(f, state=lambda: n)


@case
def deletes_attribute():
    box = Box(x=1)

    def f():
        if hasattr(box, "x"):
            del box.x
            return 1
        return 0

    return around(f, lambda: setattr(box, "x", 3), state=lambda: box)


@case
def class_counter():
    class A:
        count = 0

        def __init__(self):
            A.count += 1

    return around(lambda: (A(), A.count)[1], lambda: setattr(A, "count", 10), state=lambda: A.count)


@case
def slots_written():
    class S:
        __slots__ = ("x", "y")

    s = S()
    s.x = 1

    def f():
        s.y = s.x + 1
        return s.y

    return around(f, lambda: setattr(s, "x", 9), state=lambda: (s.x, s.y))


@case
def property_setter():
    class A:
        def __init__(self):
            self._x = 1

        @property
        def x(self):
            return self._x

        @x.setter
        def x(self, value):
            self._x = value * 2

    a = A()

    def f():
        a.x = a.x + 1
        return a.x

    return around(f, lambda: setattr(a, "_x", 0), state=lambda: a)


@case
def setattr_hook():
    class A:
        def __init__(self):
            object.__setattr__(self, "log", [])

        def __setattr__(self, name, value):
            self.log.append(name)
            object.__setattr__(self, name, value)

    a = A()

    def f():
        a.x = 1
        setattr(a, "y", a.x)
        return len(a.log)

    return around(f, lambda: a.log.clear(), state=lambda: a)


@case
def dict_of_object_written():
    box = Box(x=1)

    def f():
        box.__dict__["y"] = box.x
        vars(box)["z"] = box.y
        return box.z

    return around(f, lambda: setattr(box, "x", 5), state=lambda: box)


@case
def function_attribute_written():
    def f():
        f.calls = getattr(f, "calls", 0) + 1
        return f.calls

    return around(f, lambda: setattr(f, "calls", 9), state=lambda: getattr(f, "calls", None))


@case
def cached_property_filled():
    class A:
        def __init__(self):
            self.x = 1

        @functools.cached_property
        def slow(self):
            return self.x + 1

    a = A()
    return around(lambda: a.slow, lambda: setattr(a, "x", 5), lambda: a.__dict__.pop("slow"), state=lambda: a)


@case
def object_made_and_kept():
    box = Box(last=None)

    def f():
        box.last = Box(parent=box, items=[box.last is None])
        return box.last.items

    return around(f, lambda: setattr(box, "last", None), state=lambda: box.last.items)


@case
def object_made_as_key():
    table = {}

    def f():
        key = Box(x=1)
        table[key] = 5
        table[1, "a"] = table.get((1, "a"), 0) + 1
        return len(table), table[key]

    return around(f, table.clear, state=lambda: [(type(k).__name__, v) for k, v in table.items()])


@case
def kept_builtin_methods():
    log, table = [], {"a": 1}
    box = Box(append=log.append, get=table.get)

    def f():
        box.append(box.get("a"))
        return len(log)

    return around(f, lambda: table.update(a=2), lambda: setattr(box, "get", {"a": 9}.get), state=lambda: log)


@case
def moved_between_places():
    box = Box(a=[1], b=None)

    def f():
        box.a, box.b = box.b, box.a
        if box.b is not None:
            box.b.append(2)
        return box.a

    return around(f, lambda: setattr(box, "a", [7]), state=lambda: box)


@case
def raised_class():
    class Problem(Exception):
        def __init__(self):
            super().__init__(box.x)

    box = Box(x=1)

    def f():
        try:
            raise Problem
        except Problem as e:
            return e.args

    return around(f, lambda: setattr(box, "x", 2))


@case
def hashed_in_literals():
    class K:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return hash(box.salt)

        def __eq__(self, other):
            return self.n % box.salt == other.n % box.salt

    box = Box(salt=2)
    return around(
        lambda: (
            len({K(1), K(3)}),
            len({K(1): 1, K(2): 2}),
            len({K(i) for i in range(4)}),
            len({K(i): i for i in range(4)}),
        ),
        lambda: setattr(box, "salt", 3),
    )


@case
def object_returned():
    class A:
        def __init__(self, x):
            self.x = x
            self.me = self

    box = Box(x=1)

    def f():
        a = A(box.x)
        return a.me is a, [a.x, a.me.me.x]

    return around(f, lambda: setattr(box, "x", 2))


@case
def shared_result():
    box = Box()

    def f():
        shared = [1]
        box.a, box.b = shared, shared
        box.a.append(2)
        return box.a is box.b

    return around(f, lambda: setattr(box, "a", 0), state=lambda: box)


@case
def result_is_outside():
    items = [1]
    table = {"i": items}

    def f():
        return table["i"]

    return around(lambda: f() is items, lambda: table.update(i=[1]))


@case
def effect_then_raise():
    log, box = [], Box(x=1)

    def f():
        log.append(box.x)
        raise ValueError(f"{box.x}")

    return around(f, lambda: setattr(box, "x", 2), state=lambda: log)


@case
def effect_then_caught():
    log, table = [], {}

    def f():
        try:
            log.append("try")
            return table["x"]
        except KeyError:
            log.append("missing")
            return None
        finally:
            log.append("end")

    return around(f, lambda: table.update(x=3), state=lambda: log)


@case
def stack_machine():
    stack = [1, 2, 3]

    def f():
        stack.append(stack.pop() + stack.pop())
        return stack[0]

    return around(f, lambda: stack.extend([5, 6]), state=lambda: stack)


@case
def heap():
    h = [5, 7]

    def f():
        heapq.heappush(h, 1)
        return heapq.heappop(h), h[0]

    return around(f, lambda: h.__setitem__(0, 3), state=lambda: h)


@case
def insort():
    items = [1, 5]

    def f():
        bisect.insort(items, 3)
        return bisect.bisect_left(items, 5)

    return around(f, lambda: items.insert(0, 0), state=lambda: items)


@case
def linked_list():
    class Node:
        def __init__(self, value, rest):
            self.value, self.rest = value, rest

    box = Box(head=None)

    def f():
        box.head = Node(1, box.head)
        n, node = 0, box.head
        while node is not None:
            n, node = n + node.value, node.rest
        return n

    return around(f, lambda: setattr(box, "head", None))


# Who is who ------------------------------------------------------------------------------------------------------------


@case
def same_arguments():
    a, b = [1], [1]

    def f(x, y):
        return x is y, x == y

    return f, [((a, b), {}), ((a, a), {}), ((a, b), {}), ((b, b), {}), ((a, b), {})]


@case
def changed_alias():
    a, b = [1], [1]

    def f(x, y):
        x.append(2)
        return len(y)

    return f, [((a, b), {}), ((a, a), {}), ((a, b), {}), ((b, b), {})], lambda: (a, b)


@case
def alias_in_attributes():
    shared = Box(x=1)
    box = Box(a=shared, b=Box(x=1))

    def f():
        box.a.x += 1
        return box.b.x

    return around(f, lambda: setattr(box, "b", box.a), lambda: setattr(box, "b", Box(x=7)), state=lambda: box)


@case
def alias_through_dicts():
    one, two = {"n": 1}, {"n": 1}
    table = {"a": one, "b": two}

    def f():
        table["a"]["n"] = 5
        return table["b"]["n"]

    return around(f, lambda: table.update(b=one), lambda: table.update(b={"n": 2}), state=lambda: table)


@case
def sentinel():
    missing = object()
    box = Box(x=missing)

    def f(default=missing):
        return box.x is missing, default is box.x

    return around(f, lambda: setattr(box, "x", object()), lambda: setattr(box, "x", missing))


@case
def is_class():
    class A:
        pass

    class B(A):
        pass

    box = Box(x=A())
    return around(
        lambda: (type(box.x) is A, isinstance(box.x, A)), lambda: setattr(box, "x", B()), lambda: setattr(box, "x", 3)
    )


@case
def function_identity():
    def g():
        return 1

    box = Box(f=g, g=g)
    return around(lambda: box.f is box.g, lambda: setattr(box, "g", lambda: 1))


@case
def address():
    a = Box()
    box = Box(a=a)
    known = id(a)
    return around(lambda: id(box.a) == known, lambda: setattr(box, "a", Box()))


@case
def identity_keys():
    a, b = Box(), Box()
    table, box = {a: 1, b: 2}, Box(k=a)
    return around(lambda: table[box.k], lambda: setattr(box, "k", b), lambda: table.update({b: 5}))


@case
def identity_members():
    a, b = Box(), Box()
    members, box = {a}, Box(k=a)
    return around(lambda: (box.k in members, len(members)), lambda: setattr(box, "k", b), lambda: members.add(b))


@case
def object_in_list():
    a, b = Box(), Box()
    items, box = [a], Box(k=a)
    return around(lambda: (box.k in items, items.count(box.k)), lambda: setattr(box, "k", b), lambda: items.append(b))


@case
def keyword_order():
    def f(**kw):
        return list(kw), [k + str(v) for k, v in kw.items()]

    return f, [((), {"a": 1, "b": 2}), ((), {"b": 2, "a": 1}), ((), {"a": 1, "b": 2}), ((), {"a": 1})]


@case
def positional_or_keyword():
    def f(a, b=2, *rest, c=3, **kw):
        return a, b, rest, c, kw

    return f, [
        ((1,), {}),
        ((), {"a": 1}),
        ((1, 2), {}),
        ((1, 2, 3), {}),
        ((1,), {"c": 4}),
        ((1,), {"d": 5}),
        ((True,), {}),
    ]


@case
def argument_kinds():
    def f(x):
        return type(x).__name__, x

    values = (
        1,
        True,
        1.0,
        1 + 0j,
        "1",
        b"1",
        None,
        (1,),
        [1],
        {"a": 1},
        {1},
        frozenset({1}),
        range(1),
        0.0,
        -0.0,
        float("nan"),
    )
    return f, [((v,), {}) for v in values for _ in range(2)]


@case
def same_object_changed():
    items = [1, [2]]

    def f(x):
        return x[1][0], len(x)

    return around(f, lambda: items[1].__setitem__(0, 5), lambda: items.append(1), args=(items,))


@case
def weak_dead():
    box = Box(target=Box(x=1))
    reference = weakref.ref(box.target)
    return around(lambda: reference() is None, lambda: setattr(box, "target", None))


@case
def none_becomes_object():
    box = Box(norm=None)
    return around(
        lambda: 1 if box.norm is None else 2, lambda: setattr(box, "norm", [1]), lambda: setattr(box, "norm", False)
    )


@case
def type_changed():
    class A:
        x = 1

    class B:
        x = 2

    a = A()
    return around(lambda: a.x, lambda: setattr(a, "__class__", B))


@case
def bases_changed():
    class A:
        x = 1

    class B:
        x = 2

    class C(A):
        pass

    c = C()
    return around(lambda: c.x, lambda: setattr(C, "__bases__", (B,)))


# Operators and special methods -----------------------------------------------------------------------------------------


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

    CASES[f"number_{_name}"] = (_build, None)


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


# Control flow -----------------------------------------------------------------------------------------------------------


@case
def loops_and_breaks():
    items = [1, 2, 3, 4]
    box = Box(stop=3)

    def f():
        results = []
        for x in items:
            if x == box.stop:
                break
            results.append(x)
        else:
            results.append("end")
        return results

    return around(f, lambda: items.append(9), lambda: setattr(box, "stop", 100), lambda: items.__setitem__(0, 100))


@case
def nested_comprehensions():
    rows = [[1, 2], [3]]
    box = Box(k=2)
    return around(
        lambda: (
            [[x * box.k for x in row if x > 1] for row in rows],
            {x for row in rows for x in row},
            {i: len(r) for i, r in enumerate(rows)},
        ),
        lambda: rows[1].append(7),
        lambda: setattr(box, "k", 3),
    )


@case
def generators():
    box = Box(n=3)

    def numbers():
        for i in range(box.n):
            got = yield i
            if got:
                yield got * 10

    def all_of():
        yield from numbers()
        return 5

    def f():
        g = numbers()
        first = next(g)
        sent = g.send(7)
        return first, sent, list(all_of()), list(g)

    return around(f, lambda: setattr(box, "n", 1), lambda: setattr(box, "n", 4))


@case
def exceptions():
    box = Box(kind=ValueError)

    def f():
        try:
            raise box.kind("x")
        except ValueError as e:
            return "value", e.args
        except (KeyError, TypeError):
            return "other"
        finally:
            box.seen = True

    return around(f, lambda: setattr(box, "kind", KeyError), state=lambda: box.__dict__.get("seen"))


@case
def exception_groups():
    box = Box(n=2)

    def f():
        results = []
        try:
            raise ExceptionGroup("many", [ValueError(i) for i in range(box.n)] + [KeyError(1)])
        except* ValueError as group:
            results.append(len(group.exceptions))
        except* KeyError:
            results.append("key")
        return results

    return around(f, lambda: setattr(box, "n", 3))


@case
def with_blocks():
    class C:
        def __init__(self, quiet):
            self.quiet, self.log = quiet, []

        def __enter__(self):
            self.log.append("in")
            return self

        def __exit__(self, kind, value, trace):
            self.log.append(None if kind is None else kind.__name__)
            return self.quiet

    c = C(True)

    def f():
        with c as reference, contextlib.suppress(KeyError):
            reference.log.append("body")
            raise ValueError("no")
        return "after"

    return around(f, lambda: setattr(c, "quiet", False), state=lambda: c.log)


@case
def context_manager_function():
    log, box = [], Box(x=1)

    @contextlib.contextmanager
    def scope(name):
        log.append(("in", name, box.x))
        try:
            yield box.x
        finally:
            log.append(("out", name))

    def f():
        with scope("a") as x, scope("b"):
            return x

    return around(f, lambda: setattr(box, "x", 2), state=lambda: log)


@case
def exit_stack():
    log = []

    class C:
        def __enter__(self):
            log.append("in")

        def __exit__(self, *_):
            log.append("out")

    def f():
        with contextlib.ExitStack() as stack:
            stack.enter_context(C())
            stack.callback(log.append, "back")

    return around(f, state=lambda: log)


@case
def patterns():
    @dataclasses.dataclass
    class P:
        x: int
        y: Any = None

    box = Box(v=P(1, [2, 3]))

    def f():
        match box.v:
            case P(1, [a, *rest]):
                return "p", a, rest
            case P(x=2, y=None):
                return "q"
            case {"k": v, **rest}:
                return v, rest
            case [1, (2 | 3) as b]:
                return b
            case str() | None:
                return "s"
            case int(n) if n > 3:
                return n
            case _:
                return "other"

    values = (P(2), {"k": 1, "z": 2}, [1, 3], "x", None, 7, 2, P(1, (5,)), (1, 2))
    return around(f, *(functools.partial(setattr, box, "v", v) for v in values))


@case
def recursion():
    def total(tree):
        return tree if isinstance(tree, int) else sum(total(t) for t in tree)

    tree = [1, [2, [3]]]
    return around(lambda: total(tree), lambda: tree[1][1].append(4), lambda: tree.append(5))


@case
def mutual_recursion():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    box = Box(n=4)
    return around(lambda: even(box.n), lambda: setattr(box, "n", 5))


@case
def closures_made():
    box = Box(k=1)

    def make(k):
        def inner(x):
            nonlocal k
            k += x
            return k + box.k

        return inner

    def f():
        g = make(10)
        return g(1), g(2), [h(1) for h in (make(1), make(2))]

    return around(f, lambda: setattr(box, "k", 5))


@case
def decorators_inside():
    box = Box(k=2)

    def scaled(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            return function(*args, **kwargs) * box.k

        return inner

    def f():
        @scaled
        def g(x):
            return x + 1

        return g(3), g.__name__

    return around(f, lambda: setattr(box, "k", 5))


@case
def decorated_outside():
    box = Box(k=2)

    def scaled(function):
        @functools.wraps(function)
        def inner(*args):
            return function(*args) * box.k

        return inner

    @scaled
    def g(x):
        return x + box.k

    return around(lambda: g(3), lambda: setattr(box, "k", 5))


@case
def walrus_and_chains():
    box = Box(a=1, b=5)
    return around(
        lambda: ((y := box.a) < box.b < 7, y, 0 < box.a <= 1 != box.b),
        lambda: setattr(box, "b", 9),
        lambda: setattr(box, "a", 6),
    )


@case
def star_targets():
    items = [1, 2, 3, 4]

    def f():
        a, *b, c = items
        (d, e), *_ = [(a, c)]
        return a, b, c, d, e, [*items, *b], {**{"a": a}, "z": 1}

    return around(f, lambda: items.append(5), lambda: items.__delitem__(0))


@case
def late_binding():
    functions = [lambda: 1]
    return around(
        lambda: [g() for g in functions],
        lambda: functions.append(lambda: 2),
        lambda: functions.__setitem__(0, lambda: 3),
    )


@case
def registry_of_functions():
    registry: dict[str, Any] = {"a": lambda x: x}
    box = Box(name="a")
    return around(
        lambda: registry[box.name](2),
        lambda: registry.update(a=lambda x: x * 5),
        lambda: (registry.update(b=lambda x: -x), setattr(box, "name", "b")),
    )


@case
def names_absent():
    globals().pop("NOT_YET", None)

    def f():
        try:
            return NOT_YET
        except NameError as e:
            return str(e)

    return around(f, lambda: globals().update(NOT_YET=1), lambda: globals().pop("NOT_YET"))


@case
def shadowed_builtin():
    globals().pop("sorted_", None)

    def f():
        return max(1, 2)

    return around(f, lambda: globals().update(max=lambda *a: "mine"), lambda: globals().pop("max"))


@case
def assertions():
    box = Box(ok=True)

    def f():
        if not box.ok:
            raise AssertionError("not ok")
        return 1

    return around(f, lambda: setattr(box, "ok", False))


# The library ---------------------------------------------------------------------------------------------------------


@case
def lru_cache():
    box = Box(k=1)

    @functools.lru_cache
    def g(x):
        return x + box.k

    return around(lambda: g(1), lambda: setattr(box, "k", 5), g.cache_clear, lambda: g(2))


@case
def single_dispatch_like():
    box = Box(v=1)
    table = {int: lambda x: "int", str: lambda x: "str"}
    return around(
        lambda: table[type(box.v)](box.v), lambda: setattr(box, "v", "x"), lambda: table.update({str: lambda x: "text"})
    )


@case
def regular_expressions():
    box = Box(p=re.compile("a+"), s="caat")
    return around(
        lambda: (box.p.search(box.s).group(), re.sub("a", "b", box.s), re.findall(r"\w", box.s)),
        lambda: setattr(box, "s", "aaa"),
        lambda: setattr(box, "p", re.compile(".")),
    )


@case
def json_text():
    table = {"a": [1, None], "b": {"c": 2.5}}
    return around(
        lambda: (json.dumps(table), json.loads(json.dumps(table))["a"]),
        lambda: table["a"].append(5),
        lambda: table["b"].update(c=1),
    )


@case
def copies():
    box = Box(x=[1, {"k": 2}], y=Box(z=1))
    return around(
        lambda: (copy.copy(box).x is box.x, copy.deepcopy(box).y.z, copy.copy(box.x), copy.deepcopy(box.x)),
        lambda: setattr(box.y, "z", 5),
        lambda: box.x[1].update(k=3),
    )


@case
def templates():
    table = {"x": 1}
    return around(
        lambda: (
            string.Template("$x").substitute(table),
            "%(x)s" % table,
            "{x}".format(**table),
            "{x}".format_map(table),
        ),
        lambda: table.update(x=2),
    )


@case
def math_functions():
    box = Box(x=2.0, xs=[1.0, 2.0])
    return around(
        lambda: (math.sqrt(box.x), math.fsum(box.xs), math.floor(box.x), divmod(box.x, 1)),
        lambda: setattr(box, "x", 9.0),
        lambda: box.xs.append(5.0),
    )


@case
def dates():
    box = Box(d=datetime.date(2020, 1, 2))
    return around(
        lambda: (box.d.year, box.d + datetime.timedelta(days=1), box.d < datetime.date(2021, 1, 1), box.d.isoformat()),
        lambda: setattr(box, "d", datetime.date(2022, 5, 6)),
    )


@case
def environment():
    os.environ.pop("RUNNEL_TEST_ABSENT", None)
    return around(
        lambda: (
            os.environ.get("RUNNEL_TEST_ABSENT"),
            "RUNNEL_TEST_ABSENT" in os.environ,
            os.getenv("RUNNEL_TEST_ABSENT", "d"),
        ),
        lambda: os.environ.update(RUNNEL_TEST_ABSENT="1"),
        lambda: os.environ.pop("RUNNEL_TEST_ABSENT"),
    )


@case
def context_variables():
    variable = contextvars.ContextVar("v")

    def f():
        return variable.get(None), variable.get(7)

    return around(f, lambda: variable.set(3), lambda: variable.set(None))


@case
def string_methods():
    box = Box(s="a,b", parts=["x", "y"])
    return around(
        lambda: (box.s.split(","), "-".join(box.parts), box.s.replace("a", "z"), box.s[0], box.s * 2, "a" in box.s),
        lambda: setattr(box, "s", "q"),
        lambda: box.parts.append("w"),
    )


@case
def cwd():
    return around(lambda: os.getcwd() == "/", lambda: None)


@case
def partial_objects():
    box = Box(k=1)

    def g(a, b, c=3):
        return a, b, c, box.k

    p = functools.partial(g, 1, c=5)
    return around(
        lambda: (p(2), functools.partial(p, 7)(), p.func is g, p.args),
        lambda: setattr(box, "k", 9),
        lambda: p.keywords.update(c=0),
    )


@case
def views():
    table = {"a": 1, "b": 2}

    def f():
        return (
            list(table.keys()),
            sum(table.values()),
            sorted(table.items()),
            table.keys() & {"a"},
            len(table.items()),
            "a" in table.keys(),
        )

    return around(f, lambda: table.update(c=3), lambda: table.pop("a"))


@case
def sorting_objects():
    items = [Box(k=2, n="a"), Box(k=1, n="b")]
    return around(
        lambda: ([b.n for b in sorted(items, key=lambda b: b.k)], min(items, key=operator.attrgetter("k")).n),
        lambda: setattr(items[0], "k", 0),
        lambda: items.append(Box(k=-1, n="c")),
    )


@case
def type_hints_ignored():
    box = Box(x=1)

    def f():
        y: int = box.x
        z: "list[int]" = [y]
        return z

    return around(f, lambda: setattr(box, "x", 2))


@case
def printing():
    out = io.StringIO()
    box = Box(x=1)

    def f():
        print("x is", box.x, [box.x], sep="-", file=out)

    return around(f, lambda: setattr(box, "x", 2), state=out.getvalue)


@case
def warning_each_call():
    box = Box(x=1)

    def f():
        warnings.warn(f"x is {box.x}", UserWarning, stacklevel=1)
        return box.x

    caught = warnings.catch_warnings(record=True)
    observed = caught.__enter__()
    warnings.simplefilter("always")
    steps = [CALL, CALL, lambda: setattr(box, "x", 2), CALL, CALL, lambda: caught.__exit__(None, None, None)]
    return f, steps, lambda: [str(w.message) for w in observed or ()]


@case
def logging_each_call():
    records: list[str] = []
    logger = logging.Logger("observed")

    class Keep(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    logger.addHandler(Keep())
    box = Box(x=1)

    def f():
        logger.info("x is %s", box.x)
        logger.warning("and %d", 2)

    return around(f, lambda: setattr(box, "x", 2), lambda: logger.setLevel(logging.ERROR), state=lambda: records)


# What must be refused ----------------------------------------------------------------------------------------------------


@refused("a clock is read")
def clock():
    return around(lambda: time.perf_counter() > 0)


@refused("a clock is read")
def wall_clock():
    return around(lambda: time.time() > 0)


@refused("a clock is read")
def now():
    return around(lambda: datetime.datetime.now().year)


@refused("random numbers are drawn")
def random_number():
    return around(lambda: random.random())


@refused("random numbers are drawn")
def random_choice():
    return around(lambda: random.choice([1, 2]))


@refused("random numbers are drawn")
def own_generator():
    r = random.Random(1)
    return around(lambda: r.random())


@refused("a file is read")
def file_read():
    return around(lambda: open("/dev/null").close())


@refused("the file system is asked")
def file_exists():
    return around(lambda: os.path.exists("/nowhere"))


@refused("an iterator made outside")
def outside_iterator():
    it = iter([1, 2, 3])
    return around(lambda: next(it))


@refused("an iterator made outside")
def outside_generator():
    g = (x for x in range(9))
    return around(lambda: [x for _, x in zip(range(2), g)])


@refused("globals()")
def all_globals():
    return around(lambda: globals()["Box"])


@refused("runs a text")
def evaluated():
    return around(lambda: eval("1 + 1"))


@refused("shows its address")
def default_text():
    box = Box()
    return around(lambda: str(box))


@refused("differs from run to run")
def address_of_own():
    return around(lambda: id([]) % 2)


@refused("depends on how they were made")
def equal_numbers():
    box = Box(a=10**9, b=10**9)
    return around(lambda: box.a is box.b)


@refused("a lock is taken")
def lock():
    reference = threading.Lock()

    def f():
        with reference:
            return 1

    return around(f)


@refused("asynchronous")
def coroutine():
    async def g():
        return 1

    return around(lambda: g().close())


@case
def closure_returned():
    return around(lambda: lambda: 1)


@refused("leaves it")
def generator_returned():
    def g():
        yield 1

    return around(lambda: g())


@refused("leaves it")
def class_returned():
    def f():
        class A:
            pass

        return A

    return around(f)


@refused("cannot be watched")
def thread_started():
    return around(lambda: threading.Thread(target=print).start())


@refused("__del__")
def finalizer():
    class A:
        def __del__(self):
            pass

    return around(lambda: A() is None)


@refused("cannot be watched")
def thread_local():
    local = threading.local()
    local.x = 1
    return around(lambda: local.x)


@refused("nobody knows")
def frame():
    import sys

    return around(lambda: sys._getframe().f_lineno)


@refused("a clock is read")
def caught_refusal():
    def f():
        try:
            return time.time()
        except BaseException:
            return 0

    return around(f)


@pytest.mark.parametrize("name", CASES)
def test_function(name: str) -> None:
    build, reason = CASES[name]
    if reason != MAY_BE:
        check(build, reason)
        return
    try:
        check(build)
    except AssertionError as problem:
        assert str(problem).startswith("refused")
