"""Test tracing beside debuggers, profilers and coverage tools."""

from __future__ import annotations

import cProfile
import pstats
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import runnel as rn
from runnel.compile.observe import exposure
from runnel.core.errors import CaptureWarning

pytestmark = pytest.mark.fast


class Word:
    """Objects of it are compared by C code, below which the net is needed."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __lt__(self, other: Any) -> bool:
        return bool(self.n < other.n)


class Line(Word):
    """Its comparison calls C code that compares in turn."""

    def __lt__(self, other: Any) -> bool:
        return sorted([Word(self.n), Word(other.n)])[0].n == self.n and self.n != other.n


@pytest.fixture(autouse=True)
def functions_stay() -> Iterator[None]:
    """Whatever ran in place of special methods, they are as they were."""
    before = [kind.__lt__.__code__ for kind in (Word, Line)]
    yield
    assert all(kind.__lt__.__code__ is code for kind, code in zip((Word, Line), before, strict=True))


def world(kind: type[Word] = Word) -> tuple[Any, list[Word], rn.Tensor]:
    words = [kind(3), kind(2)]

    def step(x: Any) -> Any:
        return x * sorted(words)[0].n

    step.__code__ = step.__code__.replace()  # one that was not met before
    return rn.compile(step), words, rn.asarray([1.0])


def runs_as_programs(kind: type[Word] = Word) -> None:
    step, words, x = world(kind)
    assert step(x).item() == 2
    words[0].n = 1
    assert [step(x).item() for _ in range(4)] == [1] * 4
    assert step.statistics["traces"] == 2 and all(e.native is not None for e in step.executables())


class Heard:
    """A tool written in Python."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, frame: Any, event: str, what: Any) -> Any:
        if event == "call":
            self.calls.append(frame.f_code.co_qualname)
        return self

    def tell(self, frame: Any, event: str, what: Any) -> Any:
        return self(frame, event, what)


@contextmanager
def put(place: str, tool: Any) -> Iterator[None]:
    setter, getter = getattr(sys, f"set{place}"), getattr(sys, f"get{place}")
    before = getter()
    setter(tool)
    try:
        yield
        assert getter() == tool
    finally:
        setter(before)


@contextmanager
def profiled() -> Iterator[cProfile.Profile]:
    profile = cProfile.Profile()
    profile.enable()
    try:
        yield profile
    finally:
        profile.disable()


def called(profile: cProfile.Profile) -> set[str]:
    return {name for _, _, name in pstats.Stats(profile).stats}  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [Word, Line])
def test_beside_cprofile(kind: type[Word]) -> None:
    with profiled() as profile:
        runs_as_programs(kind)
        marked()  # after the trace it still hears
    assert {"runs_as_programs", "marked"} <= called(profile)


def test_beside_cprofile_of_a_call() -> None:
    profile = cProfile.Profile()
    profile.runcall(runs_as_programs)
    assert "runs_as_programs" in called(profile)


@pytest.mark.parametrize("kind", [Word, Line])
@pytest.mark.parametrize("places", [("profile",), ("trace",), ("profile", "trace")])
@pytest.mark.parametrize("form", ["function", "method", "object"])
def test_beside_tools_written_in_python(kind: type[Word], places: tuple[str, ...], form: str) -> None:
    heard = {place: Heard() for place in ("profile", "trace")}

    def forms(place: str) -> Any:
        one = heard[place]
        return {"function": lambda *args: one(*args), "method": one.tell, "object": one}[form]

    tools = {place: forms(place) for place in places}
    with put(places[0], tools[places[0]]), put(places[-1], tools[places[-1]]):
        runs_as_programs(kind)
    for place in places:
        assert f"{kind.__name__}.__lt__" in heard[place].calls


def test_beside_a_debugger_and_a_profiler_written_in_c() -> None:
    heard = Heard()
    with put("trace", heard), profiled() as profile:
        runs_as_programs()
    assert "Word.__lt__" in heard.calls and "runs_as_programs" in called(profile)


def test_in_threads_with_tools_of_their_own() -> None:
    """Several that trace at once, with special methods of one class."""
    heard, problems = Heard(), list[BaseException]()

    def work() -> None:
        try:
            for _ in range(3):
                runs_as_programs()
        except BaseException as problem:
            problems.append(problem)

    threading.setprofile(heard)
    threading.settrace(heard)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]
        threading.settrace(None)  # type: ignore[arg-type]
    assert not problems
    assert heard.calls.count("runs_as_programs") >= 4
    runs_as_programs()


def marked() -> None:
    """A tool calls compiled functions when it hears of this."""


def inside(place: str, act: Callable[[], None]) -> None:
    """Call ``act`` in the callback of a tool."""
    problems: list[BaseException] = []

    def tool(frame: Any, event: str, what: Any) -> None:
        if frame.f_code is marked.__code__ and event == "call":
            try:
                act()
            except BaseException as problem:
                problems.append(problem)

    with put(place, tool):
        marked()
    assert not problems


@pytest.mark.parametrize("place", ["profile", "trace"])
def test_called_by_a_tool(place: str) -> None:
    """Python tells of no calls then: the call runs eagerly. Calls outside are traced, whatever happened before."""
    step, words, x = world()

    def act() -> None:
        with pytest.warns(CaptureWarning, match="debugger or profiler"):
            assert step(x).item() == 2

    inside(place, act)
    assert step(x).item() == 2 and step.statistics["traces"] == 1

    def act_again() -> None:  # an audit is due, which waits
        assert step(x).item() == 2
        assert step(x).item() == 2

    inside(place, act_again)
    words[0].n = 1
    assert step(x).item() == 1 and step.statistics["traces"] == 2
    assert all(e.native is not None for e in step.executables())


@pytest.mark.parametrize("place", ["profile", "trace"])
def test_tools_that_compute_while_a_function_is_traced(place: str) -> None:
    """What they compute is no part of the program, in the functions for single frames neither."""
    x, recorded = rn.asarray([1.0, 2.0]), list[float]()

    def tool(frame: Any, event: str, what: Any) -> Any:
        if frame.f_code.co_name == "observed":
            recorded.append((x.sum() * 2).item())
        return tool

    def observed(y: Any) -> Any:
        z = y * 2
        return z + x

    observed.__code__ = observed.__code__.replace()
    step = rn.compile(observed)
    with put(place, tool):
        assert step(x).tolist() == [3, 6]
    assert set(recorded) == {6.0}
    assert step.statistics["traces"] == 1


def test_functions_are_as_they_were_when_the_net_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(exposure.Net):
        def begin(self) -> None:
            self._rec.refuse("there is no net", is_passing=True)

    step, _, x = world()
    with monkeypatch.context() as patch:
        patch.setattr(exposure, "Net", Refusing)
        with pytest.warns(CaptureWarning, match="there is no net"):
            assert step(x).item() == 2
    assert step(x).item() == 2 and step.statistics["traces"] == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there is sys.monitoring from 3.12 on")
def test_where_other_tools_have_all_places() -> None:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    tool_ids = [tool for tool in range(6) if monitoring.get_tool(tool) is None]
    for tool in tool_ids:
        monitoring.use_tool_id(tool, "another")
    step, _, x = world()
    try:
        with pytest.warns(CaptureWarning, match=r"all the places of sys\.monitoring"):
            assert step(x).item() == 2
    finally:
        for tool in tool_ids:
            monitoring.free_tool_id(tool)
    assert step(x).item() == 2 and step.statistics["traces"] == 1
