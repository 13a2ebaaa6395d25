"""State locks, and how the processes that fork treat them: ``locking`` says what machine code does with one.

Under Python's global lock a few bytecodes that call nothing are not interrupted, by other threads as little as by
signal handlers. What is called atomic here and in ``tensor/variable.py`` rests on that.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Final, NamedTuple

from runnel.backends.cpu import driver
from runnel.backends.host import calls as host, layout, memory

VERSION: Final = layout.VERSION // 8  # in words
WRITES: Final = layout.WRITES // 8


class _Calls(NamedTuple):
    is_written: Callable[[int], int]
    settle: Callable[[int], int]
    close: Callable[[], None]
    open: Callable[[], None]
    reopen: Callable[[], None]


@functools.cache
def _calls() -> _Calls:
    entry = driver.entry_points()
    return _Calls(
        ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(entry.rn_is_written),
        ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(entry.rn_settle),
        ctypes.PYFUNCTYPE(None)(entry.rn_close),
        ctypes.PYFUNCTYPE(None)(entry.rn_open),
        ctypes.PYFUNCTYPE(None)(entry.rn_reopen),
    )


class StateLock:
    """What the Variables that one program used first have in common: its runs exclude those of others that write them.

    ``words[VERSION]`` counts whenever a program that is bound to one of them must be bound anew; ``words[WRITES]`` runs
    that wrote, and ``assigned`` assignments. Only machine code changes the rest.
    """

    __slots__ = ("__weakref__", "_block", "address", "assigned", "words")

    def __init__(self) -> None:
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
        calls = _calls()
        if calls.is_written(self.address):
            if host.INSIDE and host.held().get(self.address):
                raise host.refused()
            calls.settle(self.address)

    def after_fork(self) -> None:
        """In the child of a fork: whoever held this, or waited for it, does not exist."""
        ctypes.memset(self.address, 0, layout.VERSION)


_ALL: Final[weakref.WeakValueDictionary[int, StateLock]] = weakref.WeakValueDictionary()


def _living() -> list[StateLock]:
    return [lock for reference in _ALL.valuerefs() if (lock := reference()) is not None]


_CLOSED: Final[set[int]] = set()  # threads that have closed for a fork of theirs


def _before_fork() -> None:
    """The child gets a copy of the memory as it is: let no run be in the middle of writing Variables."""
    if _ALL:
        _CLOSED.add(threading.get_ident())
        _calls().close()
        for lock in _living():
            lock.settle()


def _after_fork_in_parent() -> None:
    if threading.get_ident() in _CLOSED:  # which _ALL does not say: Variables come and go while others are waited for
        _CLOSED.remove(threading.get_ident())
        _calls().open()


def _after_fork_in_child() -> None:
    if _CLOSED:
        _CLOSED.clear()
        for lock in _living():
            lock.after_fork()
        _calls().reopen()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
