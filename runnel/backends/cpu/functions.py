"""Machine code that is there already, by what it is filed under.

A function stays as long as a program refers to it. So that the next program of the same kind need not load it again,
the code used last stays anyway, up to ``KEPT`` bytes.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

from runnel.backends.cpu.link import Function, Library
from runnel.backends.host import locks

KEPT: Final = 32 << 20  # bytes of pages, in use or not
K = TypeVar("K", bound=Hashable)


class _Kept:
    """The libraries used last, for all tables."""

    def __init__(self) -> None:
        self._libraries: dict[Library, None] = {}  # the one used last is the last
        self._nbytes = 0
        self._lock = locks.lock()  # never waited for: by whom it is held may be a frame further down on this thread

    def use(self, library: Library) -> None:
        """Note that it is used; not if somebody else is at it just now."""
        if not self._lock.acquire(blocking=False):
            return
        gone: list[Library] = []  # until the lock is open
        try:
            if next(reversed(self._libraries), None) is library:
                return
            if library in self._libraries:
                del self._libraries[library]
            else:
                self._nbytes += library.pages.nbytes
            self._libraries[library] = None
            while self._nbytes > KEPT:
                gone.append(next(iter(self._libraries)))
                del self._libraries[gone[-1]]
                self._nbytes -= gone[-1].pages.nbytes
        finally:
            self._lock.release()

    def clear(self) -> None:
        if self._lock.acquire(blocking=False):
            try:
                self._libraries, self._nbytes = {}, 0
            finally:
                self._lock.release()


_KEPT: Final = _Kept()


class Functions(Generic[K]):
    """A table of functions. It keeps none of them."""

    def __init__(self) -> None:
        self._items: dict[K, tuple[weakref.ref[Library], int]] = {}

    def get(self, key: K) -> Function | None:
        """The function filed under ``key``, if it is still there."""
        item = self._items.get(key)
        library = None if item is None else item[0]()
        if item is None or library is None:
            return None
        _KEPT.use(library)
        return Function.of(library, item[1])

    def update(self, functions: Iterable[tuple[K, Function]]) -> None:
        """File functions, each with its key."""
        for key, function in functions:
            self._items[key] = self._reference(key, function.library), int(function)
            _KEPT.use(function.library)

    def _reference(self, key: K, library: Library) -> weakref.ref[Library]:
        items = self._items
        return weakref.ref(library, lambda _: items.pop(key, None))

    def __len__(self) -> int:
        return len(self._items)


def clear() -> None:
    """Let go of all code that no program refers to."""
    _KEPT.clear()
