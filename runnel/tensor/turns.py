"""Turns: how those who touch the same Variables keep out of one another's way, so that all of them get on.

Nothing that must be right rests on this. Whoever reads, writes or binds Variables finds out afterwards whether somebody
came between, and starts over. A turn only sees to it that starting over ends: who has it is not disturbed, because the
others, when they come to where they would disturb, wait for a while. They wait no longer, since the one whose turn it
is may itself be waiting for one of them (in a signal handler, say, or for a lock of the user's).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from runnel.runtime import locks

_LONGEST_WAIT: Final = 1.0  # seconds


class Turn:
    """``with TURN.taken():`` asks others to wait for a while; ``give_way()`` is where they do."""

    def __init__(self) -> None:
        self._lock: Any = locks.reentrant()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Have the turn in the block, or wait for it in vain."""
        if self._lock._is_owned():
            yield
            return
        try:
            self._lock.acquire(timeout=_LONGEST_WAIT)
            yield
        finally:
            if self._lock._is_owned():  # asked, and not remembered: Ctrl-C may come as soon as it is taken
                self._lock.release()

    def give_way(self) -> None:
        """Wait, for a while, if it is somebody else's turn."""
        if self._lock.acquire(timeout=_LONGEST_WAIT):
            self._lock.release()


TURN: Final = Turn()
