"""Ctrl-C during a training: a request that is answered between two steps, where the state is whole."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Interruption:
    """``with Interruption() as request: …`` asks for a stop by ``request.is_made`` at the first SIGINT. The second one
    goes to whoever would have got the first. In other threads than the main one it does nothing."""

    def __init__(self) -> None:
        self.is_made = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._before = signal.signal(signal.SIGINT, self._requested)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()

    def _requested(self, number: int, frame: FrameType | None) -> None:
        self.is_made = True
        self._give_back()

    def _give_back(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None
