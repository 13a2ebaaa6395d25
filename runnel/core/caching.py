"""A bounded mapping that evicts what has not been used recently.

Two generations: new items and those found again are young; when ``keep`` of them are, they become the old ones, and the
old ones go. So finding a young item costs what a dict costs, and between ``keep`` and twice as many are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """At most ``2 * keep`` items, among them the ``keep`` used last."""

    __slots__ = ("_keep", "_old", "young")

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self.young: dict[K, V] = {}  # where callers in a hurry look first
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Return the item of ``key`` and make it young; None if it is missing."""
        item = self.young.get(key)
        if item is None:
            item = self._old.pop(key, None)
            if item is not None:
                self[key] = item
        return item

    def __setitem__(self, key: K, value: V) -> None:
        if len(self.young) >= self._keep:
            self._old, self.young = self.young, {}
        self.young[key] = value

    def values(self) -> list[V]:
        """Return all items."""
        return [*self._old.values(), *self.young.values()]

    def __len__(self) -> int:
        return len(self.young) + len(self._old)

    def clear(self) -> None:
        self.young, self._old = {}, {}


T = TypeVar("T")


class lazy(Generic[T]):
    """A method as an attribute of the instance that is computed once."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._compute(instance))
