"""A bounded mapping that evicts what has not been used recently.

Two generations: new items and those found again are young; when ``keep`` of them are, they become the old ones, and the
old ones go. So finding a young item costs what a dict costs, and between ``keep`` and twice as many are kept.
"""

from __future__ import annotations

from typing import Generic, TypeVar

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
        """The item of ``key``, which is young from then on; None if there is none."""
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

    def __len__(self) -> int:
        return len(self.young) + len(self._old)

    def clear(self) -> None:
        self.young, self._old = {}, {}
