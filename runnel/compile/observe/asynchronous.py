"""What the interpreter runs between two instructions of any code, and which is no part of that code: callbacks and
finalisers while the garbage collector works, and handlers of signals."""

from __future__ import annotations

import functools
import gc
import signal
import threading
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any


class Collections:
    """Knows of the garbage collector's work on one thread, between ``begin()`` and ``end()``."""

    def __init__(self) -> None:
        self.is_running = False
        self._thread = threading.get_ident()

    def begin(self) -> None:
        gc.callbacks.insert(0, self.before_others)
        gc.callbacks.append(self.after_others)

    def end(self) -> None:
        gc.callbacks.remove(self.before_others)
        gc.callbacks.remove(self.after_others)

    def before_others(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start" and threading.get_ident() == self._thread:
            self.is_running = True

    def after_others(self, phase: str, _: dict[str, int]) -> None:
        if phase == "stop" and threading.get_ident() == self._thread:
            self.is_running = False


def handles_signal(frame: FrameType) -> bool:
    """Whether a handler of a signal starts in this frame. It is given the frame that was interrupted, which nobody who
    calls the same function otherwise has at hand."""
    if threading.current_thread() is not threading.main_thread():
        return False
    arguments = list(frame.f_locals.values())
    arguments += [one for values in arguments if type(values) is tuple for one in values]
    return any(one is frame.f_back for one in arguments) and any(frame.f_code is code for code in _handlers())


def _handlers() -> Iterator[CodeType]:
    for number in signal.valid_signals():
        function = _function_of(signal.getsignal(number))
        if type(function) is FunctionType:
            yield function.__code__


def _function_of(handler: Any) -> Any:
    """What runs first when a handler is called."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if type(handler) in (FunctionType, MethodType):
        return getattr(handler, "__func__", handler)
    return type(handler).__call__ if callable(handler) else None
