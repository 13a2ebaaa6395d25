"""Objects of the user's classes that stand for numbers, arrays or sequences, given to Runnel, NumPy and C functions."""

from __future__ import annotations

import heapq
import itertools
import math
import operator
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import TracedValueError
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()


class Held:
    def __init__(self, k: Any) -> None:
        self.k = k


class Array(Held):
    def __array__(self, dtype=None, copy=None):
        return np.array(self.k, np.float32)


class Column(Array):
    def __iter__(self):
        yield from self.k

    def __len__(self):
        return len(self.k)

    def __getitem__(self, i):
        return self.k[i]


class Row(Held):
    def __iter__(self):
        yield from self.k

    def __len__(self):
        return len(self.k)

    def __getitem__(self, i):
        return self.k[i]


class ByIndex(Held):
    def __len__(self):
        return len(self.k)

    def __getitem__(self, i):
        return self.k[i]


class CallableArray(Array):
    def __call__(self, x):
        return x * self.k[0]


class Scaled(list):
    k = 1.0

    def __iter__(self):
        return (x * self.k for x in list.__iter__(self))

    def __getitem__(self, i):
        return list.__getitem__(self, i) * self.k


class Index(Held):
    def __index__(self):
        return self.k

    def __bool__(self):
        return self.k > 1

    def __call__(self, x):
        return x + self.k


class Number(Held):
    def __float__(self):
        return self.k


class Pieces(Held):
    """Says how many it has, and gives another number."""

    def __iter__(self):
        yield float(self.k)

    def __len__(self):
        return self.k

    def __float__(self):
        return float(self.k)


class Protocol(Held):
    @property
    def __array_interface__(self):
        return np.asarray(self.k, np.float32).__array_interface__


OF_ARRAYS: dict[str, Any] = {
    "asarray": lambda h, x: x * rn.asarray(h),
    "where": lambda h, x: rn.where(x > 1, rn.asarray(h), x),
    "np_asarray": lambda h, x: x * np.asarray(h),
    "np_array": lambda h, x: x * np.array(h, np.float32),
    "np_mean": lambda h, x: x * np.mean(h),
    "np_stack": lambda h, x: x * np.stack([h, h]),
    "method": lambda h, x: x * np.ones(3).dot(h),
    "vectorize": lambda h, x: x * np.vectorize(lambda i: h.k[0] * i)(np.arange(3.0)),
    "after_another_number": lambda h, x: x * h.k[0] + rn.asarray(h),
    "made_inside": lambda h, x: x * rn.asarray(type(h)(h.k)),
    "number_kept_inside": lambda h, x: x * np.asarray(type(h)([h.k[0], h.k[1], 1.0])),
}
OF_NUMBERS: dict[str, Any] = {
    "index": lambda h, x: x[h],
    "slice": lambda h, x: x[h:],
    "shape": lambda h, x: rn.ones((2, h)),
    "fill": lambda h, x: x.reshape(h, -1) if h.k < 0 else rn.zeros(h),
    "np_zeros": lambda h, x: np.zeros(h),
    "range": lambda h, x: x * len(range(h)),
    "comb": lambda h, x: x * math.comb(5, h),
    "hex": lambda h, x: x * int(hex(h), 16),
    "islice": lambda h, x: x * sum(itertools.islice([1, 2, 3], h)),
    "repeat": lambda h, x: x * sum(v.k for v in itertools.repeat(h, 2)),
    "filter": lambda h, x: x * len(list(filter(None, [h, h]))),
    "compress": lambda h, x: x * sum(itertools.compress([1, 2], [h, h])),
    "takewhile": lambda h, x: x * len(list(itertools.takewhile(lambda v: v, [h, h]))),
    "accumulate": lambda h, x: list(itertools.accumulate([x, x], h.__class__.accumulated)),
    "methodcaller": lambda h, x: operator.methodcaller("__call__", x)(h),
    "max": lambda h, x: x * max(h, h, key=lambda v: v.k).k,
    "nlargest": lambda h, x: x * heapq.nlargest(1, [h], key=lambda v: v.k)[0].k,
}
OF_FLOATS: dict[str, Any] = {
    "full": lambda h, x: rn.full((2,), float(h)),
    "sin": lambda h, x: x * math.sin(h),
    "hypot": lambda h, x: x * math.hypot(h, 1.0),
    "float32": lambda h, x: x * np.float32(h),
    "text": lambda h, x: x * float(f"{float(h):.2f}"),
    "made_inside": lambda h, x: x * math.sin(type(h)(h.k)),
}
Index.accumulated = staticmethod(lambda a, b: a + b)  # type: ignore[attr-defined]


def add(name: str, kind: Any, read: Any, values: tuple[Any, ...]) -> None:
    def make() -> Any:
        h = kind(values[0])
        steps: list[Any] = [call(tensor(1.0, 2.0, 3.0))] * 3
        for value in values[1:]:
            steps += [lambda value=value: setattr(h, "k", value), *[call(tensor(1.0, 2.0, 3.0))] * 2]
        return (lambda x: read(h, x)), steps

    make.__name__ = f"{name}_of_{kind.__name__}"
    CASES.case(make)


for name, read in OF_ARRAYS.items():
    for kind in (Array, Column, Row, ByIndex, CallableArray):
        if not (name == "method" and kind is ByIndex):
            add(name, kind, read, ([1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [2.0, 1.0, 5.0]))
for name, read in OF_NUMBERS.items():
    add(name, Index, read, (1, 2, 0))
for name, read in OF_FLOATS.items():
    add(name, Number, read, (1.0, 2.5, 0.5))
    add(name, Pieces, read, (1, 2, 3))
add("length_hint", Pieces, lambda h, x: x * operator.length_hint(h), (1, 2, 3))
add("fsum", Pieces, lambda h, x: x * math.fsum(h), (1, 2, 3))
add("chain", Pieces, lambda h, x: x * sum(itertools.chain(h, h)), (1, 2, 3))
add("cycle", Pieces, lambda h, x: x * sum(itertools.islice(itertools.cycle(h), 3)), (1, 2, 3))


@CASES.case
def a_list_that_gives_other_items():
    h = Scaled([tensor(1.0, 2.0), tensor(3.0, 4.0)])
    change = [lambda: setattr(h, "k", 3.0), call(tensor(1.0, 1.0)), lambda: h.append(tensor(5.0, 6.0))]
    return (lambda x: x + rn.stack(h).sum(axis=0)), [*[call(tensor(1.0, 1.0))] * 3, *change, call(tensor(1.0, 1.0))]


@CASES.case
def a_property_of_the_array_protocol():
    h = Protocol([1.0, 2.0, 0.0])
    steps = [*[call(tensor(1.0, 2.0, 3.0))] * 3, lambda: setattr(h, "k", [2.0, 1.0, 0.0]), call(tensor(1.0, 2.0, 3.0))]
    return (lambda x: x * rn.asarray(h)), steps


@pytest.mark.parametrize("case", CASES)
def test_case(case: Case) -> None:
    case.run()


def test_the_greater_of_two_tensors_is_asked_for_its_value() -> None:
    f = rn.compile(lambda a, b: max(a, b))
    with pytest.raises(TracedValueError, match="traced"):
        f(rn.asarray(1.0), rn.asarray(2.0))
