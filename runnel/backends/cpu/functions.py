"""Machine code in memory, by key.

A function lives as long as a program refers to it. The most recently used code is kept alive up to ``KEPT`` bytes, so
that the next program of the same kind need not load it again.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

from runnel.backends.cpu.link import Function, Library
from runnel.backends.host import locks

KEPT: Final = 32 << 20  # bytes of pages, in use or not
K = TypeVar("K", bound=Hashable)


class _RecentLibraries:
    """The most recently used libraries, for all tables."""

    def __init__(self) -> None:
        self._libraries: dict[Library, None] = {}  # in order of last use
        self._nbytes = 0
        self._lock = locks.lock()  # never waited for: its holder may be an outer frame of this thread

    def use(self, library: Library) -> None:
        """Note its use, unless another thread holds the lock."""
        if not self._lock.acquire(blocking=False):
            return
        evicted: list[Library] = []  # freed after the lock is released
        try:
            if next(reversed(self._libraries), None) is library:
                return
            if library in self._libraries:
                del self._libraries[library]
            else:
                self._nbytes += library.pages.nbytes
            self._libraries[library] = None
            while self._nbytes > KEPT:
                evicted.append(next(iter(self._libraries)))
                del self._libraries[evicted[-1]]
                self._nbytes -= evicted[-1].pages.nbytes
        finally:
            self._lock.release()

    def clear(self) -> None:
        if self._lock.acquire(blocking=False):
            try:
                self._libraries, self._nbytes = {}, 0
            finally:
                self._lock.release()


_RECENT: Final = _RecentLibraries()


class Functions(Generic[K]):
    """A table of functions with weak references."""

    def __init__(self) -> None:
        self._items: dict[K, tuple[weakref.ref[Library], int]] = {}

    def get(self, key: K) -> Function | None:
        """The function of ``key``, if it is still alive."""
        item = self._items.get(key)
        library = None if item is None else item[0]()
        if item is None or library is None:
            return None
        _RECENT.use(library)
        return Function.of(library, item[1])

    def update(self, functions: Iterable[tuple[K, Function]]) -> None:
        """Add functions, each with its key."""
        for key, function in functions:
            self._items[key] = self._reference(key, function.library), int(function)
            _RECENT.use(function.library)

    def _reference(self, key: K, library: Library) -> weakref.ref[Library]:
        items = self._items
        return weakref.ref(library, lambda _: items.pop(key, None))

    def __len__(self) -> int:
        return len(self._items)


def clear() -> None:
    """Free all code that no program refers to."""
    _RECENT.clear()
