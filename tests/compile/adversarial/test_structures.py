"""Data classes, named tuples and other structures of arrays, changed between calls."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import itertools
from typing import Any, NamedTuple

import pytest

import runnel as rn
from tests.compile.adversarial.inputs import warm, x
from tests.compile.adversarial.worlds import Case, Cases, call

CASES = Cases()
case = CASES.case


@dataclasses.dataclass
class Batch:
    x: Any
    scale: float = 2.0
    name: str = "train"

    def scaled(self) -> Any:
        return self.x * self.scale


class Pair(NamedTuple):
    a: Any
    b: Any

    @property
    def total(self) -> Any:
        return self.a + self.b


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


@case
def dataclass_argument():
    b = Batch(x())
    return (lambda b: b.scaled() + len(b.name)), [
        *warm(b),
        lambda: setattr(b, "scale", 4.0),
        *warm(b),
        *warm(Batch(x(), 5.0, "test")),
    ]


@case
def dataclass_result():
    return (lambda b: dataclasses.replace(b, x=b.x * 2, name=b.name + "!")), [
        *warm(Batch(x())),
        *warm(Batch(x(), 3.0, "v")),
    ]


@case
def named_tuple_both_ways():
    return (lambda p: Pair(p.total, p.a - p.b)._replace(b=p.b)), [*warm(Pair(x(), x())), *warm(Pair(x(), 2.0))]


@case
def enum_argument():
    return (lambda p, m: (p * 2, m) if m is Mode.FAST else (p * 3, m.value)), [
        *warm(x(), Mode.FAST),
        *warm(x(), Mode.SLOW),
    ]


@case
def match_on_config():
    def f(p, config):
        match config:
            case {"kind": "scale", "by": by}:
                return p * by
            case {"kind": "shift", **rest}:
                return p + len(rest)
            case Batch(scale=s):
                return p - s
            case [first, *others]:
                return p * first + len(others)
            case _:
                return p

    config = {"kind": "scale", "by": 2.0}
    return f, [
        *warm(x(), config),
        lambda: config.update(by=3.0),
        *warm(x(), config),
        lambda: config.update(kind="shift"),
        *warm(x(), config),
        *warm(x(), Batch(None)),
        *warm(x(), [2.0, 1, 1]),
        *warm(x(), None),
    ]


@case
def floats_that_vary():
    return (lambda p, s: p * s), [
        call(x(), s) for s in (0.5, 0.25, 0.125, 2, 2.0, True, -0.0, float("nan"), float("inf"))
    ]


@case
def floats_looked_at():
    def f(p, s):
        return p * s if s > 0.3 else p + int(s * 10) + (type(s) is float)

    return f, [call(x(), s) for s in (0.5, 0.25, 0.5, 0.25, 1)]


@case
def floats_formatted():
    return (lambda p, s: (p * s, f"{s:.2f}", str(s), round(s, 1), [s, {s: s}])), [
        call(x(), s) for s in (0.5, 0.25, 0.5)
    ]


@case
def float_returned():
    return (lambda p, s: (s, s * 2, -s, p.shape[0] * s, type(s).__name__, s.is_integer())), [
        call(x(), s) for s in (0.5, 0.25, 2.0)
    ]


@case
def float_in_containers():
    return (lambda p, o: p * o["lr"] + o["b"][1]), [
        call(x(), {"lr": s, "b": (0.9, s)}) for s in (0.5, 0.25, 0.5, 0.125)
    ]


@case
def integers_strings_none():
    def f(p, n=2, mode="sum", axis=None, *, keep=False):
        y = getattr(p.reshape(2, 2) * n, mode)(axis=axis, keepdims=keep)
        return y

    return f, [
        call(x()),
        call(x(), 3),
        call(x(), 3, "mean"),
        call(x(), axis=0),
        call(x(), axis=0, keep=True),
        call(x(), 2, keep=True),
        call(x()),
    ]


@case
def keyword_order():
    def f(**kwargs):
        y = 0.0
        for name, value in kwargs.items():
            y = y * 2 + value * len(name)
        return y

    return f, [*warm(a=x(), bb=x() * 3), *warm(bb=x() * 3, a=x())]


@case
def star_arguments():
    return (lambda *xs, **named: sum(xs) + sum(named.values()) + len(xs)), [
        *warm(x()),
        *warm(x(), x()),
        *warm(x(), k=x()),
        *warm(x(), k=2.0),
    ]


@case
def shapes_everywhere():
    def f(p):
        n, m = p.shape
        q = p.reshape(m, n) if n < m else p
        return q / (n * m) + q.shape[0] // 2, p.shape, f"{p.shape}", p.shape[-1] ** 0.5, tuple(reversed(p.shape))

    return f, [*warm(rn.ones((2, 3))), *warm(rn.ones((3, 2))), *warm(rn.ones((4, 4)))]


@case
def early_return_by_shape():
    return (lambda p: p if p.shape[0] < 3 else p[:3] * 2), [*warm(x()), *warm(x()[:2])]


@case
def dtype_comparisons():
    return (lambda p: p * 2 if p.dtype == rn.float32 else p.astype(rn.float32)), [
        *warm(x()),
        *warm(x().astype(rn.float64)),
        *warm(x().astype(rn.int32)),
    ]


@case
def device_strings():
    return (lambda p: p.to("cpu") * 2 if str(p.device) == "cpu" else p), [*warm(x())]


@case
def reductions_of_python():
    return (lambda xs: (functools.reduce(lambda a, b: a * 2 + b, xs), sum(xs), list(itertools.accumulate(xs)))), [
        *warm([x(), x()]),
        *warm([x(), x(), x()]),
    ]


@case
def sorted_by_key():
    return (lambda xs: rn.concat(sorted(xs, key=lambda t: -t.shape[0]))), [
        *warm([x()[:1], x(), x()[:2]]),
        *warm([x(), x()[:2]]),
    ]


@case
def zip_map_filter():
    return (
        lambda xs, ws: list(
            map(lambda t: t * 2, filter(lambda t: t.ndim == 1, (a * w for a, w in zip(xs, ws, strict=False))))
        )
    ), [*warm([x(), x()], [1.0, 2.0]), *warm([x(), x()], [x(), rn.ones((4, 4))])]


@case
def deque_of_tensors():
    history: Any = collections.deque(maxlen=3)

    def f(p):
        history.append(p * 2)
        return sum(history)

    return f, [*warm(x()), *warm(x()), history.clear, *warm(x())], lambda: history


@case
def user_dict_and_defaultdict():
    table: Any = collections.UserDict(scale=2.0)
    counts: Any = collections.defaultdict(lambda: 3.0)
    return (
        (lambda p: p * table["scale"] + counts["new"]),
        [*warm(x()), lambda: table.update(scale=5.0), *warm(x()), lambda: counts.update(new=1.0), *warm(x())],
        lambda: (dict(table), dict(counts)),
    )


@case
def set_of_names():
    names = {"a", "b"}
    return (lambda d: sum(v for k, v in d.items() if k in names)), [
        *warm({"a": x(), "c": x()}),
        lambda: names.add("c"),
        *warm({"a": x(), "c": x()}),
    ]


@case
def nested_argument_identity():
    a = [x()]
    return (lambda p, q: p[0] * 2 if p is q else p[0] + q[0]), [*warm(a, a), *warm(a, [x()]), *warm([x()], a)]


@case
def subclass_of_list_and_dict():
    class Rows(list[Any]):
        factor = 2.0

        def total(self) -> Any:
            return sum(self) * self.factor

    r = Rows([x(), x()])
    return (lambda r: r.total()), [
        *warm(r),
        lambda: setattr(r, "factor", 3.0),
        *warm(r),
        lambda: r.append(x()),
        *warm(r),
    ]


@pytest.mark.parametrize("one", CASES)
def test_as_python(one: Case) -> None:
    one.run()
