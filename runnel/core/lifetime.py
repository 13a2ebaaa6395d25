"""Object lifetimes: weak references, and entries that end with their owners.

Anything made for an object (a program for a model) must not keep it alive, and ends with it. So it refers to the
object by :class:`Weak` and is :func:`tied` to it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Weak(weakref.ref):  # type: ignore[type-arg]
    """A weak reference; calling it returns the object, or None when that is gone.

    The separate class tells Runnel's references from the user's.
    """

    __slots__ = ()


class Ending(Protocol):
    """An entry that ends with its owners."""

    def end(self, owner: str) -> None:
        """Handle the end of the owner of this name."""


class Tie(weakref.ref):  # type: ignore[type-arg]
    """A reference to an owner; what is owned holds it, and hears of the owner's end by it."""

    __slots__ = ("name",)
    name: str


def tied(owned: Ending, owners: Iterable[tuple[str, Any]]) -> list[Tie]:
    """Return ties to ``owners``, given with their names. When one of them ends, ``owned.end(name)`` is called.

    The call happens wherever the last reference was dropped: on any thread, while any lock is held, during a garbage
    collection. So ``end`` takes no lock and only drops references. It may be called once for each owner.
    """
    reference = weakref.ref(owned)

    def gone(tie: Tie) -> None:
        entry = reference()
        if entry is not None:
            entry.end(tie.name)

    ties: list[Tie] = []
    for name, owner in owners:
        ties.append(Tie(owner, gone))
        ties[-1].name = name
    return ties


class ByIdentity(Generic[K, V]):
    """A mapping by which objects its keys are, none of which it keeps alive; an item goes with its key.

    A value that refers to its key keeps both for ever.
    """

    def __init__(self) -> None:
        self._items: dict[int, tuple[Any, V]] = {}

    def setdefault(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of ``key``; create it if it is missing."""
        entry = self._items.get(id(key))
        if entry is None:
            items, place = self._items, id(key)
            reference = weakref.ref(key, lambda _: items.pop(place, None))
            entry = items.setdefault(place, (reference, make()))  # atomic: of two threads, one makes it in vain
        return entry[1]

    def values(self) -> Iterator[V]:
        return iter([value for _, value in list(self._items.values())])

    def __len__(self) -> int:
        return len(self._items)

    def clear(self) -> None:
        self._items.clear()
