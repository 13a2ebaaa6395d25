"""A log turned into a guard: one generated function that reads the paths again and checks what was found.

A guard runs no user code: paths are chosen so that reading them does not. It keeps no model alive: objects that count
for their identity are compared by address, and when one of them dies the guard is retired before its address can recur.
"""

from __future__ import annotations

import os
import re
import struct
import sys
import weakref
from collections import OrderedDict
from types import FunctionType
from typing import Any

from runnel.compile.observe.classes import MISSING, lookup, namespace
from runnel.compile.observe.sources import Check, Identity, Log, Source, is_immortal


def differs(value: Any, known: Any) -> bool:
    """Whether two plain values can be told apart: 1 from True, 0.0 from -0.0; every NaN is the same."""
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
    """Whether two sequences of plain values can be told apart item by item."""
    return len(values) != len(known) or any(a is not b and differs(a, b) for a, b in zip(values, known, strict=True))


def keys_of(value: Any) -> tuple[Any, ...]:
    """The keys of a dict in its order, whatever its class makes of them."""
    return tuple(OrderedDict.keys(value) if issubclass(type(value), OrderedDict) else dict.keys(value))


def ids(values: Any) -> tuple[int, ...]:
    """The identities of what a container holds, in its order."""
    return tuple(map(id, values))


def plain_part(value: Any, base: Any) -> Any:
    """The number or text in an object of a class that inherits from ``base``."""
    if base is int:
        return int.__int__(value)
    if base is float:
        return float.__float__(value)
    if base is complex:
        return complex.__complex__(value)
    return base.__getitem__(value, slice(None))[:] if base is bytes else str.__str__(value)


def by_key(values: dict[Any, Any], address: int) -> Any:
    """What a dict holds under the key with this address."""
    return next(item for key, item in values.items() if id(key) == address)


def by_id(values: Any, address: int) -> Any:
    """The member of a set with this address."""
    return next(item for item in values if id(item) == address)


def cache_state(function: Any) -> tuple[int, int]:
    """Changes when the cache of ``functools.lru_cache`` does."""
    state = function.cache_info()
    return state.misses, state.currsize


class NotGuarded(Exception):
    """Something that is neither kept alive nor able to tell of its death."""


class Guard:
    """``holds(fn, args, kwargs)``: the values of the wanted sources, or None when something is not as it was."""

    def __init__(self, log: Log, wanted: list[Source]) -> None:
        for source in wanted:
            log.need(source)
        self.is_retired: list[bool] = []  # holds an item once the guard can never hold again
        self._watched: list[weakref.ref[Any]] = []
        self._names: dict[Any, str] = {}
        self._namespace: dict[str, Any] = {
            "MISSING": MISSING, "FunctionType": FunctionType, "differs": differs, "lookup": lookup, "ids": ids,
            "items_differ": items_differ, "namespace": namespace,
            "by_key": by_key, "keys_of": keys_of, "by_id": by_id, "cache_state": cache_state, "plain_part": plain_part,
            "retired": self.is_retired, "modules": sys.modules, "environ": os.environ,
        }  # fmt: skip
        self._lines = [self._line(entry) for entry in log.entries]
        self._result = "".join(f"v{s.index}, " for s in wanted)
        self.reads, self.checks = len(log.reads), len(log.entries) - len(log.reads)
        self.holds = self._function(False)
        self._told: Any = None

    @property
    def text(self) -> str:
        """The generated function."""
        return self._source(False)

    def why(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """What is not as it was, in words; None when all is."""
        if self._told is None:
            self._told = self._function(True)
        found = self._told(fn, args, kwargs)
        return found if isinstance(found, str) else None

    def _function(self, tells: bool) -> Any:
        exec(compile(self._source(tells), "<guard>", "exec"), self._namespace)
        return self._namespace["guard"]

    def _source(self, tells: bool) -> str:
        """``tells``: give the label of what failed instead of None."""
        gone, unreadable = ("'an object that it depended on is gone'", "at + ' cannot be read'")
        lines = (
            ["def guard(fn, args, kwargs):", " at = ''", " try:"]
            if tells
            else ["def guard(fn, args, kwargs):", " try:"]
        )
        for condition, read, label in self._lines:
            if read:
                lines.append(f"  at = {label!r}; {read}" if tells else f"  {read}")
            else:
                lines.append(f"  if {condition}: return {label if tells else None!r}")
        lines.append(f"  return {gone if tells else None} if retired else ({self._result})")
        lines.append(f" except Exception: return {unreadable if tells else None}")
        return "\n".join(lines)

    def _line(self, entry: Source | Check) -> tuple[str, str, str]:
        if isinstance(entry, Source):
            text = self._filled(entry.text, entry.constants)
            if entry.parent is not None:
                text = text.replace("{p}", f"v{entry.parent.index}")
            return "", f"v{entry.index} = {text}", entry.label
        text = self._filled(entry.fails, entry.constants)
        if entry.source is not None:
            text = text.replace("{v}", f"v{entry.source.index}")
        for i, other in enumerate(entry.others):
            text = text.replace(f"{{s{i}}}", f"v{other.index}")
        return text, "", entry.label

    def _filled(self, text: str, constants: tuple[Any, ...]) -> str:
        """Constants by their names; ``X is not {0}`` of an Identity compares addresses where it may not be held."""
        for i, constant in enumerate(constants):
            place = f"{{{i}}}"
            if type(constant) is not Identity:
                text = text.replace(place, self._constant(constant))
            elif is_immortal(constant.value):
                text = text.replace(place, self._constant(constant.value))
            else:
                self._watch(constant.value)
                text = re.sub(rf"(\S+) is not \{place[:-1]}\}}", rf"id(\1) != {id(constant.value)}", text)
                text = re.sub(rf"(\S+) is \{place[:-1]}\}}", rf"id(\1) == {id(constant.value)}", text)
        return text

    def _constant(self, value: Any) -> str:
        if value is None or value is True or value is False:
            return repr(value)
        key = id(value)
        if key not in self._names:
            self._names[key] = f"k{len(self._names)}"
            self._namespace[self._names[key]] = value
        return self._names[key]

    def _watch(self, value: Any) -> None:
        retired = self.is_retired
        try:
            self._watched.append(weakref.ref(value, lambda _: retired.append(True)))
        except TypeError:
            raise NotGuarded(f"a {type(value).__name__} is compared by identity, and cannot be watched") from None
