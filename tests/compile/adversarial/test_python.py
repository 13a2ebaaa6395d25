"""What Python programs do besides."""

from __future__ import annotations

import contextvars
import functools
import itertools
import os
import types
import weakref
from typing import Any

import numpy as np
import pytest

import runnel as rn
from tests.compile.adversarial.inputs import warm, x
from tests.compile.adversarial.worlds import Case, Cases, tensor

CASES = Cases()
case = CASES.case
MODE = contextvars.ContextVar("MODE", default=1.0)


class Box:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def changing(function: Any, *changes: Any, state: Any = None) -> Any:
    steps = warm(x())
    for change in changes:
        steps += [change, *warm(x())]
    return function, steps, state or (lambda: None)


@case
def generators():
    b = Box(n=2)

    def chunks(t):
        for i in range(b.n):
            yield t * (i + 1)

    def f(t):
        first, *rest = chunks(t)
        return first + sum(rest), [c for c in chunks(t) if c.ndim == 1]

    return changing(f, lambda: setattr(b, "n", 3))


@case
def comprehensions_and_walrus():
    scales = [1.0, 2.0]

    def f(t):
        out = {i: y for i, s in enumerate(scales) if (y := t * s).shape[0] > 1}
        return out, (n := len(out)) * t, {s: i for i, s in enumerate(scales)}, n

    return changing(f, lambda: scales.append(3.0))


@case
def closures_made_per_call():
    b = Box(k=2.0)

    def f(t):
        fs = [lambda u, i=i: u * i * b.k for i in range(3)]

        def both(u):
            return fs[1](u) + fs[2](u)

        return both(t)

    return changing(f, lambda: setattr(b, "k", 3.0))


@case
def recursion():
    b = Box(depth=3)

    def go(t, n):
        return t if n == 0 else go(t * 2, n - 1) + n

    return changing(lambda t: go(t, b.depth), lambda: setattr(b, "depth", 2))


@case
def environment():
    def f(t):
        return t * float(os.environ.get("RUNNEL_TEST_SCALE", "1"))

    return changing(f, lambda: os.environ.update(RUNNEL_TEST_SCALE="3"), lambda: os.environ.pop("RUNNEL_TEST_SCALE"))


@case
def context_variable():
    tokens: list[Any] = []
    return changing(lambda t: t * MODE.get(), lambda: tokens.append(MODE.set(4.0)), lambda: MODE.reset(tokens.pop()))


@case
def weak_reference():
    reference = [tensor(1, 2, 3, 4), Box(k=2.0)]
    b = Box(ref=weakref.ref(reference[1]))
    return changing(lambda t: t * (b.ref().k if b.ref() is not None else 0.0), reference.pop)


@case
def partial_arguments():
    def scale(t, k, *, shift=0.0):
        return t * k + shift

    b = Box(f=functools.partial(scale, k=2.0))
    return changing(
        lambda t: b.f(t),
        lambda: setattr(b, "f", functools.partial(scale, k=2.0, shift=1.0)),
        lambda: b.f.keywords.update(k=7.0),
    )


@case
def partial_compiled():
    table = {"k": 2.0}

    def scale(t, k):
        return t * k * table["k"]

    return changing(functools.partial(scale, k=3.0), lambda: table.update(k=4.0))


@case
def default_arguments():
    def f(t, k=2.0, parts=[1.0]):
        return t * k + sum(parts)

    return changing(f, lambda: setattr(f, "__defaults__", (3.0, [1.0])), lambda: f.__defaults__[1].append(5.0))


@case
def code_replaced():
    def helper(t):
        return t * 2

    def other(t):
        return t * 3

    return changing(lambda t: helper(t), lambda: setattr(helper, "__code__", other.__code__))


@case
def module_of_settings():
    settings = types.ModuleType("settings")
    settings.scale = 2.0
    return changing(lambda t: t * settings.scale, lambda: setattr(settings, "scale", 3.0))


@case
def itertools_over_tensors():
    b = Box(n=2)

    def f(t):
        parts = list(itertools.islice(itertools.cycle([t, t * 2]), b.n))
        return sum(a * c for a, c in itertools.product(parts, parts)), len(parts)

    return changing(f, lambda: setattr(b, "n", 3))


@case
def operators_of_users_over_tensors():
    class Unit:
        def __init__(self, value, k):
            self.value, self.k = value, k

        def __mul__(self, other):
            return Unit(self.value * other, self.k)

        __rmul__ = __mul__

        def __add__(self, other):
            return Unit(self.value + getattr(other, "value", other), self.k)

        def __matmul__(self, t):
            return self.value * t * self.k

    u = Unit(tensor(1, 2, 3, 4), 2.0)

    def f(t):
        return (u * t + 1) @ t, (t * u).value if False else (u * 2).value

    return changing(f, lambda: setattr(u, "k", 3.0), lambda: setattr(u, "value", tensor(1, 1, 1, 1)))


@case
def tensor_meets_a_users_object():
    class Scale:
        k = 2.0

        def __rmul__(self, t):
            return t + self.k

    s = Scale()
    return changing(lambda t: t * s, lambda: setattr(s, "k", 5.0))


@case
def getitem_of_users_with_tensors():
    class Rows:
        def __init__(self):
            self.rows = [tensor(1, 2, 3, 4), tensor(4, 3, 2, 1)]

        def __getitem__(self, i):
            return self.rows[i]

        def __len__(self):
            return len(self.rows)

        def __iter__(self):
            return iter(self.rows)

        def __contains__(self, t):
            return any(t is r for r in self.rows)

        def __bool__(self):
            return len(self.rows) > 1

    r = Rows()

    def f(t):
        out = t * r[-1] + len(r) + sum(r)
        return out * 2 if r and r[0] in r else out

    return changing(f, r.rows.pop, lambda: r.rows.append(tensor(1, 1, 1, 1)))


@case
def comparisons_of_configs():
    class Version:
        def __init__(self, n):
            self.n = n

        def __lt__(self, other):
            return self.n < other.n

        def __eq__(self, other):
            return self.n == other.n

        __hash__ = None

    a, b = Version(1), Version(2)
    return changing(
        lambda t: t * 2 if a < b else t * 3 if a == b else t, lambda: setattr(b, "n", 1), lambda: setattr(b, "n", 0)
    )


@case(eager="globals() gives all names")
def globals_and_vars():
    b = Box(k=2.0)
    name = ["SCALE"]
    globals()["SCALE"] = 2.0

    def f(t):
        return t * globals()[name[0]] + vars(b)["k"] + getattr(b, "k" + "")

    return changing(f, lambda: globals().update(SCALE=5.0), lambda: setattr(b, "k", 3.0))


@case
def descriptor_of_a_user():
    class Field:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, value, owner):
            return getattr(value, self.name) * 2

        def __set__(self, value, new):
            setattr(value, self.name, new + 1)

    class Own:
        k = Field()

        def f(self, t):
            out = t * self.k
            self.k = 3.0
            return out

    o = Own()
    o.k = 1.0
    return changing(o.f, lambda: setattr(o, "_k", 9.0), state=lambda: o)


@case
def tensor_as_attribute_default():
    b = Box(scale=None)

    def f(t):
        scale = b.scale or 1.0
        k = getattr(b, "shift", None)
        return t * scale if k is None else t * scale + k

    return changing(f, lambda: setattr(b, "scale", 2.0), lambda: setattr(b, "shift", tensor(1, 1, 1, 1)))


@case
def sorting_configs_by_users_key():
    class Layer:
        def __init__(self, rank, k):
            self.rank, self.k = rank, k

        def __lt__(self, other):
            return self.rank < other.rank

    layers = [Layer(2, 3.0), Layer(1, 2.0)]

    def f(t):
        for layer in sorted(layers):
            t = t * layer.k + layer.rank
        return t

    return changing(f, lambda: setattr(layers[0], "rank", 0))


@case
def string_formatting_of_state():
    b = Box(step=3, rate=0.5, name="x")
    return changing(
        lambda t: (t * 2, f"{b.step:03d} {b.rate!r} {b.name:>5}", "%s-%d" % (b.name, b.step), f"{b.name}"),
        lambda: setattr(b, "step", 4),
        lambda: setattr(b, "name", "y"),
    )


@case
def type_and_isinstance():
    b = Box(v=2.0)
    return changing(
        lambda t: t * 2 if isinstance(b.v, float) else t * b.v if isinstance(b.v, rn.Tensor) else t,
        lambda: setattr(b, "v", 2),
        lambda: setattr(b, "v", tensor(1, 2, 3, 4)),
        lambda: setattr(b, "v", np.float64(2)),
    )


@case
def flags_by_numpy():
    b = Box(flags=np.array([True, False]))
    return changing(lambda t: t * 2 if b.flags.any() else t, lambda: b.flags.fill(False))


@pytest.mark.parametrize("one", CASES)
def test_as_python(one: Case) -> None:
    one.run()
