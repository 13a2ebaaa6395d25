"""The programs of all compiled functions, by code: a closure or lambda made anew finds those of its twin.

Both the functions and the programs of each are bounded in number; the least recently used go first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from types import CodeType
from typing import Final

from runnel.compile.executable import Executable
from runnel.compile.signature import Arguments
from runnel.core.pytree import Structure
from runnel.runtime import locks

FUNCTIONS: Final = 256
PROGRAMS: Final = 64  # of one function
REASONS: Final = 1000  # for tracing again, that a function remembers


class Entry:
    """What is kept for one function's code. ``lock`` is held while it is traced."""

    def __init__(self) -> None:
        self.lock = locks.reentrant()
        self.fixed: dict[Structure, frozenset[int]] = {}  # float arguments that the function looks at
        self.last: Arguments | None = None  # the signature traced last
        # The least recently used first. No OrderedDict: Ctrl-C while it hashes or compares a key leaves it broken.
        self._programs: dict[Hashable, list[Executable]] = {}

    def programs(self, key: Hashable) -> list[Executable]:
        """Those traced with this signature, the latest first."""
        found = self._programs.pop(key, None)
        if found is None:
            return []
        self._programs[key] = found
        return found

    def add(self, key: Hashable, executable: Executable) -> None:
        """Keep a program; too many, and the one that was added first goes."""
        self._programs[key] = [executable, *self._programs.pop(key, ())]
        while self.count() > PROGRAMS:
            oldest, programs = next(iter(self._programs.items()))
            self._programs[oldest] = programs[:-1]
            if not self._programs[oldest]:
                del self._programs[oldest]

    def promote(self, key: Hashable, executable: Executable) -> None:
        """Let ``executable`` be looked at first."""
        programs = self._programs.get(key, [])
        if programs and programs[0] is not executable:
            self._programs[key] = [executable, *(p for p in programs if p is not executable)]

    def every(self) -> list[Executable]:
        """All that are kept."""
        return [executable for programs in self._programs.values() for executable in programs]

    def count(self) -> int:
        """How many programs there are."""
        return sum(map(len, self._programs.values()))


_ENTRIES: OrderedDict[Hashable, Entry] = OrderedDict()
_LOCK = locks.lock()


def entry(code: CodeType, *options: Hashable) -> Entry:
    """The entry of a function's code under these options, made if need be."""
    key = (code, *options)
    with _LOCK:
        found = _ENTRIES.get(key)
        if found is None:
            found = _ENTRIES[key] = Entry()
            if len(_ENTRIES) > FUNCTIONS:
                _ENTRIES.popitem(last=False)
        else:
            _ENTRIES.move_to_end(key)
        return found


def size() -> tuple[int, int]:
    """How many functions and how many programs are kept."""
    with _LOCK:
        return len(_ENTRIES), sum(e.count() for e in _ENTRIES.values())


def clear() -> None:
    """Forget all programs of functions that nobody holds."""
    with _LOCK:
        _ENTRIES.clear()
