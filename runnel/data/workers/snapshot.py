"""What an object was made of at a moment: whether copies of it in other processes are still like it."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from runnel.tensor.methods import ArrayMethods

_MOST_ITEMS: Final = 64  # of a container that is looked into; of longer ones the length is compared
_MOST_OBJECTS: Final = 1000
_WHOLE: Final = (
    ArrayMethods, np.ndarray, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, type,
)  # fmt: skip
_PLAIN: Final = (int, float, complex, str, bytes, type(None))


class Snapshot:
    """The attributes of objects, of those in their attributes and so on: numbers and texts by value, else by identity.
    Elements of arrays and of long containers are not compared."""

    def __init__(self, *things: Any) -> None:
        self._parts: list[Any] = []  # which also keeps them, so that no other object gets their identity
        self._visited: set[int] = set()
        for thing in things:
            self._visit(thing)

    def _visit(self, thing: Any) -> None:
        self._parts.append(thing)
        if isinstance(thing, (*_PLAIN, *_WHOLE)) or id(thing) in self._visited or len(self._visited) >= _MOST_OBJECTS:
            return
        self._visited.add(id(thing))
        if isinstance(thing, Mapping):
            self._items(thing, [part for item in thing.items() for part in item] if len(thing) <= _MOST_ITEMS else [])
        elif isinstance(thing, list | tuple):
            self._items(thing, thing if len(thing) <= _MOST_ITEMS else ())
        elif isinstance(attributes := getattr(thing, "__dict__", None), dict):
            self._items(attributes, [part for item in list(attributes.items()) for part in item])

    def _items(self, container: Any, items: Any) -> None:
        self._parts.append(len(container))
        for item in items:
            self._visit(item)

    def equals(self, other: Snapshot) -> bool:
        """Whether both are of the same objects with the same parts."""
        return len(self._parts) == len(other._parts) and all(map(_same, self._parts, other._parts))


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and isinstance(one, _PLAIN) and one == other)
