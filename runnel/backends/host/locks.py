"""Locks that a forked child finds open: the threads that held them in its parent do not exist in it.

What such a lock guards is whole between two bytecodes (a dict, a list, words that the next call writes again), so that
a child may go on with it as it is.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Final

_LOCKS: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()


def lock() -> threading.Lock:
    """A ``threading.Lock`` that is open in the child of a fork."""
    made = threading.Lock()
    _LOCKS[id(made)] = made
    return made


def reentrant() -> threading.RLock:
    """A ``threading.RLock`` that is open in the child of a fork."""
    made = threading.RLock()
    _LOCKS[id(made)] = made
    return made


def _open_all() -> None:
    for reference in _LOCKS.valuerefs():
        held = reference()
        if held is not None and not (hasattr(held, "_is_owned") and held._is_owned()):
            held._at_fork_reinit()  # what Python's own modules use for theirs


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)
