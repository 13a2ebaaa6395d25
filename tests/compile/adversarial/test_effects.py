"""Changes of outside objects that hold tensors, output, errors, and what Python programs do besides."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import functools
import itertools
import logging
import os
import time
import types
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case
MODE = contextvars.ContextVar("MODE", default=1.0)


def warm(*args: Any, **kwargs: Any) -> list[Any]:
    return [call(*args, **kwargs)] * 3


def x() -> rn.Tensor:
    return tensor(1.0, -2.0, 3.0, 0.5)


class Box:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def changing(function: Any, *changes: Any, state: Any = None) -> Any:
    steps = warm(x())
    for change in changes:
        steps += [change, *warm(x())]
    return function, steps, state or (lambda: None)


# Effects --------------------------------------------------------------------------------------------------------------


@case
def last_result_kept():
    b = Box(last=None)

    def f(t):
        b.last = h = t * 2
        return h + 1

    return changing(f, lambda: setattr(b, "last", None), state=lambda: b)


@case
def last_result_kept_and_returned():
    b = Box()

    def f(t):
        b.last = h = t * 2
        b.pair = (h, [h, t])
        return h

    return changing(f, state=lambda: b)


@case
def last_result_used_next_time():
    b = Box(last=tensor(0, 0, 0, 0))

    def f(t):
        out = t + b.last
        b.last = t * 2
        return out

    return changing(f, lambda: setattr(b, "last", tensor(9, 9, 9, 9)), state=lambda: b)


@case
def module_keeps_its_activations():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.activations = {}

        def forward(self, t):
            h = self.layer(t)
            self.activations["h"] = h.detach()
            self.aux_loss = (h * h).mean().detach()
            self.shapes = (*getattr(self, "shapes", ()), t.shape)[-2:]
            return h

    m = Own()
    return changing(m, lambda: m.activations.clear(), state=lambda: m)


@case(traces=12)
def losses_appended():
    b = Box(losses=[])

    def f(t):
        loss = (t * t).sum()
        b.losses.append(loss)
        return loss

    return changing(f, b.losses.clear, state=lambda: b)


@case(traces=12)
def losses_counted():
    b = Box(losses=[], steps=0)

    def f(t):
        b.steps += 1
        b.losses.append(t.sum())
        return sum(b.losses) / len(b.losses)

    return changing(f, b.losses.clear, state=lambda: b)


@case
def cache_keyed_by_shape():
    cache: dict[Any, Any] = {}

    def f(t):
        key = (t.shape, t.dtype)
        if key not in cache:
            cache[key] = rn.arange(t.shape[0]).astype(rn.float32) * 2
        return t * cache[key]

    return f, [*warm(x()), *warm(tensor(1, 2)), *warm(x()), cache.clear, *warm(x())], lambda: cache


@case
def position_table_grows():
    b = Box(table=None)

    def f(t):
        n = t.shape[0]
        if b.table is None or b.table.shape[0] < n:
            b.table = rn.sin(rn.arange(n).astype(rn.float32))
        return t + b.table[:n]

    return f, [*warm(tensor(1, 2)), *warm(x()), *warm(tensor(1, 2))], lambda: b


@case
def dict_of_metrics_updated():
    metrics: dict[str, Any] = {"n": 0}

    def f(t):
        metrics.update(loss=t.sum(), peak=t.max())
        metrics.setdefault("first", t[0])
        return t * 2

    return changing(f, lambda: metrics.pop("first"), state=lambda: metrics)


@case
def nested_containers_filled():
    b = Box(tree={"a": [[], {}]})

    def f(t):
        b.tree["a"][0].append(t * 2)
        b.tree["a"][1][len(b.tree["a"][0])] = (t, {"s": t.sum()})
        return t

    return f, [call(x()), call(x()), call(x())], lambda: b


@case
def list_taken_from():
    todo = [tensor(1, 1, 1, 1), tensor(2, 2, 2, 2), tensor(3, 3, 3, 3)]
    return (lambda t: t * todo.pop()), warm(x()), lambda: todo


@case
def list_rotated():
    order = collections.deque([1.0, 2.0, 3.0])

    def f(t):
        order.rotate(1)
        return t * order[0]

    return f, [call(x())] * 7, lambda: order


@case
def slice_assignment():
    saved = [tensor(0), tensor(0), tensor(0)]

    def f(t):
        saved[:2] = [t, t * 2]
        saved[-1] = saved[0] + saved[1]
        return saved[-1]

    return changing(f, saved.reverse, state=lambda: saved)


@case
def attribute_deleted():
    b = Box(mask=tensor(1, 0, 1, 0))

    def f(t):
        if hasattr(b, "mask"):
            t = t * b.mask
            del b.mask
        return t

    return changing(f, lambda: setattr(b, "mask", tensor(5, 5, 5, 5)), state=lambda: b)


@case
def tensors_swapped_between_objects():
    a, b = Box(v=tensor(1, 1, 1, 1)), Box(v=tensor(2, 2, 2, 2))

    def f(t):
        a.v, b.v = b.v, a.v
        return t * a.v

    return changing(f, state=lambda: (a, b))


@case
def the_same_object_under_two_names():
    a = Box(n=1.0)
    b = Box(n=2.0)

    def f(t, p, q):
        p.n = p.n + 1
        return t * q.n

    return f, [call(x(), a, b), call(x(), a, a), call(x(), b, a), call(x(), a, b)] * 2, lambda: (a, b)


@case
def object_made_and_kept():
    b = Box()

    def f(t):
        b.made = Box(value=t * 2, parts=[t])
        b.made.self = b.made
        return b.made.value

    return changing(f, state=lambda: b)


@case
def object_returned():
    return changing(lambda t: Box(value=t * 2, list=[t, t]))


@case(traces=12)
def counter_in_a_closure():
    n = 0

    def f(t):
        nonlocal n
        n += 1
        return t * n

    return f, [call(x())] * 5, lambda: n


@case(traces=12)
def counter_on_a_class():
    class Own:
        calls = 0

        def f(self, t):
            type(self).calls += 1
            return t * 2

    o = Own()
    return o.f, [call(x())] * 4, lambda: Own.calls


@case
def function_attribute():
    def f(t):
        return t * f.scale

    f.scale = 2.0
    return changing(f, lambda: setattr(f, "scale", 3.0))


@case
def cached_result():
    @functools.lru_cache
    def table(n):
        return [float(i) for i in range(n)]

    return changing(lambda t: t * table(t.shape[0])[-1], lambda: table.cache_clear(), lambda: table(4).append(9.0))


@case
def cached_tensor():
    @functools.lru_cache
    def table(n):
        return rn.arange(n).astype(rn.float32)

    return changing(lambda t: t * table(t.shape[0]), lambda: table.cache_clear())


# Output ---------------------------------------------------------------------------------------------------------------


@case
def printed_shapes():
    b = Box(name="run")

    def f(t):
        print("shape", t.shape, t.dtype, f"{b.name}: {t.ndim}d {t.shape[0] * 2:>4}")
        return t * 2

    return changing(f, lambda: setattr(b, "name", "other"))


@case
def logged_shapes():
    log = logging.getLogger("adversarial")

    def f(t):
        log.warning("shape %s of %s", t.shape, t.dtype)
        logging.error(f"{len(t.shape)}")
        return t * 2

    return changing(f)


@case
def warned():
    def f(t):
        if t.shape[0] > 2:
            warnings.warn(f"{t.shape[0]} rows", UserWarning, stacklevel=2)
        return t * 2

    return f, [*warm(x()), *warm(tensor(1)), *warm(x())]


@case(error="TracedValueError")
def printed_values():
    def f(t):
        print(t.sum().item())
        return t * 2

    return changing(f)


@case(eager="clock")
def timed():
    b = Box()

    def f(t):
        start = time.perf_counter()
        y = t * 2
        b.fast = time.perf_counter() - start < 100
        return y

    return changing(f, state=lambda: b)


# Errors ---------------------------------------------------------------------------------------------------------------


@case
def error_raised_by_shape():
    def f(t):
        if t.shape[0] < 3:
            raise ValueError("too short")
        return t * 2

    return f, [*warm(x()), *warm(tensor(1)), *warm(x())]


@case
def error_caught():
    table = {"a": 2.0}

    def f(t, name):
        try:
            return t * table[name]
        except KeyError as error:
            return t, str(error)
        finally:
            table["seen"] = name

    return f, [*warm(x(), "a"), *warm(x(), "b"), lambda: table.update(b=3.0), *warm(x(), "b")], lambda: table


@case
def error_of_an_op_caught():
    b = Box(w=tensor(1, 2, 3))

    def f(t):
        try:
            return t * b.w
        except Exception:
            return t

    return changing(f, lambda: setattr(b, "w", tensor(2, 2, 2, 2)))


@case
def effects_before_an_error():
    b = Box(steps=[], limit=3)

    def f(t):
        b.steps.append(t * 2)
        if len(b.steps) > b.limit:
            raise RuntimeError("enough")
        return t

    return f, [call(x())] * 6, lambda: b


@case
def assertion_on_shapes():
    b = Box(width=4)

    def f(t):
        if t.shape[-1] != b.width:
            raise AssertionError(f"{t.shape} {b.width}")
        return t * 2

    return changing(f, lambda: setattr(b, "width", 5), lambda: setattr(b, "width", 4))


@case
def suppressed():
    table: dict[str, Any] = {}

    def f(t):
        with contextlib.suppress(KeyError):
            t = t * table["scale"]
        return t + 1

    return changing(f, lambda: table.update(scale=3.0))


@case
def users_context_manager():
    stack: list[str] = []

    class Scope:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            stack.append(self.name)
            return self

        def __exit__(self, *error):
            stack.pop()
            return False

    b = Box(name="one")

    def f(t):
        with Scope(b.name) as s:
            return t * len(stack) + len(s.name)

    return changing(f, lambda: setattr(b, "name", "three"), lambda: stack.append("outer"), state=lambda: stack)


@case
def context_manager_by_generator():
    b = Box(depth=0)

    @contextlib.contextmanager
    def deeper():
        b.depth += 1
        try:
            yield b.depth
        finally:
            b.depth -= 1

    def f(t):
        with deeper() as one, deeper() as two:
            return t * one + two

    return changing(f, lambda: setattr(b, "depth", 5), state=lambda: b)


# Python ---------------------------------------------------------------------------------------------------------------


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
def test_effects(one: Case) -> None:
    one.run()
