"""Sources and the log: where values come from and what must hold of them.

A source is a path: an expression over what its parent holds, down to a root (the function called, its arguments, or
something that lives as long as the process). Reads and checks stay in the order in which they were met, so that a check
stands before everything that relies on it; each path is read once.
"""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Container
from typing import Any, Final, NamedTuple

from runnel.compile.observe.classes import MISSING

Place = tuple[int, Any]  # the address of a dict of attributes, and the name in it


class Source:
    """A place that was read: ``text`` over the parent's value ``{p}`` and the constants ``{0}``, ``{1}``, ..."""

    __slots__ = ("constants", "index", "is_argument", "label", "operands", "parent", "place", "text", "value")

    def __init__(self, parent: Source | None, text: str, constants: tuple[Any, ...], label: str, value: Any) -> None:
        self.parent = parent
        self.text = text
        self.constants = constants
        self.label = label
        self.value = value
        self.operands: tuple[Source | None, ...] = ()  # of a number that is computed: ``{a0}``, ``{a1}``, ...
        self.index = -1  # number among the reads of the guard
        self.place: Place | None = None  # where an attribute lies whose changes advance the state version
        self.is_argument: bool = parent is not None and parent.is_argument  # whether it hangs on an argument

    def __repr__(self) -> str:
        return self.label


class Check(NamedTuple):
    """``fails`` is a condition over ``{v}``, the values of ``sources`` as ``{s0}``, ... and the constants."""

    source: Source | None
    fails: str
    constants: tuple[Any, ...]
    label: str
    others: tuple[Source, ...]
    looks_into: Container[int] | None = None  # see ``Log.check``


class Identity(NamedTuple):
    """A constant that counts for which object it is alone: guards do not keep it alive."""

    value: Any


class Log:
    """Reads and checks in their order."""

    def __init__(self) -> None:
        self.entries: list[Source | Check] = []
        self.reads: list[Source] = []
        self._sources: dict[Any, Source] = {}
        self._checked: set[Any] = set()
        self._alive: list[Any] = []  # what ids in keys belong to
        self._addresses: dict[int, int] = {}

    def address(self, value: Any) -> int:
        """``id(value)`` as a constant: the same int each time. As a part of the text it would make the guards of equal
        models different texts, each of which Python compiles."""
        return self._addresses.setdefault(id(value), id(value))

    def source(
        self, parent: Source | None, text: str, label: str, value: Any = MISSING, constants: tuple[Any, ...] = ()
    ) -> Source:
        """The source of this path, made if it is new."""
        key = (id(parent), text, *map(id, constants))
        source = self._sources.get(key)
        if source is None:
            source = self._sources[key] = Source(parent, text, constants, label, value)
            self._alive.append(constants)
        return source

    def computed(
        self, text: str, operands: tuple[Source | None, ...], label: str, constants: tuple[Any, ...]
    ) -> Source:
        """A number that is computed from what is found at ``operands``, which ``text`` names."""
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
        """A later call is another case where ``fails`` holds. What is found at sources that change with the state
        version alone is checked by it, and so are checks that name the objects they look into, by address."""
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
        """Read the source, and what it is read from, at this point of the guard."""
        if source.index < 0:
            for one in (source.parent, *source.operands):
                if one is not None:
                    self.need(one)
            source.index = len(self.reads)
            self.reads.append(source)
            self.entries.append(source)

    def forget_values(self) -> None:
        """Let go of everything that was only needed while recording."""
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
    """Whether an object may be held by a guard: it lives as long as the process, or holds nothing else alive."""
    kind = type(value)
    if kind in _IMMORTAL:
        return kind is not types.BuiltinFunctionType or type(value.__self__) in (types.ModuleType, type(None))
    if kind is tuple:
        return all(map(is_immortal, value))
    if issubclass(kind, type):
        return is_in_its_module(value)
    if kind is types.FunctionType:
        return value.__closure__ is None and is_in_its_module(value)
    return False


def is_in_its_module(value: Any) -> bool:
    """Whether a class or function is what its module holds under its name."""
    if issubclass(type(value), type) and not value.__flags__ & 1 << 9:
        return True  # a class of the interpreter itself
    holder: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        space = (
            getattr(holder, "__dict__", None)
            if type(holder) is types.ModuleType or issubclass(type(holder), type)
            else None
        )
        if space is None:
            return False
        holder = space.get(name)
    return holder is value
