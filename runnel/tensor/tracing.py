"""Activate traces: while a trace is active on a thread, ops on tensors append nodes instead of computing."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Final, TypeVar

from runnel.tensor.trace import ACTIVE as ACTIVE, Trace as Trace

T = TypeVar("T")

_SOON: Final = 1e-3  # seconds


@contextmanager
def no_trace() -> Iterator[None]:
    """Run the block without a trace, a level, or an observer of Variable reads."""
    before = ACTIVE.trace, ACTIVE.level, ACTIVE.readings
    ACTIVE.trace = ACTIVE.level = ACTIVE.readings = None
    try:
        yield
    finally:
        ACTIVE.trace, ACTIVE.level, ACTIVE.readings = before


class _Handler:
    """A signal handler that runs without a trace, and outside code that an exception must not cut short."""

    def __init__(self, callback: Callable[..., Any]) -> None:
        self.callback = callback

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        below = frame
        for _ in range(_DEPTH):
            if below is not None and below.f_code in _UNDISTURBED:
                # Sending the signal again here would recurse, so another thread does it.
                _thread.start_new_thread(_again, (number,))
                return None
            below = below.f_back if below is not None else None
        with no_trace():
            return self.callback(number, frame)


_UNDISTURBED: Final[set[CodeType]] = set()
_DEPTH: Final = 4  # frames: of what is undisturbed, and what it calls


def undisturbed(function: T) -> T:
    """Mark a function of this package that signal handlers do not break into while a trace is active."""
    _UNDISTURBED.add(function.__code__)  # type: ignore[attr-defined]
    return function


def _again(number: int) -> None:
    time.sleep(_SOON)
    _thread.interrupt_main(number)  # type: ignore[arg-type] # any number will do


@undisturbed
def _collecting(phase: str, info: dict[str, int]) -> None:
    """Called by the garbage collector before and after a collection, on the thread that does it: once for each trace
    that is active anywhere."""
    if phase == "start" and ACTIVE.interrupted is None:
        ACTIVE.interrupted = ACTIVE.trace, ACTIVE.level, ACTIVE.readings
        ACTIVE.trace = ACTIVE.level = ACTIVE.readings = None
    elif phase == "stop" and ACTIVE.interrupted is not None:
        ACTIVE.trace, ACTIVE.level, ACTIVE.readings = ACTIVE.interrupted
        ACTIVE.interrupted = None


class Guarded:
    """Between ``begin()`` and ``end()``, whatever breaks in on this thread runs apart. Both are to be called from
    functions that are :func:`undisturbed`."""

    def __init__(self) -> None:
        self._handlers: list[tuple[int, _Handler]] = []

    def begin(self) -> None:
        if ACTIVE.interrupted == (None, None, None):
            ACTIVE.interrupted = None  # Ctrl-C may have cut the end of a collection short
        gc.callbacks.append(_collecting)
        if threading.current_thread() is threading.main_thread():
            for number in range(1, signal.NSIG):
                handler = _signal.getsignal(number)  # without signal's own search for names of numbers
                if callable(handler) and _may_act(handler):
                    self._handlers.append((number, _Handler(handler)))
                    signal.signal(*self._handlers[-1])

    def end(self) -> None:
        gc.callbacks.remove(_collecting)
        for number, apart in self._handlers:
            if signal.getsignal(number) is apart:
                signal.signal(number, apart.callback)


def _may_act(handler: Callable[..., Any]) -> bool:
    """Return whether a handler does anything and is not wrapped yet. An event loop sets a handler that does nothing,
    and asks for system calls to be restarted, which setting another handler would revoke."""
    return not isinstance(handler, _Handler) and not getattr(handler, "__module__", "").startswith("asyncio.")


def method(owner: Any, name: str) -> Callable[..., Any]:
    """Return a method of ``owner``, whose class may be the user's; observed, if the trace is observed."""
    trace = ACTIVE.trace
    if trace is None or trace.observer is None:
        bound: Callable[..., Any] = getattr(owner, name)
        return bound
    return trace.observer(owner, name)


class activate:
    """A block, ``with activate(trace):``, in which ops on this thread are recorded in ``trace``. Code that interrupts
    the block, such as signal handlers, is not recorded.

    Inside another block, None ends recording for this one. Levels belong to the trace in which they began. ``over`` is
    called when recording has ended.
    """

    __slots__ = ("_before", "_guarded", "_level", "_over", "_trace")

    def __init__(self, trace: Trace | None, over: Callable[[], None] | None = None) -> None:
        self._trace = trace
        self._over = over
        self._before, self._level = ACTIVE.trace, ACTIVE.level
        self._guarded = Guarded() if self._before is None else None

    @undisturbed
    def __enter__(self) -> Trace | None:
        if self._guarded is not None:
            self._guarded.begin()
        ACTIVE.trace, ACTIVE.level = self._trace, None
        return self._trace

    @undisturbed
    def __exit__(self, *error: object) -> None:
        ACTIVE.trace, ACTIVE.level = self._before, self._level
        try:
            if self._over is not None:
                self._over()
        finally:
            if self._guarded is not None:
                self._guarded.end()
