"""Numbers that a function counts up outside, wherever they are kept: after the first change they are symbols."""

from __future__ import annotations

import collections
import dataclasses
import functools
import types
from collections.abc import Callable
from typing import Any, NamedTuple

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


class ByName:
    """Attributes in a dict, found by ``__getattr__``."""

    def __init__(self) -> None:
        object.__setattr__(self, "parts", {})

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["parts"][name]

    def __setattr__(self, name: str, value: Any) -> None:
        self.parts[name] = value


class Keyed(dict[str, Any]):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class Place:
    def __get__(self, owner: Any, kind: Any) -> Any:
        return owner.__dict__.get("_n", 0)

    def __set__(self, owner: Any, value: Any) -> None:
        owner.__dict__["_n"] = value


class ByDescriptor:
    n = Place()


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
    "__getattr__": ByName,
    "dict with attributes": Keyed,
    "descriptor": ByDescriptor,
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


class Row(NamedTuple):
    w: Any
    n: int


@dataclasses.dataclass(frozen=True)
class State:
    w: Any
    n: int = 0


class Iterator:
    n = 0

    def __next__(self) -> int:
        self.n += 1
        return self.n


def _counted(x: Any, n: list[int] = [0]) -> Any:  # the usual mistake, or a cache
    n[0] += 1
    return x * n[0]


def _through_next() -> Function:
    iterator = Iterator()
    return lambda x: x * next(iterator)


def _through_update() -> Function:
    holder = types.SimpleNamespace(n=0)

    def step(x: Any) -> Any:
        vars(holder).update(n=holder.__dict__.get("n", 0) + 1)
        return x * holder.n

    return step


def _through_default() -> Function:
    counted = types.FunctionType(_counted.__code__, {}, "counted", ([0],))
    return lambda x: counted(x)


@pytest.mark.parametrize("make", [_through_next, _through_update, _through_default])
def test_other_ways(make: Callable[[], Function]) -> None:
    check(make())


STATES: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "_replace": (Row, lambda s, x: s._replace(w=s.w + x * s.n, n=s.n + 1)),
    "NamedTuple": (Row, lambda s, x: Row(s.w + x * s.n, s.n + 1)),
    "dataclasses.replace": (State, lambda s, x: dataclasses.replace(s, w=s.w + x * s.n, n=s.n + 1)),
    "dataclass": (State, lambda s, x: State(w=s.w + x * s.n, n=s.n + 1)),
    "dict": (lambda w, n: {"w": w, "n": n}, lambda s, x: {"w": s["w"] + x * s["n"], "n": s["n"] + 1}),
}


@pytest.mark.parametrize("name", STATES)
def test_states_that_are_handed_on(name: str) -> None:
    start, step = STATES[name]
    compiled, x = rn.compile(step), rn.ones(())
    state = expected = start(rn.zeros(()), 0)
    for _ in range(CALLS):
        state, expected = compiled(state, x), step(expected, x)
        assert repr(state) == repr(expected)
    assert len(compiled.retraces) <= 3, compiled.retraces


def test_milestones() -> None:
    state = types.SimpleNamespace(n=0, rate=1.0, milestones={3: 0.5, 6: 0.25})

    def step(x: Any) -> Any:
        state.n += 1
        if state.n in state.milestones:
            state.rate = state.milestones[state.n]
        return x * state.rate

    compiled = rn.compile(step)
    values = [float(compiled(rn.ones(()))) for _ in range(12)]
    assert values == [1.0] * 2 + [0.5] * 3 + [0.25] * 7
    assert len(compiled.retraces) <= 5, compiled.retraces
    state.milestones[13] = 8.0
    assert float(compiled(rn.ones(()))) == 8.0


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


@pytest.mark.parametrize("average", [rn.Variable, nn.Parameter])
def test_counters_beside_parameters(average: Any) -> None:
    """A running average of weights divides by how many there were."""

    def story(compile: Callable[[Any], Any]) -> tuple[list[Any], Any]:
        state = types.SimpleNamespace(n=0, weight=nn.Parameter([1.0, 2.0]), average=average([0.0, 0.0]))

        def step(x: Any) -> Any:
            state.n += 1
            state.weight.assign(state.weight * 1.5 - x)
            state.average.assign((state.average * (state.n - 1) + state.weight) / state.n)
            return state.n * state.weight - state.n / state.average

        run = compile(step)
        return [(run(rn.ones(2)).tolist(), state.average.tolist(), state.n) for _ in range(CALLS)], run

    (expected, _), (actual, compiled) = story(lambda function: function), story(rn.compile)
    assert actual == expected and compiled.statistics["traces"] <= 2


@pytest.mark.parametrize("every", [2, 4])
def test_counters_in_a_branch_that_few_calls_take(every: int) -> None:
    """The program of the other branch, which ran last, does not read them: an older one tells that they change."""
    counts = {"seen": 0, "updates": 0, "log": 0.5}

    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        counts["seen"] += 1
        y = x * 2
        if counts["seen"] % every == 0:
            counts["updates"] += 1
            counts["log"] += 0.25
            y = y + counts["updates"]
        return y

    results = [step(rn.ones(2))[0].item() for _ in range(8 * every)]
    assert counts == {"seen": 8 * every, "updates": 8, "log": 2.5}
    assert results == [2.0 + (i // every if i % every == 0 else 0) for i in range(1, 8 * every + 1)]
    assert step.statistics["traces"] <= 6, step.retraces
