"""Locks and claims that survive a fork: in the child, threads that held them in the parent do not exist.

The child reopens every lock. The state that such a lock guards is consistent between any two bytecodes (a dict, a
list, words that the next call writes again), so the child can continue with it.

A claim is for work that several threads may need at the same time: one thread does it, and the others wait for it. A
thread never waits for itself: a signal handler or a finalizer that needs the result of work that its own thread is
doing does the work again. Waits are bounded: after a timeout the waiting thread does the work itself.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Hashable, Iterable
from typing import Any, Final, NamedTuple, TypeVar

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
        """Claim all of ``keys`` that no other thread works on. Returns the claim, to be given back, and those of
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
        """After a fork: no other thread exists."""
        self._open.clear()


_ALL: Final[weakref.WeakSet[Claims]] = weakref.WeakSet()


def _forget_all() -> None:
    for claims in list(_ALL):
        claims.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
