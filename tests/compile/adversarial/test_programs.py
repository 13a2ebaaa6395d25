"""Pieces of ordinary programs: effects on tensors, lists that grow, containers of the library, texts."""

from __future__ import annotations

import collections
import dataclasses
import enum
import json
import logging
import os
import re
import typing
import warnings
from typing import Any

import numpy as np
import pytest

import runnel as rn
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case


def rows() -> rn.Tensor:
    return rn.asarray(np.arange(12, dtype=np.float32).reshape(3, 4) / 7)


def x() -> rn.Tensor:
    return tensor(1.0, -2.0, 3.0)


def warm(*args: Any, **kwargs: Any) -> list[Any]:
    return [call(*args, **kwargs)] * 3


@case
def item_of_an_argument():
    def f(x: Any) -> Any:
        x[0] = 5.0
        return x * 2

    return f, [call(x()), call(x()), call(x())]


@case
def item_of_an_attribute():
    class Own:
        def __init__(self) -> None:
            self.buffer = rn.zeros(4)
            self.at = 0

    o = Own()

    def f(x: Any) -> Any:
        o.buffer[o.at] = x.sum()
        o.at = (o.at + 1) % 4
        return o.buffer * 1.0

    return f, [call(x()), call(x() + 1), call(x() + 2), call(x() + 3), call(x() + 4), call(x())], lambda: o


@case
def in_place_methods():
    total = rn.zeros(3)

    def f(x: Any) -> Any:
        total.add_(x)
        total.mul_(0.5)
        return total.sum()

    return f, [call(x()), call(x() * 2), call(x() * 3), call(x())], lambda: total


@case
def copied_and_zeroed():
    saved, spare = rn.zeros(3), rn.ones(3)

    def f(x: Any) -> Any:
        saved.copy_(x * 2)
        before = spare * 1.0
        spare.zero_()
        return saved + before

    return f, [call(x()), call(x() + 1), lambda: spare.fill_(4.0), call(x()), call(x())], lambda: (saved, spare)


@case
def another_handle_keeps_its_value():
    a = tensor(1.0, 2.0, 3.0)
    b = a * 1.0
    names = {"a": a, "same": a, "b": b}

    def f(x: Any) -> Any:
        names["a"][1:] = x[1:]
        return names["same"].sum() + names["b"].sum()

    return f, [call(x()), call(x() + 1), call(x() + 2)], lambda: names


@case
def replaced_between_calls():
    names = {"a": tensor(1.0, 2.0, 3.0)}

    def f(x: Any) -> Any:
        names["a"] += x
        return names["a"] * 2

    return f, [*warm(x()), lambda: names.update(a=tensor(7.0, 7.0, 7.0)), *warm(x())], lambda: names


@case
def a_mask_is_cleared_in_place():
    mask = rn.asarray(np.array([True, False, True]))

    def f(x: Any) -> Any:
        y = rn.where(mask, x, 0.0)
        mask[0] = False
        return y

    return f, [call(x()), call(x()), lambda: mask.__setitem__(0, True), call(x()), call(x())], lambda: mask


@case
def running_sum_in_a_loop():
    state = [rn.zeros(2), rn.zeros(2)]

    def f(x: Any) -> Any:
        for i, s in enumerate(state):
            s[i] = s[i] + x[i]
        return state[0] + state[1]

    return f, [call(x()), call(x() + 1), call(x() + 2)], lambda: state


@case
def changed_and_returned():
    def f(x: Any) -> Any:
        x.mul_(2.0)
        return x, x + 1

    return f, [call(x()), call(x()), call(x())]


@case
def one_tensor_twice():
    def f(a: Any, b: Any) -> Any:
        a[0] = 9.0
        return b * 2

    same = x()
    return f, [call(x(), x()), call(same, same), call(x(), x()), call(same, same)]


@case
def changed_before_an_error():
    saved = rn.zeros(3)

    def f(x: Any, flag: bool) -> Any:
        saved.add_(x)
        if flag:
            raise ValueError("enough")
        return saved * 2

    return f, [call(x(), False), call(x(), True), call(x(), False), call(x(), True)], lambda: saved


@case
def changed_in_a_compiled_function_inside():
    saved = rn.zeros(3)

    @rn.compile
    def inner(y: Any) -> Any:
        y[1] = 4.0
        saved.add_(y)
        return y.sum()

    def f(x: Any) -> Any:
        y = x * 2
        total = inner(y)
        return y + total + inner(x)

    return f, [call(x()), call(x() + 1), call(x())], lambda: saved


@case
def value_of_a_variable_is_not_changed():
    v = rn.Variable(np.ones(3, np.float32))

    def f(y: Any) -> Any:
        y[0] = 4.0
        return y * 2

    return f, [call(x()), call(x()), call(v.read()), call(x())], lambda: v


@case
def swapped_in_place():
    a, b = tensor(1.0, 2.0), tensor(3.0, 4.0)

    def f(x: Any) -> Any:
        before = a * 1.0
        a.copy_(b)
        b.copy_(before)
        return x * a.sum()

    return f, [call(x()), call(x()), call(x())], lambda: (a, b)


@case
def counters_beside_tensors():
    state = {"n": 0}

    def f(x: Any) -> Any:
        state["n"] += 1
        return x * state["n"] + state["n"] / x - state["n"]

    return f, [call(x())] * 6, lambda: state


@case
def counters_beside_whole_tensors():
    state = {"n": 0}

    def f(x: Any) -> Any:
        state["n"] += 1
        return x * state["n"], x // state["n"], x ** state["n"]

    return f, [call(rn.asarray(np.arange(3)))] * 5, lambda: state


@case
def the_last_but_one():
    history: list[Any] = [1.0, 2.0]

    def f(x: Any) -> Any:
        history.append(history[-1] * 0.5)
        return x * history[-2]

    return f, [call(x())] * 6, lambda: history


class Recorder:
    def __init__(self) -> None:
        self.history: list[Any] = []
        self.best: Any = None
        self.count = 0


@case(traces=5)
def appended_and_measured():
    r = Recorder()

    def f(x: Any) -> Any:
        r.history.append(x.sum())
        return x * len(r.history)

    return f, [call(x())] * 12, lambda: r


@case(traces=6)
def numbers_appended_and_measured():
    r = Recorder()

    def f(x: Any, v: float) -> Any:
        r.history.append(v)
        r.count = len(r.history)
        return x * v

    return f, [call(x(), 0.1 * i) for i in range(10)], lambda: r


@case
def average_of_the_last():
    r = Recorder()

    def f(x: Any) -> Any:
        r.history.append(x.sum())
        if len(r.history) > 3:
            r.history.pop(0)
        return sum(r.history) / len(r.history)

    return f, [call(x() + i) for i in range(7)], lambda: r


@case
def deque_with_a_limit():
    saved: Any = collections.deque(maxlen=3)

    def f(x: Any) -> Any:
        saved.append(x.sum())
        return sum(saved) / len(saved)

    return f, [call(x() + i) for i in range(6)], lambda: list(saved)


@case(traces=6)
def logged_each_hundredth():
    r, log = Recorder(), logging.getLogger("the tests of programs")

    def f(x: Any) -> Any:
        r.history.append(1)
        if len(r.history) % 4 == 0:
            log.warning("step %d", len(r.history))
        return x * 2

    return f, [call(x())] * 10, lambda: r


@case
def default_dict():
    d: Any = collections.defaultdict(lambda: 2.0)

    def f(x: Any, key: str) -> Any:
        return x * d[key]

    return f, [call(x(), "a"), call(x(), "b"), lambda: d.update(a=5.0), call(x(), "a"), call(x(), "c")], lambda: dict(d)


@case
def counter():
    c: Any = collections.Counter()

    def f(x: Any, key: str) -> Any:
        c[key] += 1
        return x * c[key] + c["other"]

    return f, [call(x(), "a"), call(x(), "b"), call(x(), "a"), call(x(), "a")], lambda: dict(c)


@case
def ordered_dict():
    d = collections.OrderedDict(a=2.0, b=3.0)

    def f(x: Any) -> Any:
        return x * next(iter(d.values())) + len(d)

    return f, [*warm(x()), lambda: d.move_to_end("a"), *warm(x()), lambda: d.popitem(), *warm(x())]


@case
def chain_map():
    low, high = {"a": 2.0, "b": 3.0}, {}
    m = collections.ChainMap(high, low)

    def f(x: Any) -> Any:
        return x * m["a"] + m.get("c", 0.0)

    return f, [*warm(x()), lambda: high.update(a=7.0), *warm(x()), lambda: low.update(c=1.0), *warm(x())]


@case
def frozen_data_class():
    @dataclasses.dataclass(frozen=True, slots=True)
    class Config:
        gain: float
        axes: tuple[int, ...] = (0,)

    reference = {"config": Config(2.0)}

    def f(x: Any) -> Any:
        c = reference["config"]
        return (x * c.gain).sum(axis=c.axes)

    return f, [
        *warm(x()),
        lambda: reference.update(config=dataclasses.replace(reference["config"], gain=3.0)),
        *warm(x()),
        lambda: reference.update(config=Config(3.0, ())),
        *warm(x()),
    ]


@case
def flags():
    class Mode(enum.Flag):
        SCALE = enum.auto()
        SHIFT = enum.auto()

    reference = {"mode": Mode.SCALE}

    def f(x: Any) -> Any:
        if reference["mode"] & Mode.SCALE:
            x = x * 2
        return x + 1 if Mode.SHIFT in reference["mode"] else x

    return f, [
        *warm(x()),
        lambda: reference.update(mode=Mode.SCALE | Mode.SHIFT),
        *warm(x()),
        lambda: reference.update(mode=Mode(0)),
        *warm(x()),
    ]


@case
def typed_dict_and_named_tuple():
    class Row(typing.NamedTuple):
        gain: float
        shift: Any

    def f(row: Row, options: dict[str, Any]) -> Row:
        return row._replace(shift=row.shift * row.gain * options.get("factor", 1.0))

    return f, [*warm(Row(2.0, x()), {}), *warm(Row(3.0, x()), {"factor": 2.0}), *warm(Row(3.0, x()), {"other": 1})]


@case
def shapes_in_texts():
    messages: list[str] = []

    def f(x: Any) -> Any:
        messages.append(f"{x.shape!r:>12} {x.dtype.name} {json.dumps({'n': x.shape})}")
        return x * 2

    return f, [call(x()), call(rows()), call(x()), call(rows())], lambda: messages


@case
def options_from_a_text():
    reference = {"text": "gain=2,shift=1"}

    def f(x: Any) -> Any:
        actual = dict(re.findall(r"(\w+)=(\d+)", reference["text"]))
        return x * int(actual["gain"]) + json.loads(actual.get("shift", "0"))

    return f, [*warm(x()), lambda: reference.update(text="gain=5"), *warm(x())]


@case
def environment():
    def f(x: Any) -> Any:
        return x * (2 if os.environ.get("A_NAME_OF_THE_TESTS") == "1" else 3)

    return f, [
        *warm(x()),
        lambda: os.environ.__setitem__("A_NAME_OF_THE_TESTS", "1"),
        *warm(x()),
        lambda: os.environ.pop("A_NAME_OF_THE_TESTS"),
        *warm(x()),
    ]


@case
def warnings_each_call():
    def f(x: Any) -> Any:
        if x.shape[0] > 2:
            warnings.warn(f"long: {x.shape[0]}", stacklevel=2)
        return x

    return f, [call(x()), call(x()), call(tensor(1.0)), call(x())]


@pytest.mark.parametrize("one", CASES)
def test_as_python(one: Case) -> None:
    one.run()
