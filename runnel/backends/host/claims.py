"""Work that several threads may need at the same time: one does it, the others wait for it.

A thread never waits for itself: a signal handler or a finalizer that needs what its own thread is working on does the
work again. Waits are bounded: after a timeout the waiting thread does the work itself.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple, TypeVar

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
