"""Changes of outside objects that hold tensors."""

from __future__ import annotations

import collections
import functools
from typing import Any

import pytest

import runnel as rn
from runnel import nn
from tests.compile.adversarial.inputs import warm, x
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case


class Box:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def changing(function: Any, *changes: Any, state: Any = None) -> Any:
    steps = warm(x())
    for change in changes:
        steps += [change, *warm(x())]
    return function, steps, state or (lambda: None)


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


@pytest.mark.parametrize("one", CASES)
def test_as_python(one: Case) -> None:
    one.run()
