"""Locks that survive a fork: in the child, threads that held them in the parent do not exist.

The child reopens every lock. The state that such a lock guards is consistent between any two bytecodes (a dict, a
list, words that the next call writes again), so the child can continue with it.

A claim is for work that several threads may need at the same time: one thread does it, and the others wait for it. A
thread never waits for itself: a signal handler or a finalizer that needs the result of work that its own thread is
doing does the work again. Waits are bounded: after a timeout the waiting thread does the work itself.

State locks exclude concurrent runs that write the same Variables. ``cpu.locking`` has their protocol in machine code,
``interpreter.locking`` in Python. Under Python's global lock a few bytecodes without calls are not interrupted, neither
by other threads nor by signal handlers; "atomic" here and in ``tensor/variable.py`` relies on that.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Hashable, Iterable
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from runnel.backends.host import calls as host, layout, memory

_LOCKS: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()


def lock() -> threading.Lock:
    """Return a ``threading.Lock`` that is reopened in the child of a fork."""
    new_lock = threading.Lock()
    _LOCKS[id(new_lock)] = new_lock
    return new_lock


def reentrant() -> threading.RLock:
    """Return a ``threading.RLock`` that is reopened in the child of a fork."""
    new_lock = threading.RLock()
    _LOCKS[id(new_lock)] = new_lock
    return new_lock


def _open_all() -> None:
    for reference in _LOCKS.valuerefs():
        lock = reference()
        if lock is not None and not (hasattr(lock, "_is_owned") and lock._is_owned()):
            lock._at_fork_reinit()  # what Python's own modules use for theirs


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)


K = TypeVar("K", bound=Hashable)

LONGEST_WAIT: Final = 30.0  # seconds


class Claim(NamedTuple):
    """The thread that does some work, and the event that signals its end."""

    thread: int
    done: threading.Event


class Claims:
    """Work in progress. Operations on the dict are atomic, so there is no lock that a fork could leave taken."""

    def __init__(self) -> None:
        self._open: dict[Hashable, Claim] = {}
        _ALL.add(self)

    def take(self, keys: Iterable[K]) -> tuple[Claim, dict[K, Claim]]:
        """Claim all of ``keys`` that no other thread works on. Returns the claim, to be given back, and the claims of
        others."""
        mine = Claim(threading.get_ident(), threading.Event())
        claims = {key: self._open.setdefault(key, mine) for key in keys}
        return mine, {key: claim for key, claim in claims.items() if claim.thread != mine.thread}

    def give_back(self, mine: Claim) -> None:
        """End the claim: the work is done or has failed, and waiting threads look for its result."""
        for key in [key for key, claim in list(self._open.items()) if claim is mine]:
            self._open.pop(key, None)
        mine.done.set()

    def forget(self) -> None:
        """Drop all claims after a fork: no other thread exists."""
        self._open.clear()


_ALL: Final[weakref.WeakSet[Claims]] = weakref.WeakSet()


def _forget_all() -> None:
    for claims in list(_ALL):
        claims.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


VERSION: Final = layout.VERSION // 8  # in words
WRITES: Final = layout.WRITES // 8


class LockKeeper(Protocol):
    """The operations of a backend on the state locks that its runs hold; a lock is named by its address."""

    def is_written(self, lock: int, /) -> int:
        """Return 1 while a run that holds ``lock`` may be writing, else 0."""

    def settle(self, lock: int, /) -> object:
        """Wait for the end of the run that is writing."""

    def close(self) -> None:
        """Keep runs that take locks from beginning."""

    def open(self) -> None:
        """Let them begin again."""

    def reopen(self) -> None:
        """Let them begin again in the child of a fork."""


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
        _STATE_LOCKS[self.address] = self

    def settle(self) -> None:
        """Wait for the end of the run that is writing, if there is one. Runs that begin later see the version from
        before this call."""
        keeper = self.keeper
        if keeper.is_written(self.address):
            if host.INSIDE and host.locks_held().get(self.address):
                raise host.refused()
            keeper.settle(self.address)

    def after_fork(self) -> None:
        """Release the lock in the child of a fork: threads that held it, or waited for it, do not exist."""
        ctypes.memset(self.address, 0, layout.VERSION)


_STATE_LOCKS: Final[weakref.WeakValueDictionary[int, StateLock]] = weakref.WeakValueDictionary()


def _living_locks() -> list[StateLock]:
    return [lock for reference in _STATE_LOCKS.valuerefs() if (lock := reference()) is not None]


_CLOSED: Final[dict[int, list[LockKeeper]]] = {}  # by thread: the keepers that it closed for a fork


def _before_fork() -> None:
    """Wait until no run is writing Variables: the child gets a copy of the memory."""
    if _STATE_LOCKS:
        keepers = {id(lock.keeper): lock.keeper for lock in _living_locks()}
        _CLOSED[threading.get_ident()] = list(keepers.values())
        for keeper in keepers.values():
            keeper.close()
        for lock in _living_locks():
            lock.settle()


def _after_fork_in_parent() -> None:
    for keeper in _CLOSED.pop(threading.get_ident(), ()):  # not _STATE_LOCKS, which changes meanwhile
        keeper.open()


def _after_fork_in_child() -> None:
    if _CLOSED:
        keepers = {id(keeper): keeper for closed in _CLOSED.values() for keeper in closed}
        _CLOSED.clear()
        for lock in _living_locks():
            lock.after_fork()
        for keeper in keepers.values():
            keeper.reopen()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
