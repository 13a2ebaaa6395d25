"""Code that runs between two instructions (callbacks and finalizers of the garbage collector, handlers of
signals) is not part of the function that is captured at that moment: it is captured nevertheless."""

from __future__ import annotations

import contextlib
import functools
import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import runnel as rn


class Number:
    """Its methods are called by C code, so that a capture listens to all that runs meanwhile."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        parts = [[] for _ in range(20)]  # type: ignore[var-annotated]  # what is collected now and then
        return self.value + 0.0 * len(parts)


class Cycle:
    finalized = 0

    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        type(self).finalized += 1


class Callback:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        self.note(phase)

    def method(self, phase: str, info: dict[str, Any]) -> None:
        self.note(phase)

    def note(self, phase: str) -> None:
        self.calls += 1
        Cycle()  # whose finalizer runs when the next collection comes


@contextlib.contextmanager
def collecting_often(callback: Callable[..., None]) -> Iterator[None]:
    before = gc.get_threshold()
    gc.callbacks.append(callback)  # type: ignore[arg-type]
    gc.set_threshold(3)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(callback)  # type: ignore[arg-type]


def capture() -> Any:
    number = Number(2.5)
    function = rn.compile(lambda x: x * rn.full((2,), float(number)))
    assert function(rn.ones(2)).tolist() == [2.5, 2.5]
    number.value = 3.0
    assert function(rn.ones(2)).tolist() == [3.0, 3.0]
    return function


def require_native(function: Any) -> None:
    assert [one.reason for one in function.executables() if one.native is None] == []


@pytest.mark.parametrize("kind", ["object", "method", "partial"])
def test_callbacks_and_finalizers_of_the_garbage_collector(kind: str) -> None:
    counter = Callback()
    callbacks = {"object": counter, "method": counter.method, "partial": functools.partial(counter.method)}
    finalized = Cycle.finalized
    for _ in range(3):
        with collecting_often(callbacks[kind]):
            function = capture()
        require_native(function)
    assert counter.calls > 0
    assert Cycle.finalized > finalized


def test_nothing_is_left_with_the_collector() -> None:
    before = list(gc.callbacks)
    capture()
    assert gc.callbacks == before


@pytest.mark.skipif(
    sys.platform == "win32" or threading.current_thread() is not threading.main_thread(), reason="it sends signals"
)
def test_handlers_of_signals() -> None:
    rings = []

    def ring(number: int, frame: Any) -> None:
        rings.append(number)

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
        functions = [capture() for _ in range(5)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rings
    for function in functions:
        require_native(function)
