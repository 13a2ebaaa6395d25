"""Locks that are reopened in a forked child: the threads that held them in its parent do not exist in it.

The state that such a lock guards is consistent between any two bytecodes (a dict, a list, words that the next call
writes again), so that a child can continue with it.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Final

_LOCKS: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()


def lock() -> threading.Lock:
    """A ``threading.Lock`` that is reopened in the child of a fork."""
    new_lock = threading.Lock()
    _LOCKS[id(new_lock)] = new_lock
    return new_lock


def reentrant() -> threading.RLock:
    """A ``threading.RLock`` that is reopened in the child of a fork."""
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
