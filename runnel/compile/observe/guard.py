"""Turns a log into a guard: one generated function that reads the paths again and checks the values.

A guard runs no user code, because paths are chosen so that reading them does not. It keeps no model alive: it has weak
references to the objects that it compares, and is retired when one of them dies.
"""

from __future__ import annotations

import copy
import re
import struct
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, Final, NamedTuple

from runnel.compile.observe.effects import Effects
from runnel.compile.observe.sources import Check, Identity, Log, Source, is_immortal
from runnel.compile.observe.values import (
    MISSING,
    described,
    is_data_descriptor,
    is_empty,
    is_plain,
    keys_of,
    lookup,
    namespace,
)
from runnel.core import functions
from runnel.core.caching import lazy


def differs(value: Any, known: Any) -> bool:
    """Return whether two plain values differ: 1 from True, 0.0 from -0.0. All NaNs are the same."""
    if type(value) is not type(known):
        return True
    if type(known) is float:
        return struct.pack("<d", value) != struct.pack("<d", known)
    if type(known) is complex:
        return differs(value.real, known.real) or differs(value.imag, known.imag)
    if type(known) is range:
        return (value.start, value.stop, value.step) != (known.start, known.stop, known.step)
    if type(known) is slice:
        parts = zip((value.start, value.stop, value.step), (known.start, known.stop, known.step), strict=True)
        return any(differs(a, b) for a, b in parts)
    if type(known) in (tuple, list):
        return len(value) != len(known) or any(map(differs, value, known))
    return bool(value != known)


def items_differ(values: Any, known: Any) -> bool:
    """Return whether two sequences of plain values differ."""
    return len(values) != len(known) or any(a is not b and differs(a, b) for a, b in zip(values, known, strict=True))


def ids(values: Any) -> tuple[int, ...]:
    """Return the identities of the items of a container, in order."""
    return tuple(map(id, values))


def is_filled(value: Any, name: str) -> bool:
    """Return whether a slot of an object has a value."""
    try:
        lookup(type(value), name).__get__(value, type(value))
    except AttributeError:
        return False
    return True


DESCRIBED: dict[type, Callable[[Any], str]] = {}  # describes a value, by the type of the expected constant
EXTRA: dict[str, Any] = {}  # more names for checks


_ALIAS: Final = re.compile(r"v\d+ is not v\d+")
_FIRST_OPERAND: Final = re.compile(r"(\w+\(|)(v\d+)\b(?!\()")  # what a check computes first: v0 …, type(v0) …
_BRANCHES: Final = re.compile(r"\b(?:if|for|lambda)\b|:=")  # what may skip a part of a check, or binds weaker than or
_MOST_JOINED: Final = 40  # checks in one statement


class NotGuarded(Exception):
    """An object cannot be compared by identity: guards may not hold it, and it has no weak references."""


class Line(NamedTuple):
    """A read (with its ``number``) or a check (-1) of a guard, as code."""

    number: int
    code: str
    label: str
    needs: tuple[int, ...]  # reads that come before it
    by_version: bool
    was: Any  # what was found: for messages

    def has_failed(self, space: dict[str, Any]) -> bool:
        """Evaluate the line in ``space``. Return whether a check fails."""
        is_read = self.number >= 0
        return bool(eval(functions.bytecode(self.code, "<guard>", "exec" if is_read else "eval"), space))


class Guard:
    """``holds(fn, args, kwargs)`` gives the values of the wanted sources, or None where something differs.

    ``lines`` gives the same as code for another function. ``owners`` are the objects that it compares by identity,
    with their labels; it keeps none of them alive.
    """

    def __init__(self, log: Log, sources: list[Source], effects: Effects) -> None:
        """Make a guard. ``effects`` are the changes of each call, which the state version does not cover."""
        for source in sources:
            log.need(source)
        self.is_retired: list[bool] = []  # holds an item once the guard can never hold again
        self.owners: list[tuple[str, weakref.ref[Any]]] = []
        self._names: dict[Any, str] = {}
        self._references: dict[int, weakref.ref[Any]] = {}
        self.namespace: dict[str, Any] = {
            "MISSING": MISSING, "FunctionType": FunctionType, "differs": differs, "lookup": lookup, "ids": ids,
            "is_filled": is_filled, "items_differ": items_differ, "namespace": namespace, **EXTRA, "keys_of": keys_of,
            "retired": self.is_retired, "is_data_descriptor": is_data_descriptor, "modules": sys.modules,
            "is_empty": is_empty,
        }  # fmt: skip
        self._lines = [self._line(entry, _is_by_version(entry, effects)) for entry in log.entries]
        self.read_sources = [s.index for s in sources]
        self.computed = tuple(dict.fromkeys(s.label for s in log.reads if s.operands))  # at each call, in words
        self.reads, self.checks = len(log.reads), len(log.entries) - len(log.reads)
        self.aliases = [line.code for line in self._lines if line.number < 0 and _ALIAS.fullmatch(line.code)]

    @lazy
    def holds(self) -> Any:
        """Return the generated function. Calls of programs have the same lines in their own code."""
        return functions.from_text(self.text, "<guard>", self.namespace)

    @property
    def text(self) -> str:
        """Return the text of the generated function."""
        lines = "\n".join(f"  {line}" for line in self.lines(False, "None"))
        return (
            f"def guard(fn, args, kwargs):\n try:\n{lines}\n  return ({self.values()})\n except Exception: return None"
        )

    def replaced(self, constants: Mapping[str, Any]) -> Guard:
        """Return the same guard with other values of some constants, by name. Both are retired together."""
        guard = copy.copy(self)
        guard.__dict__.pop("holds", None)
        guard.namespace = {**self.namespace, **constants}
        return guard

    def reader(self, places: Sequence[int]) -> Callable[..., tuple[Any, ...]]:
        """Return ``read(fn, args, kwargs)``: some of the wanted values, without a check."""
        wanted = {self.read_sources[place] for place in places}
        lines: list[str] = []
        for line in reversed(self._lines):
            if line.number in wanted:
                wanted.update(line.needs)
                lines.insert(0, line.code)
        values = "".join(f"v{self.read_sources[place]}, " for place in places)
        read: Callable[..., tuple[Any, ...]] = functions.function(
            "read(fn, args, kwargs)", [*lines, f"return ({values})"], self.namespace, "guard"
        )
        return read

    def binder(self, pattern: re.Pattern[str], text: str, constants: Mapping[str, Any]) -> Callable[..., Any]:
        """Return ``holds(fn, args, kwargs, bind)``: the guard with ``text`` in place of what fits ``pattern`` in its
        checks, and other values of some constants."""
        lines = "\n".join(f"  {pattern.sub(text, line)}" for line in self.lines(False, "None"))
        head = f"def guard(fn, args, kwargs, bind):\n try:\n{lines}\n  return True\n except Exception: return None"
        return functions.from_text(head, "<guard>", {**self.namespace, **constants})

    def values(self) -> str:
        """Return the wanted values as code that follows ``lines``."""
        return "".join(f"v{i}, " for i in self.read_sources)

    def lines(self, fast: bool, miss: str) -> list[str]:
        """Return the guard as code over ``fn``, ``args`` and ``kwargs`` that returns ``miss`` where something differs.

        ``fast`` leaves out what only the state version can change, for calls where it is the same.
        """
        entries = self._lines
        if fast:
            needed = {i for line in entries if line.number < 0 and not line.by_version for i in line.needs}
            needed |= set(self.read_sources)
            for line in reversed(entries):
                if line.number in needed:
                    needed.update(line.needs)
            entries = [line for line in entries if (line.number in needed if line.number >= 0 else not line.by_version)]
        return [*joined(entries, miss), f"if retired: return {miss}"]

    def labels(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the labels of what is checked at each call, and of what is checked when the state version changed."""
        checks = [line for line in self._lines if line.number < 0]
        parts = ([c.label for c in checks if c.by_version is by_version] for by_version in (False, True))
        always, by_version = (tuple(dict.fromkeys(part)) for part in parts)
        return always, by_version

    def numbers_that_changed(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], sizes: Callable[[str, Any, Any], list[str]]
    ) -> list[str]:
        """Return the labels of numbers that differ, if the first difference is one of them. ``sizes`` returns the
        labels of numbers that make a value differ, by its label, what it was, and what it is."""
        labels: list[str] = []
        space: dict[str, Any] = {**self.namespace, "fn": fn, "args": args, "kwargs": kwargs}
        for line in self._lines:
            try:
                if line.has_failed(space):
                    found = sizes(line.label, line.was, space[f"v{line.needs[0]}"]) if line.needs else []
                    labels += found
                    is_value = type(line.was) in (int, float) and "differs(" in line.code
                    if found:
                        continue
                    if not is_value and not line.label.startswith("len("):
                        break
                    labels.append(line.label)
            except Exception:
                break
        return labels

    def why(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """Return what differs, in words, or None."""
        failed = self._failed(fn, args, kwargs)
        if failed is not None:
            return failed[1]
        return "an object that it depended on is gone" if self.is_retired else None

    def _failed(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Line, str] | None:
        """Return the line that fails, and why."""
        space: dict[str, Any] = {**self.namespace, "fn": fn, "args": args, "kwargs": kwargs}
        for line in self._lines:
            try:
                if line.has_failed(space):
                    return line, _changed(line, space)
            except Exception:
                return line, f"{line.label} cannot be read"
        return None

    def _line(self, entry: Source | Check, by_version: bool) -> Line:
        if isinstance(entry, Source):
            code = f"v{entry.index} = {self._filled(entry.text, entry.constants, entry.label)}"
            needs = []
            if entry.parent is not None:
                code = code.replace("{p}", f"v{entry.parent.index}")
                needs.append(entry.parent.index)
            for i, operand in enumerate(entry.operands):
                if operand is not None:
                    code = code.replace(f"{{a{i}}}", f"v{operand.index}")
                    needs.append(operand.index)
            return Line(entry.index, code, entry.label, tuple(needs), by_version, None)
        code = self._filled(entry.fails, entry.constants, entry.label)
        needs = [] if entry.source is None else [entry.source.index]
        if entry.source is not None:
            code = code.replace("{v}", f"v{entry.source.index}")
        for i, other in enumerate(entry.others):
            code = code.replace(f"{{s{i}}}", f"v{other.index}")
            needs.append(other.index)
        first = entry.constants[0] if entry.constants else MISSING
        was = first if is_plain(first) or type(first) in DESCRIBED else MISSING
        return Line(-1, code, entry.label, tuple(needs), by_version, was)

    def _filled(self, text: str, constants: tuple[Any, ...], label: str) -> str:
        """Replace constants by names, so that guards of equal models have equal texts, which Python compiles once. An
        Identity that the guard may not hold is a weak reference."""
        for i, constant in enumerate(constants):
            value = constant.value if type(constant) is Identity else constant
            is_held = value is constant or is_immortal(value)
            name = self._constant(value) if is_held else f"{self._constant(self._watched(value, label))}()"
            text = text.replace(f"{{{i}}}", name)
        return text

    def _constant(self, value: Any) -> str:
        if value is None or value is True or value is False:
            return repr(value)
        key = (int, value) if type(value) is int else id(value)
        if key not in self._names:
            self._names[key] = f"k{len(self._names)}"
            self.namespace[self._names[key]] = value
        return self._names[key]

    def _watched(self, value: Any, label: str) -> weakref.ref[Any]:
        """Return a reference to an object, whose death retires the guard."""
        retired = self.is_retired
        if id(value) not in self._references:
            try:
                self._references[id(value)] = weakref.ref(value, lambda _: retired.append(True))
            except TypeError:
                raise NotGuarded(f"a {type(value).__name__} is compared by identity, and cannot be watched") from None
        self.owners.append((label, self._references[id(value)]))
        return self._references[id(value)]


def joined(lines: list[Line], miss: str) -> list[str]:
    """Return the lines as statements. Consecutive checks become one, which begins with the read before them where
    possible. Python compiles few long statements in half the time of many short ones."""
    statements: list[str] = []
    checks: list[str] = []
    read: Line | None = None  # not written yet

    def finish() -> None:
        if checks:
            statements.append(f"if {' or '.join(checks)}: return {miss}")
            checks.clear()

    for line in lines:
        code = line.code
        branches = line.number < 0 and _BRANCHES.search(code) is not None
        if read is not None:
            begins = None if line.number >= 0 or branches else _FIRST_OPERAND.match(code)
            name = f"v{read.number}"
            if begins is not None and begins[2] == name:
                code = f"{begins[1]}({name} := {read.code.removeprefix(f'{name} = ')}){code[begins.end() :]}"
            else:
                finish()
                statements.append(read.code)
            read = None
        if line.number >= 0:
            read = line
            continue
        checks.append(f"({code})" if branches else code)
        if len(checks) == _MOST_JOINED:
            finish()
    finish()
    return statements if read is None else [*statements, read.code]


def _is_by_version(entry: Source | Check, effects: Effects) -> bool:
    """Return whether only the state version can change the outcome of a read or check."""
    if isinstance(entry, Source):
        advances_version = entry.place is not None
    elif entry.looks_into is not None:
        advances_version = True
    else:
        places = [s.place for s in (entry.source, *entry.others) if s is not None]
        advances_version = bool(places) and None not in places
    return advances_version and not effects.changes(entry)


def _changed(line: Line, space: dict[str, Any]) -> str:
    """Return what failed, with the values where these are plain."""
    if line.was is MISSING or not line.needs:
        return line.label
    now = space[f"v{line.needs[0]}"]
    if type(line.was) in DESCRIBED:
        is_now, was = DESCRIBED[type(line.was)](now), str(line.was)
        return line.label if is_now == was else f"{line.label.rpartition(' of ')[2]} is {is_now}, was {was}"
    if not is_plain(now) or not differs(now, line.was):
        return line.label
    return f"{line.label} changed from {described(line.was)} to {described(now)}"
