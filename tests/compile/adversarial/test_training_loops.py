"""Training loops, and memory of NumPy that changes under them."""

from __future__ import annotations

import copy
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
def test_as_python(one: Case) -> None:
    one.run()
