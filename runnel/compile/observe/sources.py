"""Sources and the log: where values come from, and what must hold for a program to be reused.

A source is a path: an expression over the value of its parent, down to a root (the called function, its arguments, or
something that lives as long as the process). The log keeps reads and checks in the order in which the run made them, so
that a check precedes everything that relies on it. Each path is read once.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
import types
from collections.abc import Container
from typing import Any, Final, NamedTuple

from runnel.compile.observe.values import MISSING

Place = tuple[int, Any]  # the address of a dict of attributes, and a name in it


class Source:
    """A place that the run read. ``text`` is an expression over the parent ``{p}``, the operands ``{a0}``, ``{a1}``,
    ... and the constants ``{0}``, ``{1}``, ..."""

    __slots__ = ("constants", "index", "is_argument", "label", "operands", "parent", "place", "text", "value")

    def __init__(self, parent: Source | None, text: str, constants: tuple[Any, ...], label: str, value: Any) -> None:
        self.parent = parent
        self.text = text
        self.constants = constants
        self.label = label
        self.value = value
        self.operands: tuple[Source | None, ...] = ()  # of a number that the guard computes
        self.index = -1  # number among the reads of the guard
        self.place: Place | None = None  # of an attribute whose changes advance the state version
        self.is_argument: bool = parent is not None and parent.is_argument  # whether the path begins at an argument

    def __repr__(self) -> str:
        return self.label


def item_of(name: str, value: Any) -> str:
    """Return the text of the item ``name`` of a dict ``{p}``, which held ``value`` or nothing."""
    return f"{{p}}.get({name!r}, MISSING)" if value is MISSING else f"{{p}}[{name!r}]"


class Check(NamedTuple):
    """``fails`` is a condition over the source ``{v}``, the others ``{s0}``, ``{s1}``, ... and the constants."""

    source: Source | None
    fails: str
    constants: tuple[Any, ...]
    label: str
    others: tuple[Source, ...]
    looks_into: Container[int] | None = None  # see ``Log.check``


class Identity(NamedTuple):
    """A constant that is compared by identity. Guards do not keep it alive."""

    value: Any


class Log:
    """Reads and checks of one run, in order."""

    def __init__(self) -> None:
        self.entries: list[Source | Check] = []
        self.reads: list[Source] = []
        self._sources: dict[Any, Source] = {}
        self._checked: set[Any] = set()
        self._alive: list[Any] = []  # the objects whose ids are parts of keys

    def source(
        self, parent: Source | None, text: str, label: str, value: Any = MISSING, constants: tuple[Any, ...] = ()
    ) -> Source:
        """Return the source of a path, the same one each time."""
        key = (id(parent), text, *map(id, constants))
        source = self._sources.get(key)
        if source is None:
            source = self._sources[key] = Source(parent, text, constants, label, value)
            self._alive.append(constants)
        return source

    def computed(
        self, text: str, operands: tuple[Source | None, ...], label: str, constants: tuple[Any, ...]
    ) -> Source:
        """Return the source of a number that the guard computes from ``operands``."""
        key = (text, *map(id, operands), *map(id, constants))
        source = self._sources.get(key)
        if source is None:
            source = self._sources[key] = Source(None, text, constants, label, MISSING)
            source.operands = operands
            self._alive.append(constants)
        return source

    def check(
        self,
        source: Source | None,
        fails: str,
        label: str,
        constants: tuple[Any, ...] = (),
        others: tuple[Source, ...] = (),
        looks_into: Container[int] | None = None,
    ) -> None:
        """Require that ``fails`` is false at later calls.

        ``looks_into`` has the addresses of the objects on whose state version alone the outcome depends. The check is
        skipped while that version stays the same. The same holds if all sources have a ``place``.
        """
        key = (id(source), fails, *[id(c.value) if type(c) is Identity else id(c) for c in constants], *map(id, others))
        if key in self._checked:
            return
        self._checked.add(key)
        self._alive.append(constants)
        for needed in (source, *others):
            if needed is not None:
                self.need(needed)
        self.entries.append(Check(source, fails, constants, label, others, looks_into))

    def need(self, source: Source) -> None:
        """Read a source, and what it is read from, at this point of the guard."""
        if source.index < 0:
            for one in (source.parent, *source.operands):
                if one is not None:
                    self.need(one)
            source.index = len(self.reads)
            self.reads.append(source)
            self.entries.append(source)

    def forget_values(self) -> None:
        """Release everything that only the recording needed."""
        for source in self._sources.values():
            source.value = None
            source.constants = ()
        for collection in (self.entries, self.reads, self._sources, self._alive, self._checked):
            collection.clear()


_IMMORTAL: Final = (
    type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), range, slice, types.CodeType,
    types.ModuleType, types.BuiltinFunctionType, types.WrapperDescriptorType, types.MethodDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType, types.ClassMethodDescriptorType, type(MISSING),
    dataclasses.Field,
)  # fmt: skip


def is_immortal(value: Any) -> bool:
    """Return whether a guard may hold ``value``: it lives as long as the process, or keeps nothing else alive."""
    kind = type(value)
    if kind in _IMMORTAL:
        return kind is not types.BuiltinFunctionType or type(value.__self__) in (types.ModuleType, type(None))
    if kind is tuple:
        return all(map(is_immortal, value))
    if issubclass(kind, enum.Enum):
        return is_in_its_module(kind)
    if issubclass(kind, type):
        return is_in_its_module(value)
    if kind is types.FunctionType:
        return value.__closure__ is None and is_in_its_module(value)
    return False


def is_in_its_module(value: Any) -> bool:
    """Return whether a module holds this class or function under its own name."""
    if issubclass(type(value), type) and not value.__flags__ & 1 << 9:
        return True  # a class of the interpreter
    holder: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        is_holder = type(holder) is types.ModuleType or issubclass(type(holder), type)
        space = getattr(holder, "__dict__", None) if is_holder else None
        if space is None:
            return False
        holder = space.get(name)
    return holder is value
