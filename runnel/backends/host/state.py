"""State locks, and how the processes that fork treat them: ``cpu.locking`` says what machine code does with one, and
``interpreter.locking`` what the interpreter does.

Under Python's global lock a few bytecodes that call nothing are not interrupted, by other threads as little as by
signal handlers. What is called atomic here and in ``tensor/variable.py`` rests on that.
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
    """Of a backend, by whose runs state locks are held; a lock is named by its address."""

    def is_written(self, lock: int, /) -> int:
        """1 while a run that holds it may be writing, else 0."""

    def settle(self, lock: int, /) -> object:
        """Wait for the end of the run that is writing."""

    def close(self) -> None:
        """Let no run that takes locks begin."""

    def open(self) -> None:
        """Let them begin again."""

    def reopen(self) -> None:
        """The same in the child of a fork."""


class StateLock:
    """What the Variables that one program used first have in common: its runs exclude those of others that write them.

    ``words[VERSION]`` counts whenever a program that is bound to one of them must be bound anew; ``words[WRITES]`` runs
    that wrote, and ``assigned`` assignments. Only runs change the rest: those of the backend of ``keeper``.
    """

    __slots__ = ("__weakref__", "_block", "address", "assigned", "keeper", "words")

    def __init__(self, keeper: LockKeeper) -> None:
        self.keeper: Final = keeper
        self._block: Final = memory.allocate(layout.LINE)
        self.address: Final = self._block.address
        ctypes.memset(self.address, 0, layout.LINE)
        held = (ctypes.c_int64 * (layout.LINE // 8)).from_address(self.address)
        self.words: Final = memoryview(held).cast("B").cast("q")
        self.assigned = 0
        _ALL[self.address] = self

    def settle(self) -> None:
        """Wait for the end of the run that is writing, if there is one. Those that begin later see the version as it
        was before this call."""
        keeper = self.keeper
        if keeper.is_written(self.address):
            if host.INSIDE and host.held().get(self.address):
                raise host.refused()
            keeper.settle(self.address)

    def after_fork(self) -> None:
        """In the child of a fork: whoever held this, or waited for it, does not exist."""
        ctypes.memset(self.address, 0, layout.VERSION)


_ALL: Final[weakref.WeakValueDictionary[int, StateLock]] = weakref.WeakValueDictionary()


def _living() -> list[StateLock]:
    return [lock for reference in _ALL.valuerefs() if (lock := reference()) is not None]


_CLOSED: Final[dict[int, list[LockKeeper]]] = {}  # what threads have closed for a fork of theirs


def _before_fork() -> None:
    """The child gets a copy of the memory as it is: let no run be in the middle of writing Variables."""
    if _ALL:
        keepers = {id(lock.keeper): lock.keeper for lock in _living()}
        _CLOSED[threading.get_ident()] = list(keepers.values())
        for keeper in keepers.values():
            keeper.close()
        for lock in _living():
            lock.settle()


def _after_fork_in_parent() -> None:
    for keeper in _CLOSED.pop(threading.get_ident(), ()):  # which _ALL does not say: Variables come and go meanwhile
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
