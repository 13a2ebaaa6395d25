"""Errors that handlers of signals raise, which are none of the function that they break off."""

from __future__ import annotations

import signal
import traceback
from typing import Any


def is_of_a_handler(error: BaseException) -> bool:
    """Return whether the handler of a signal raised an error, such as a timeout. A second run would not raise it."""
    handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    return any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__))


def _code(handler: Any) -> Any:
    function = getattr(handler, "__func__", handler)
    return getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
