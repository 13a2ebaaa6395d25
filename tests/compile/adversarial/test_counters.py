"""Numbers that a function counts up outside, wherever they are kept: after the first change they are symbols."""

from __future__ import annotations

import collections
import dataclasses
import functools
import types
from collections.abc import Callable
from typing import Any

import pytest

import runnel as rn
from runnel import nn

Function = Callable[[Any], Any]
CALLS = 7


class Slotted:
    __slots__ = ("n",)


@dataclasses.dataclass
class Data:
    n: int = 0


class Guarded:
    def __init__(self) -> None:
        self._n = 0

    @property
    def n(self) -> int:
        return self._n

    @n.setter
    def n(self, value: int) -> None:
        self._n = value


class Layer(nn.Module):
    pass


class ListOfMine(list[int]):
    pass


def _with_n(result: Any) -> Any:
    result.n = 0
    return result


def _helper() -> None:
    pass


HOLDERS: dict[str, Callable[[], Any]] = {
    "namespace": types.SimpleNamespace,
    "slots": Slotted,
    "dataclass": Data,
    "property": Guarded,
    "class": lambda: type("Kind", (), {}),
    "module": lambda: types.ModuleType("settings"),
    "function": lambda: types.FunctionType(_helper.__code__, {}),
    "partial": lambda: functools.partial(_helper),
    "exception": ValueError,
    "layer": Layer,
    "list of mine": ListOfMine,
}


def by_attribute(holder: Any) -> Function:
    def step(x: Any) -> Any:
        holder.n += 1
        return x * holder.n

    return step


def by_setattr(holder: Any) -> Function:
    def step(x: Any) -> Any:
        setattr(holder, "n", holder.n + 1)
        return x * holder.n

    return step


CONTAINERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "list": (lambda: [5, 0, 7], 1),
    "end of a list": (lambda: [5, 0], -1),
    "list of mine": (lambda: ListOfMine([0, 3]), 0),
    "deque": (lambda: collections.deque([0, 4]), 0),
    "dict": (lambda: {"n": 0}, "n"),
    "ordered": (lambda: collections.OrderedDict(n=0), "n"),
    "default": (lambda: collections.defaultdict(int), "n"),
    "counter": (collections.Counter, "n"),
    "user dict": (lambda: collections.UserDict(n=0), "n"),
}


def by_item(container: Any, key: Any) -> Function:
    def step(x: Any) -> Any:
        container[key] += 1
        return x * container[key]

    return step


def check(step: Function) -> None:
    compiled = rn.compile(step)
    actual = [float(compiled(rn.ones(()))) for _ in range(CALLS)]
    assert actual == [float(i + 1) for i in range(CALLS)]
    assert len(compiled.retraces) <= 2, compiled.retraces


@pytest.mark.parametrize("how", [by_attribute, by_setattr])
@pytest.mark.parametrize("name", HOLDERS)
def test_attributes(name: str, how: Callable[[Any], Function]) -> None:
    check(how(_with_n(HOLDERS[name]())))


@pytest.mark.parametrize("name", CONTAINERS)
def test_items(name: str) -> None:
    make, key = CONTAINERS[name]
    check(by_item(make(), key))


def test_items_of_a_list_beside_other_changes() -> None:
    def story(compile: Callable[[Function], Function]) -> list[Any]:
        saved: list[Any] = [0, 10, 20]
        messages = []

        def step(x: Any) -> Any:
            saved[0] += 1
            saved[-1] += saved[0]
            first = saved[1]
            saved.append(saved[0])
            saved[1] = first + len(saved)
            del saved[-2]
            return x * saved[0] + saved[1] + sum(saved)

        run = compile(step)
        for i in range(CALLS):
            if i == 4:
                saved[1] = 100
            messages.append((float(run(rn.ones(()))), list(saved)))
        return messages

    assert story(rn.compile) == story(lambda function: function)
