"""Fair access to Variables among threads: waiting readers and writers get their turn.

Nothing that must be right rests on this. Whoever reads, writes or binds Variables finds out afterwards whether somebody
came between, and starts over. A turn only sees to it that starting over ends: who has it is not disturbed, because the
others, when they come to where they would disturb, wait for a while. They wait no longer, since the one whose turn it
is may itself be waiting for one of them (in a signal handler, say, or for a lock of the user's).
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from runnel.backends.host import locks

_LONGEST_WAIT: Final = 1.0  # seconds


class Turn:
    """``with TURN.taken():`` asks others to wait for a while; ``give_way()`` is where they do."""

    def __init__(self) -> None:
        self._lock: Any = locks.reentrant()

    @contextmanager
    def reserved(self) -> Iterator[None]:
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


class Marks:
    """Changes of many Variables that belong together: readers see all of such a change or nothing.

    A reader takes a mark first, and sees at its end whether the mark still holds; if not, it reads again.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._last = 0
        self._under_way: dict[int, int] = {}  # number of the change to the thread that makes it

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Declare that the changes in the block belong together."""
        number = next(self._numbers)
        with TURN.reserved():
            try:
                self._under_way[number] = threading.get_ident()
                self._last = number
                yield
            finally:
                self._under_way.pop(number, None)

    def take(self) -> int:
        """Return the mark of a reader that begins now. Wait for a while if other threads are changing something."""
        if self._others():
            TURN.give_way()
        return -1 if self._others() else self._last

    def holds(self, mark: int) -> bool:
        """Return whether no other thread has changed anything since ``mark`` was taken."""
        return mark == self._last and not self._others()

    def _others(self) -> bool:
        """Return whether another thread is changing something. (A finalizer on this thread cannot wait for its end.)"""
        if not self._under_way:
            return False
        me = threading.get_ident()
        return any(thread != me for thread in list(self._under_way.values()))

    def after_fork(self) -> None:
        """Forget the threads of the parent, in the child of a fork."""
        self._under_way.clear()


MARKS: Final = Marks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=MARKS.after_fork)
