"""Work that several threads may want done at the same time: one does it, the others wait for it.

Nobody waits for himself: a signal handler or a finalizer that asks for what its own thread is at work on does it anew.
Nor does anybody wait for good: whoever has done its own share and waited long does the rest as well.
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
    """Who is at work on something, and what tells when it is done."""

    thread: int
    done: threading.Event


class Claims:
    """What is being worked on. Steps on the dict are atomic; there is no lock to find taken after a fork."""

    def __init__(self) -> None:
        self._open: dict[Hashable, Claim] = {}
        _ALL.add(self)

    def take(self, keys: Iterable[K]) -> tuple[Claim, dict[K, Claim]]:
        """Claim all of ``keys`` that no other thread works on. The claim, to be given back, and those of others."""
        mine = Claim(threading.get_ident(), threading.Event())
        found = {key: self._open.setdefault(key, mine) for key in keys}
        return mine, {key: claim for key, claim in found.items() if claim.thread != mine.thread}

    def give_back(self, mine: Claim) -> None:
        """The work is done, or has failed: whoever waits looks for what it made."""
        for key in [key for key, claim in list(self._open.items()) if claim is mine]:
            self._open.pop(key, None)
        mine.done.set()

    def forget(self) -> None:
        """After a fork nobody else is at work."""
        self._open.clear()


_ALL: Final[weakref.WeakSet[Claims]] = weakref.WeakSet()


def _forget_all() -> None:
    for claims in list(_ALL):
        claims.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
