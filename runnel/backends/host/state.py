"""State locks, and how they are handled at forks: ``cpu.locking`` has their protocol in machine code, and
``interpreter.locking`` that in the interpreter.

Under Python's global lock a few bytecodes without calls are not interrupted, neither by other threads nor by signal
handlers. "Atomic" here and in ``tensor/variable.py`` relies on that.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from typing import Final, Protocol

from runnel.backends.host import calls as host, layout, memory

VERSION: Final = layout.VERSION // 8  # in words
WRITES: Final = layout.WRITES // 8


class LockKeeper(Protocol):
    """The operations of a backend on the state locks that its runs hold; a lock is named by its address."""

    def is_written(self, lock: int, /) -> int:
        """1 while a run that holds ``lock`` may be writing, else 0."""

    def settle(self, lock: int, /) -> object:
        """Wait for the end of the run that is writing."""

    def close(self) -> None:
        """Keep runs that take locks from beginning."""

    def open(self) -> None:
        """Let them begin again."""

    def reopen(self) -> None:
        """The same in the child of a fork."""


class StateLock:
    """The lock shared by the Variables that one program was the first to use: it excludes concurrent runs that write.

    ``words[VERSION]`` is incremented whenever programs that are bound to one of them must be bound again;
    ``words[WRITES]`` counts runs that wrote, ``assigned`` assignments. The other words are changed only by runs of the
    backend of ``keeper``.
    """

    __slots__ = ("__weakref__", "_block", "address", "assigned", "keeper", "words")

    def __init__(self, keeper: LockKeeper) -> None:
        self.keeper: Final = keeper
        self._block: Final = memory.allocate(layout.LINE)
        self.address: Final = self._block.address
        ctypes.memset(self.address, 0, layout.LINE)
        lock_words = (ctypes.c_int64 * (layout.LINE // 8)).from_address(self.address)
        self.words: Final = memoryview(lock_words).cast("B").cast("q")
        self.assigned = 0
        _ALL[self.address] = self

    def settle(self) -> None:
        """Wait for the end of the run that is writing, if there is one. Runs that begin later see the version from
        before this call."""
        keeper = self.keeper
        if keeper.is_written(self.address):
            if host.INSIDE and host.locks_held().get(self.address):
                raise host.refused()
            keeper.settle(self.address)

    def after_fork(self) -> None:
        """In the child of a fork: threads that held this, or waited for it, do not exist."""
        ctypes.memset(self.address, 0, layout.VERSION)


_ALL: Final[weakref.WeakValueDictionary[int, StateLock]] = weakref.WeakValueDictionary()


def _living() -> list[StateLock]:
    return [lock for reference in _ALL.valuerefs() if (lock := reference()) is not None]


_CLOSED: Final[dict[int, list[LockKeeper]]] = {}  # by thread: the keepers that it closed for a fork


def _before_fork() -> None:
    """The child gets a copy of the memory: no run may be writing Variables."""
    if _ALL:
        keepers = {id(lock.keeper): lock.keeper for lock in _living()}
        _CLOSED[threading.get_ident()] = list(keepers.values())
        for keeper in keepers.values():
            keeper.close()
        for lock in _living():
            lock.settle()


def _after_fork_in_parent() -> None:
    for keeper in _CLOSED.pop(threading.get_ident(), ()):  # not _ALL, which changes meanwhile
        keeper.open()


def _after_fork_in_child() -> None:
    if _CLOSED:
        keepers = {id(keeper): keeper for closed in _CLOSED.values() for keeper in closed}
        _CLOSED.clear()
        for lock in _living():
            lock.after_fork()
        for keeper in keepers.values():
            keeper.reopen()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
