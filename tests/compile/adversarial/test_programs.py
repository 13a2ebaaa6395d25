"""Pieces of ordinary programs: training loops, iterators, containers of the library, texts, effects on tensors."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import copy
import dataclasses
import enum
import functools
import json
import logging
import os
import random
import re
import time
import typing
import warnings
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case


def rows() -> rn.Tensor:
    return rn.asarray(np.arange(12, dtype=np.float32).reshape(3, 4) / 7)


def x() -> rn.Tensor:
    return tensor(1.0, -2.0, 3.0)


def warm(*args: Any, **kwargs: Any) -> list[Any]:
    return [call(*args, **kwargs)] * 3


# Effects on tensors from outside --------------------------------------------------------------------------------------


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


# Lists that grow ------------------------------------------------------------------------------------------------------


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


# Containers of the library --------------------------------------------------------------------------------------------


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


# Generators, closures, evaluation -------------------------------------------------------------------------------------


@case
def generator_inside():
    gains = [1.0, 2.0, 3.0]

    def scaled(x: Any) -> Any:
        for g in gains:
            received = yield x * g
            if received:
                return

    return (lambda x: sum(scaled(x))), [*warm(x()), lambda: gains.append(4.0), *warm(x())]


@case(eager="next()")
def iterator_held_on_self():
    class Loader:
        def __init__(self) -> None:
            self.batches = iter([rows() * i for i in range(20)])

    o = Loader()
    return (lambda x: x + next(o.batches)), [call(rows())] * 6


@case
def iterator_of_a_class():
    class Loader:
        def __init__(self) -> None:
            self.at = 0

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            self.at += 1
            if self.at > 20:
                raise StopIteration
            return self.at * 0.5

    o = Loader()
    return (lambda x: x * next(o)), [call(x())] * 8, lambda: o.at


@case
def nonlocal_rebound():
    def make() -> Any:
        gain, calls = 2.0, 0

        def f(x: Any) -> Any:
            nonlocal calls
            calls += 1
            return x * gain

        def change(value: float) -> None:
            nonlocal gain
            gain = value

        return f, change, lambda: calls

    f, change, calls = make()
    return f, [*warm(x()), lambda: change(5.0), *warm(x())], calls


@case(eager="eval() looks at the frame")
def evaluated():
    space = {"gain": 2.0}
    return (lambda x: x * eval("gain * 2", space)), [*warm(x()), lambda: space.update(gain=4.0), *warm(x())]


@case(eager="keeps results for objects")
def cached_function_and_property():
    class Own:
        def __init__(self) -> None:
            self.base = 2.0

        @functools.cached_property
        def gain(self) -> float:
            return self.base * 2

        @functools.lru_cache(maxsize=8)
        def power(self, n: int) -> float:
            return self.base**n

    o = Own()
    return (lambda x: x * o.gain + o.power(3)), [
        *warm(x()),
        lambda: setattr(o, "base", 3.0),
        *warm(x()),
        lambda: delattr(o, "gain"),
        *warm(x()),
        lambda: Own.power.cache_clear(),
        *warm(x()),
    ]


@case
def context_variable():
    variable: contextvars.ContextVar[float] = contextvars.ContextVar("gain", default=2.0)
    return (lambda x: x * variable.get()), [*warm(x()), lambda: variable.set(5.0), *warm(x())]


@case
def exit_stack():
    entered: list[str] = []

    @contextlib.contextmanager
    def entering(name: str) -> Any:
        entered.append(name)
        try:
            yield len(entered)
        finally:
            entered.append(f"-{name}")

    def f(x: Any) -> Any:
        with entering("a"), entering("b"):
            return x * 2

    return f, warm(x()) * 2, lambda: list(entered)


@case
def partial_and_compose():
    def scaled(x: Any, gain: float = 1.0, shift: float = 0.0) -> Any:
        return x * gain + shift

    reference = [functools.partial(scaled, gain=2.0), functools.partial(scaled, shift=1.0)]

    def f(x: Any) -> Any:
        return functools.reduce(lambda v, g: g(v), reference, x)

    return f, [
        *warm(x()),
        lambda: reference.reverse(),
        *warm(x()),
        lambda: reference[0].keywords.update(shift=9.0),
        *warm(x()),
    ]


# Texts ----------------------------------------------------------------------------------------------------------------


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


# What no program can know ---------------------------------------------------------------------------------------------


@case(eager="random")
def stochastic_depth():
    return (lambda x: x * 2 if random.random() < 0.5 else x), [call(x())] * 8


@case(eager="NumPy's random numbers are drawn by a Generator")
def numpy_noise():
    generator = np.random.default_rng(0)
    return (lambda x: x + float(generator.standard_normal())), [call(x())] * 4


@case(eager="clock")
def timed():
    recorded: list[bool] = []

    def f(x: Any) -> Any:
        start = time.perf_counter()
        y = x * 2
        recorded.append(time.perf_counter() >= start)
        return y

    return f, [call(x())] * 4, lambda: recorded


# Training loops -------------------------------------------------------------------------------------------------------


class Trainer:
    def __init__(self, **options: Any) -> None:
        rn.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1, **options)
        self.best, self.patience, self.stopped, self.step_count = float("inf"), 0, False, 0
        self.shadow: dict[str, Any] = {}
        self.accumulated = 0

    def loss(self, x: Any) -> Any:
        return (self.model(x) ** 2).mean()

    def update(self, x: Any) -> Any:
        with rn.enable_grad():
            self.optimizer.zero_grad()
            loss = self.loss(x)
            loss.backward()
        self.optimizer.step()
        return loss.detach()


@case
def accumulated_within():
    t = Trainer()

    def f(x: Any) -> Any:
        with rn.enable_grad():
            loss = t.loss(x) / 2
            loss.backward()
        t.accumulated += 1
        if t.accumulated % 2 == 0:
            t.optimizer.step()
            t.optimizer.zero_grad()
        return loss.detach()

    return f, [call(rows() + i) for i in range(8)], lambda: t


@case
def warm_up_by_hand():
    t = Trainer()

    def f(x: Any) -> Any:
        t.step_count += 1
        rate = 0.1 * min(1.0, t.step_count / 4)
        with rn.enable_grad():
            loss = t.loss(x)
            loss.backward()
        for p in t.model.parameters():
            p.assign(p.value - rate * p.grad)
            p.grad = None
        return loss.detach()

    return f, [call(rows())] * 8, lambda: t


@case
def average_of_weights_within():
    t = Trainer()
    t.shadow = {name: rn.Variable(p.numpy()) for name, p in t.model.named_parameters()}

    def f(x: Any) -> Any:
        loss = t.update(x)
        for name, p in t.model.named_parameters():
            t.shadow[name].assign(t.shadow[name].value * 0.9 + p.value * 0.1)
        return loss

    return f, [call(rows() + i) for i in range(5)], lambda: t


@case
def frozen_and_unfrozen():
    t = Trainer()

    def freeze(flag: bool) -> None:
        for p in t.model[0].parameters():
            p.requires_grad = not flag

    return (
        t.update,
        [
            *warm(rows()),
            lambda: freeze(True),
            *warm(rows()),
            lambda: freeze(False),
            *warm(rows()),
        ],
        lambda: t,
    )


@case
def layers_reordered_and_replaced():
    rn.manual_seed(0)
    layers = [nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)]

    def f(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    return f, [
        *warm(rows()),
        layers.reverse,
        *warm(rows()),
        lambda: layers.__setitem__(1, nn.ReLU()),
        *warm(rows()),
        lambda: layers.insert(0, layers[0]),
        *warm(rows()),
    ]


@case
def parameter_replaced():
    rn.manual_seed(0)
    m = nn.Linear(4, 4)
    return (lambda x: m(x)), [
        *warm(rows()),
        lambda: setattr(m, "weight", nn.Parameter(np.ones((4, 4), np.float32))),
        *warm(rows()),
        lambda: setattr(m, "bias", None),
        *warm(rows()),
    ]


@case
def copied_model():
    rn.manual_seed(0)
    reference = {"model": nn.Sequential(nn.Linear(4, 4), nn.ReLU())}

    def deeper() -> None:
        reference["model"] = copy.deepcopy(reference["model"])
        reference["model"][0].weight.assign(reference["model"][0].weight.value * 2)

    return (lambda x: reference["model"](x)), [*warm(rows()), deeper, *warm(rows()), deeper, *warm(rows())]


@case
def compiled_functions_that_share_state():
    state = {"count": 0, "total": rn.Variable(np.zeros(3, np.float32))}

    @rn.compile
    def inner(x: Any) -> Any:
        state["count"] += 1
        state["total"].assign(state["total"].value + x)
        return state["total"].value * state["count"]

    def f(x: Any) -> Any:
        state["count"] += 10
        return inner(x) + inner(x * 2)

    return (
        f,
        [call(x()), lambda: inner(x()), call(x()), lambda: state.update(count=0), call(x()), call(x())],
        (lambda: state),
    )


@case
def early_stopping_by_a_number():
    t = Trainer()

    def f(x: Any, value: float) -> Any:
        if t.stopped:
            return x
        if value < t.best:
            t.best, t.patience = value, 0
        else:
            t.patience += 1
            t.stopped = t.patience >= 2
        return x * 2

    return f, [call(x(), v) for v in (3.0, 2.0, 2.5, 1.5, 1.6, 1.7, 1.8, 0.1)], lambda: (t.best, t.patience, t.stopped)


# NumPy's memory -------------------------------------------------------------------------------------------------------


@case
def views_of_one_array():
    base = np.arange(6, dtype=np.float32)
    reference = {"part": base[::2]}
    return (lambda x: x * rn.asarray(reference["part"])), [
        *warm(x()),
        lambda: base.__setitem__(2, 9.0),
        *warm(x()),
        lambda: reference.update(part=base[:3]),
        *warm(x()),
    ]


@case
def structured_array():
    table = np.array([(1.0, 2), (3.0, 4), (5.0, 6)], dtype=[("gain", np.float32), ("n", np.int64)])
    return (lambda x: x * rn.asarray(table["gain"]) + int(table["n"].sum())), [
        *warm(x()),
        lambda: table["gain"].__setitem__(0, 7.0),
        *warm(x()),
        lambda: table["n"].__setitem__(0, 100),
        *warm(x()),
    ]


@case
def object_like_a_frame():
    """What a data frame looks like to a function: columns by item and attribute."""

    class Frame:
        def __init__(self, **columns: Any) -> None:
            self._columns = {k: np.asarray(v, np.float32) for k, v in columns.items()}

        def __getitem__(self, key: str) -> Any:
            return self._columns[key]

        def __getattr__(self, name: str) -> Any:
            try:
                return self.__dict__["_columns"][name]
            except KeyError:
                raise AttributeError(name) from None

        def __len__(self) -> int:
            return len(next(iter(self._columns.values())))

    frame = Frame(a=[1, 2, 3], b=[4, 5, 6])
    return (lambda x: x * rn.asarray(frame["a"]) + frame.b.mean() * len(frame)), [
        *warm(x()),
        lambda: frame["a"].__setitem__(0, 10.0),
        *warm(x()),
        lambda: frame._columns.update(b=np.zeros(3, np.float32)),
        *warm(x()),
    ]


@pytest.mark.parametrize("one", CASES)
def test_programs(one: Case) -> None:
    one.run()
