"""More of what programs do: gradients beside effects, classes that look up by themselves, text, time and tasks."""

from __future__ import annotations

import asyncio
import collections
import datetime
import decimal
import fractions
import itertools
import operator
import pathlib
import string
import threading
from types import MappingProxyType, SimpleNamespace
from typing import Any, Generic, TypeVar

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case
T = TypeVar("T")


def rows() -> rn.Tensor:
    return rn.asarray(np.arange(12, dtype=np.float32).reshape(3, 4) / 7)


def x() -> rn.Tensor:
    return tensor(1.0, -2.0, 3.0)


def warm(*args: Any, **kwargs: Any) -> list[Any]:
    return [call(*args, **kwargs)] * 3


class Layered(nn.Module):
    def __init__(self) -> None:
        rn.manual_seed(0)
        self.inner = nn.Linear(4, 4)
        self.calls, self.last, self.log = 0, None, []

    def forward(self, x: Any) -> Any:
        self.calls += 1
        y = self.inner(x)
        self.last = y.detach()
        self.log.append(float(self.calls))
        return y * self.calls


@case(traces=5)
def gradients_beside_effects():
    m = Layered()
    return (lambda x: m(x)), [call(rows())] * 6, lambda: (m.calls, m.last, m.log)


@case
def a_result_with_a_tape_is_kept():
    m = Layered()
    retained: dict[str, Any] = {}

    def f(x: Any) -> Any:
        retained["loss"] = (m(x) ** 2).mean()
        return retained["loss"].detach()

    return f, [call(rows())] * 3, lambda: {k: v.detach() for k, v in retained.items()}


@case
def in_place_beside_gradients():
    m, total = Layered(), rn.zeros(4)

    def f(x: Any) -> Any:
        y = m.inner(x)
        total.add_(y.detach().sum(axis=0))
        return y * 2

    return f, [call(rows())] * 4, lambda: total


@case
def taped_values_given_to_a_tensor_outside():
    m, saved = Layered(), rn.zeros(3, 4)

    def f(x: Any) -> Any:
        with rn.no_grad():
            saved.copy_(m.inner(x))
        return saved * 2

    return f, [call(rows()), call(rows() * 2), call(rows())], lambda: saved


@case(eager="asynchronous")
def a_task():
    async def scaled(x: Any) -> Any:
        return x * 2

    return (lambda x: asyncio.run(scaled(x))), warm(x())


@case(eager="")
def a_thread_inside():
    def f(x: Any) -> Any:
        results: list[Any] = []
        worker = threading.Thread(target=lambda: results.append(2.0))
        worker.start()
        worker.join()
        return x * results[0]

    return f, warm(x())


@case
def set_past_the_class_between():
    """Only what is not watched by the clock: an object of the user's."""

    class Own:
        gain = 2.0

        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(name)

    o = Own()
    return (lambda x: x * o.gain), [*warm(x()), lambda: object.__setattr__(o, "gain", 5.0), *warm(x())]


@case
def a_generic_class():
    class Box(Generic[T]):
        def __init__(self, value: T) -> None:
            self.value = value

    boxes = [Box[float](2.0), Box[float](3.0)]
    return (lambda x: x * sum(b.value for b in boxes)), [*warm(x()), lambda: boxes.append(Box(4.0)), *warm(x())]


@case
def a_namespace():
    o = SimpleNamespace(gain=2.0, inner=SimpleNamespace(shift=1.0))
    return (lambda x: x * o.gain + o.inner.shift), [
        *warm(x()),
        lambda: setattr(o.inner, "shift", 3.0),
        *warm(x()),
        lambda: vars(o).update(gain=7.0),
        *warm(x()),
        lambda: setattr(o, "inner", SimpleNamespace(shift=0.0)),
        *warm(x()),
    ]


@case
def a_proxy_of_a_mapping():
    table = {"gain": 2.0}
    proxy = MappingProxyType(table)
    return (lambda x: x * proxy["gain"]), [*warm(x()), lambda: table.update(gain=5.0), *warm(x())]


@case(eager="is a Decimal")
def dates_and_exact_numbers():
    state = {"day": datetime.date(2020, 1, 31), "part": fractions.Fraction(1, 3), "money": decimal.Decimal("1.5")}

    def f(x: Any) -> Any:
        return x * float(state["part"]) + state["day"].month + float(state["money"])

    return f, [
        *warm(x()),
        lambda: state.update(day=datetime.date(2020, 5, 1)),
        *warm(x()),
        lambda: state.update(part=fractions.Fraction(2, 3), money=decimal.Decimal("2.5")),
        *warm(x()),
    ]


@case
def names_of_paths():
    state = {"path": pathlib.PurePosixPath("runs/three.txt")}
    return (lambda x: x * len(state["path"].suffix)), [
        *warm(x()),
        lambda: state.update(path=pathlib.PurePosixPath("runs/three")),
        *warm(x()),
    ]


@case
def a_template():
    state = {"text": string.Template("$name-1")}
    return (lambda x: x * len(state["text"].substitute(name="abc"))), [
        *warm(x()),
        lambda: state.update(text=string.Template("$name")),
        *warm(x()),
    ]


@case
def operators_by_name():
    state = SimpleNamespace(a=SimpleNamespace(b=2.0), names=["a.b"])
    return (lambda x: x * operator.attrgetter(*state.names)(state)), [
        *warm(x()),
        lambda: setattr(state.a, "b", 3.0),
        *warm(x()),
    ]


@case
def windows_of_a_list():
    values = [1.0, 2.0, 3.0, 4.0]
    return (lambda x: x * sum(a * b for a, b in itertools.pairwise(values))), [
        *warm(x()),
        lambda: values.append(5.0),
        *warm(x()),
        lambda: values.sort(reverse=True),
        *warm(x()),
    ]


@case
def matched_patterns():
    state: dict[str, Any] = {"event": {"kind": "scale", "by": 2.0}}

    def f(x: Any) -> Any:
        match state["event"]:
            case {"kind": "scale", "by": by}:
                return x * by
            case [first, *rest]:
                return x + first + len(rest)
            case _:
                return x

    return f, [
        *warm(x()),
        lambda: state.update(event=[1.0, 2, 3]),
        *warm(x()),
        lambda: state.update(event=None),
        *warm(x()),
        lambda: state.update(event={"kind": "scale", "by": 9.0, "more": 1}),
        *warm(x()),
    ]


@case
def an_error_that_is_handled():
    table = {"a": 2.0}

    def f(x: Any, key: str) -> Any:
        try:
            return x * table[key]
        except KeyError as error:
            return x - len(str(error))
        finally:
            table["seen"] = table.get("seen", 0.0) + 1.0

    return (
        f,
        [call(x(), "a"), call(x(), "b"), lambda: table.update(b=5.0), call(x(), "b"), call(x(), "a")],
        (lambda: dict(table)),
    )


@case
def users_dict_and_list():
    class Options(collections.UserDict):
        def __getitem__(self, key: str) -> Any:
            return super().__getitem__(key.lower())

    options, values = Options(gain=2.0), collections.UserList([1.0, 2.0])
    return (lambda x: x * options["GAIN"] + values[-1]), [
        *warm(x()),
        lambda: options.update(gain=3.0),
        *warm(x()),
        lambda: values.append(7.0),
        *warm(x()),
    ]


@case
def a_number_of_a_class():
    class Rate(float):
        unit = 2.0

        def __mul__(self, other: Any) -> Any:
            return float(self) * self.unit * other

    reference = {"rate": Rate(0.5)}
    return (lambda x: reference["rate"] * x), [
        *warm(x()),
        lambda: setattr(Rate, "unit", 3.0),
        *warm(x()),
        lambda: reference.update(rate=0.25),
        *warm(x()),
    ]


@case
def names_deleted_inside():
    state = {"gain": 2.0, "spare": 1.0}

    def f(x: Any) -> Any:
        y = x * state.get("spare", 3.0)
        state.pop("spare", None)
        del x
        return y

    return f, [call(x()), call(x()), lambda: state.update(spare=9.0), call(x()), call(x())], lambda: state


@case
def a_list_of_layers_that_shrinks():
    rn.manual_seed(0)
    layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def f(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x * len(layers)

    return f, [
        *warm(rows()),
        lambda: layers.__delitem__(1),
        *warm(rows()),
        lambda: layers.append(nn.ReLU()),
        *warm(rows()),
    ]


@case
def weights_swapped_for_a_call():
    rn.manual_seed(0)
    m = nn.Linear(4, 4)
    other = rn.asarray(np.ones((4, 4), np.float32))

    def swapped() -> None:
        m.weight.assign(other)

    return (lambda x: m(x)), [*warm(rows()), swapped, *warm(rows()), lambda: m.to if False else None, *warm(rows())]


@pytest.mark.parametrize("one", CASES)
def test_strangers(one: Case) -> None:
    one.run()
