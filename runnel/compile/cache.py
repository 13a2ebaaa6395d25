"""Keep the programs of compiled functions, by code object, so that equal closures and lambdas share them.

A program belongs to what it reads: it is dropped together with the first model, optimizer or other object that it is
bound to, and all programs of a code object are dropped together with it. Their number is bounded: the least recently
used programs are dropped first. :func:`clear_caches` clears everything that is kept only for speed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.backends import base
from runnel.backends.context import CompileContext
from runnel.backends.host import locks, memory
from runnel.compile.executable import Executable
from runnel.compile.templates import Template
from runnel.core import functions
from runnel.core.dtypes import DType
from runnel.core.lifetime import ByIdentity
from runnel.tensor import composing, eager, recall, tensor
from runnel.tensor.tensor import Tensor
from runnel.transforms import scan_gradient


def kinds(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hashable:
    """Return the kinds of the arguments, which are equal for calls that one program may serve. Guards decide."""
    return tuple(map(_kind, args)), tuple([(name, _kind(value)) for name, value in kwargs.items()])


def _kind(value: Any) -> Hashable:
    if type(value) is Tensor:
        return value._aval
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype
    return id(type(value))


class Circumstances(NamedTuple):
    """The settings that a program depends on, besides what its function reads."""

    context: CompileContext
    recording: bool  # gradients; not in ``no_grad``
    autocast: DType | None


def difference(was: Circumstances, now: Circumstances) -> str:
    """Return how circumstances differ, as a sentence; "" if they are equal."""
    if was.recording != now.recording:
        return f"gradients are {'' if now.recording else 'not '}recorded (no_grad, enable_grad)"
    if was.context.threads != now.context.threads:
        return f"the number of threads is {now.context.threads}, was {was.context.threads}"
    if was.context.target is not now.context.target:
        return f"the target is {now.context.target.name}, was {was.context.target.name}"
    if was.context is not now.context:
        return "switches of the compiler have changed"
    if was.autocast is not now.autocast:
        dtypes = [dtype.name if dtype is not None else "off" for dtype in (now.autocast, was.autocast)]
        return f"autocast is {dtypes[0]}, was {dtypes[1]}"
    return ""


PROGRAMS: Final = 256  # of one function
TEMPLATES: Final = 16  # traces of one function with lengths
VARYING: Final = 256  # numbers of a function that may change without a retrace
WAITING: Final = 8  # kept of a code object that no compiled function refers to at present
REASONS: Final = 1000  # for retraces that a function remembers
LONGEST_WAIT: Final = 10.0  # seconds for another thread that traces or compiles the same function


class Entry:
    """The programs of one code object.

    A program is also dropped when an owner of it dies, which may be at any moment and on any thread. So each step is
    one operation on a dict, and a program that was added is checked once more.
    """

    def __init__(self) -> None:
        self.last: tuple[Executable, Circumstances] | None = None  # the last trace
        self.refused: set[str] = set()  # warnings that were given
        self.refuted = ""  # why no program of this code can be trusted
        self._varying: set[str] = set()
        self.templates: list[tuple[Circumstances, Template]] = []  # traces with lengths, the latest first
        self.has_lengths = True  # unless a trace with lengths turned out to serve no others
        self.ended = ""  # the last owner that died and took a program along
        # The least recently used first. No OrderedDict: Ctrl-C while it hashes or compares a key leaves it broken.
        self._programs: dict[Hashable, dict[Executable, None]] = {}
        self._users: dict[weakref.ref[Any], None] = {}
        self._tracing: Any = locks.reentrant()

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Trace and compile in the block, after other threads that do, since their program may be the one. The wait is
        bounded, because tracing runs code of the user, which may be waiting for the caller."""
        outer = self._tracing._is_owned()
        try:
            if not outer:
                self._tracing.acquire(timeout=LONGEST_WAIT)
            yield
        finally:
            # Asked, and not remembered: Ctrl-C may come as soon as it is taken.
            if not outer and self._tracing._is_owned():
                self._tracing.release()

    def used_by(self, user: object) -> None:
        """Keep all programs while any user is alive; afterwards keep the ``WAITING`` most recent."""
        mine = weakref.ref(self)

        def gone(reference: weakref.ref[Any], waiting: int = WAITING) -> None:  # at the exit of Python names are gone
            entry = mine()
            if entry is not None:
                entry._users.pop(reference, None)
                if not entry._users:
                    entry.templates = []
                    entry._shrink(waiting)

        self._users[weakref.ref(user, gone)] = None

    def programs(self, key: Hashable) -> list[Executable]:
        """Return the programs traced with this signature, the latest first."""
        programs = self._programs.get(key)
        if not programs:
            return []
        self._programs[key] = self._programs.pop(key, programs)
        return list(reversed(list(programs)))

    def add(self, key: Hashable, executable: Executable) -> None:
        """Keep a program. If there are too many, drop the first that was added."""
        for empty in [k for k, programs in list(self._programs.items()) if not programs]:
            self._programs.pop(empty, None)
        executable.keepers.add(self)
        programs = self._programs[key] = self._programs.pop(key, {})
        self._add_latest(programs, executable)
        self._shrink(PROGRAMS)

    def promote(self, key: Hashable, executable: Executable) -> None:
        """Try ``executable`` first."""
        programs = self._programs.get(key, {})
        if executable in programs:
            programs.pop(executable, None)
            self._add_latest(programs, executable)

    def drop(self, executable: Executable, owner: str) -> None:
        """Drop a program whose ``owner`` has died."""
        self.ended = owner
        if self.last is not None and self.last[0] is executable:
            self.last = None
        for programs in list(self._programs.values()):
            programs.pop(executable, None)

    def varying_for(
        self,
        function: FunctionType,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        programs: list[Executable],
        sizes: Callable[[str, Any, Any], list[str]],
    ) -> frozenset[str]:
        """Return the labels of numbers that have changed between calls; ``programs`` may tell more. ``sizes`` returns
        the labels of sizes that make a tensor differ.

        The latest one that tells something is asked: one that ran for another branch of the function fails there first,
        and does not know the numbers that this branch reads.
        """
        asked = programs or ([] if self.last is None else [self.last[0]])
        told = (one.guard.numbers_that_changed(function, args, kwargs, sizes) for one in asked)
        changed = next(filter(None, told), [])
        self._varying.update(changed[: max(0, VARYING - len(self._varying))])
        return frozenset(self._varying)

    def fitting(
        self,
        key: Hashable,
        around: Circumstances,
        function: FunctionType,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Iterator[Executable]:
        """Yield the programs that may serve a call: of traces with lengths the one for the lengths of the call, then
        those traced with this signature, the latest first."""
        for of, template in list(self.templates):
            if template.executable.is_over:
                self.templates = [known for known in self.templates if known[1] is not template]
            elif of == around:
                executable = template.instance(function, args, kwargs)
                if executable is not None:
                    yield executable
        yield from self.programs(key)

    def kept(self, around: Circumstances, executable: Executable) -> Executable:
        """Return a traced program for its first lengths. If the trace can serve others, keep it."""
        lengths = None if executable.captured is None else executable.captured.lengths
        if lengths is None:
            return executable
        template = Template(executable, lengths)
        if lengths.vary():
            self.templates = [(around, template), *self.templates[: TEMPLATES - 1]]
        else:
            self.has_lengths = False
        return template.settled()

    def discard(self, executable: Executable) -> None:
        """Drop a program that never fitted."""
        for programs in list(self._programs.values()):
            programs.pop(executable, None)

    def every(self) -> list[Executable]:
        """Return all programs."""
        traced = [executable for programs in list(self._programs.values()) for executable in reversed(list(programs))]
        return traced + [executable for _, template in self.templates for executable in template.programs()]

    def count(self) -> int:
        """Return the number of programs."""
        return self._traced() + sum(len(template.programs()) for _, template in self.templates)

    def _traced(self) -> int:
        return sum(map(len, list(self._programs.values())))

    def clear(self) -> None:
        """Drop all programs."""
        self._end_all()
        self.refuted = ""

    def refute(self, why: str) -> None:
        """Drop all programs, and compile no others: an audit has shown that what this code reads is not known."""
        self.refuted = why
        self._end_all()

    def _end_all(self) -> None:
        for executable in self.every():
            executable.end("")
        self.last = None
        self.templates = []

    @staticmethod
    def _add_latest(programs: dict[Executable, None], executable: Executable) -> None:
        programs[executable] = None
        if executable.is_over:  # meanwhile
            programs.pop(executable, None)

    def _shrink(self, most: int) -> None:
        surplus = self._traced() - most
        for programs in list(self._programs.values()):
            for executable in list(programs)[: max(surplus, 0)]:
                programs.pop(executable, None)
                surplus -= 1


_ENTRIES: ByIdentity[CodeType, dict[Hashable, Entry]] = ByIdentity()


def entry(code: CodeType, *options: Hashable) -> Entry:
    """Return the entry of a code object under these options."""
    return _ENTRIES.setdefault(code, dict).setdefault(options, Entry())


def size() -> tuple[int, int]:
    """Return the numbers of functions and of programs that are kept."""
    entries = [e for of_code in _ENTRIES.values() for e in list(of_code.values())]
    return len(entries), sum(e.count() for e in entries)


def clear() -> None:
    """Drop all programs. The next calls trace again."""
    for of_code in _ENTRIES.values():
        for programs in list(of_code.values()):
            programs.clear()


def clear_caches() -> None:
    """Clear what is kept only for speed: programs of compiled functions, plans of single ops, constants, machine code
    that nothing refers to, and free blocks of memory.

    Nothing in use is lost. The next calls trace and plan again, and load their machine code from disk. You need not
    call this to free the programs of a model: they are dropped together with it.
    """
    clear()
    composing.clear()
    eager.clear()
    recall.clear()
    scan_gradient.clear()
    functions.bytecode.cache_clear()
    for backend in base.BACKENDS.values():
        backend.clear()
    for constants in tensor.CONSTANT_CACHES:
        constants.clear()
    memory.trim()
