"""Classes that do something of their own when attributes are set or deleted, and C functions as special methods."""

from __future__ import annotations

import collections
from typing import Any

import pytest

import runnel as rn
from runnel import nn, optim
from runnel.core.errors import AxisError
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case
FOUR = 4


def story_of(m: Any, state: Any) -> Any:
    return (lambda x: m(x)), [call(tensor(1.0))] * FOUR, state


@case
def setattr_that_converts():
    class Net(nn.Module):
        def __init__(self) -> None:
            self.n = 1.0

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value * 2 if name == "n" else value)

        def forward(self, x: Any) -> Any:
            self.n = self.n + 1
            return x * self.n

    m = Net()
    return story_of(m, lambda: m.n)


@case
def setattr_and_delattr_of_a_mixin_that_note():
    class Noting:
        def __setattr__(self, name: str, value: Any) -> None:
            self.__dict__.setdefault("noted", []).append(name)
            super().__setattr__(name, value)

        def __delattr__(self, name: str) -> None:
            self.noted.append("-" + name)
            super().__delattr__(name)

    class Net(Noting, nn.Module):
        def __init__(self) -> None:
            self.n = 1.0

        def forward(self, x: Any) -> Any:
            self.n = self.n + 1
            self.extra = self.n
            del self.extra
            return x * self.n

    m = Net()
    return story_of(m, lambda: (m.n, m.noted))


@case
def setattr_of_an_optimizer_that_notes():
    class Noting(optim.SGD):
        def __setattr__(self, name: str, value: Any) -> None:
            self.__dict__.setdefault("noted", []).append(name)
            super().__setattr__(name, value)

    optimizer = Noting([nn.Parameter([1.0])], lr=0.1)

    def f(x: Any) -> Any:
        optimizer.count = getattr(optimizer, "count", 0) + 1
        return x * optimizer.count

    return f, [call(tensor(1.0))] * FOUR, lambda: optimizer.noted


@case
def property_that_writes_into_a_dict():
    class Net(nn.Module):
        def __init__(self) -> None:
            self.settings = {"a": 1.0}

        @property
        def a(self) -> float:
            return self.settings["a"]

        @a.setter
        def a(self, value: float) -> None:
            self.settings["a"] = value

        def forward(self, x: Any) -> Any:
            self.a = self.a + 1
            return x * self.a

    m = Net()
    return story_of(m, lambda: m.settings)


@case
def property_that_writes_into_lists():
    class Net(nn.Module):
        def __init__(self) -> None:
            self.held, self.log = [1.0], []

        @property
        def a(self) -> float:
            return self.held[-1]

        @a.setter
        def a(self, value: float) -> None:
            self.held[-1] = value
            self.log.append(value)

        def forward(self, x: Any) -> Any:
            self.a = self.a + 1
            return x * self.a

    m = Net()
    return story_of(m, lambda: (m.held, m.log))


@case
def deleter_of_a_property():
    class Net(nn.Module):
        def __init__(self) -> None:
            self.settings: dict[str, Any] = {"c": None}
            self.seen: list[int] = []

        @property
        def c(self) -> float:
            if self.settings["c"] is None:
                self.settings["c"] = len(self.seen) + 1.0
            return self.settings["c"]

        @c.deleter
        def c(self) -> None:
            self.settings["c"] = None
            self.seen.append(1)

        def forward(self, x: Any) -> Any:
            y = x * self.c
            del self.c
            return y

    m = Net()
    return story_of(m, lambda: (m.settings, m.seen))


@case
def setter_that_does_nothing():
    class Net(nn.Module):
        def __init__(self) -> None:
            self.count = 0

        quiet = property(lambda self: 1.0, lambda self, value: None)

        def forward(self, x: Any) -> Any:
            self.count += 1
            self.passing = self.count
            del self.passing
            self.quiet = self.count
            return x * (self.count + self.quiet)

    m = Net()
    return story_of(m, lambda: vars(m).copy())


@case
def data_descriptor_that_writes_the_dict():
    class Plus:
        def __set_name__(self, owner: Any, name: str) -> None:
            self.name = "_" + name

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            return instance.__dict__[self.name]

        def __set__(self, instance: Any, value: Any) -> None:
            instance.__dict__[self.name] = value + 1

    class Net(nn.Module):
        a = Plus()

        def __init__(self) -> None:
            self.a = 1.0

        def forward(self, x: Any) -> Any:
            self.a = self.a + 1
            return x * self.a

    m = Net()
    return story_of(m, lambda: m.a)


class Attributes(dict[str, Any]):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__  # type: ignore[assignment]
    __delattr__ = dict.__delitem__  # type: ignore[assignment]


@case
def dict_whose_items_are_its_attributes():
    a = Attributes(k=1.0)

    def f(x: Any) -> Any:
        a.k = a.k + 1
        a.z = x * a["k"]
        a.passing = 1
        del a.passing
        return x * a.k + a["k"]

    return f, [call(tensor(1.0))] * FOUR, lambda: (sorted(a), a["k"], vars(a))


@case
def c_functions_as_operators():
    class Row(list[float]):
        __lshift__ = list.append
        __neg__ = list.pop
        __contains__ = list.count

    class Names(set[int]):
        __lshift__ = set.add

    class Queue(collections.deque[float]):
        __matmul__ = collections.deque.append

    row, names, queue = Row([1.0]), Names(), Queue([2.0])

    def f(x: Any) -> Any:
        row << 3.0
        row << 4.0
        names << len(names)
        queue @ (queue[-1] + 1)
        return x * (len(row) + len(names) + queue[-1] + -row + (3.0 in row))

    return f, [call(tensor(1.0))] * FOUR, lambda: (list(row), sorted(names), list(queue))


@pytest.mark.parametrize("one", CASES)
def test_attribute_code(one: Case) -> None:
    one.run()


def test_indices_out_of_range_are_told_wherever_they_come_from() -> None:
    """Constants made in the function, and arguments; where one element is picked, and where several are."""
    x = rn.asarray([[0.0, 1.0, 2.0, 3.0]] * 3)
    at = rn.asarray([[0], [7], [1]])
    programs = [
        lambda x, at: nn.functional.cross_entropy(x, rn.asarray([0, 9, -7])),
        lambda x, at: nn.functional.nll_loss(x, rn.full((3,), 9, dtype=rn.int64)),
        lambda x, at: nn.functional.cross_entropy(x, at.reshape(-1)),
        lambda x, at: rn.take_along_axis(x, at, axis=1),
        lambda x, at: rn.take_along_axis(x, rn.asarray([[0], [-9], [1]]), axis=1),
        lambda x, at: rn.take_along_axis(x, rn.concat([at, at], axis=1), axis=1),
        lambda x, at: rn.take(x, rn.asarray([5]), axis=0),
        lambda x, at: rn.grad(lambda x: rn.take_along_axis(x, at, axis=1).sum())(x),
    ]
    for program in programs:
        for run in (program, rn.compile(program)):
            with pytest.raises(AxisError):
                run(x, at)
    assert rn.compile(lambda x: nn.functional.cross_entropy(x, rn.asarray([0, 3, 1])))(x).item() > 0
