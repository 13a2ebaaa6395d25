"""The effects of a run, recorded with their inverses: undone after the run and replayed at each call."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

from runnel.compile.observe.changes import SET_ATTRIBUTE
from runnel.compile.observe.sources import Check, Place, Source


class Effect(NamedTuple):
    """``apply(target, key, value)`` is what happened; ``value`` may be replaced by that of a later call."""

    apply: Callable[[Any, Any, Any], Any]
    target: Any
    key: Any
    value: Any
    label: str
    shows: bool = False  # whether it shows texts to somebody: a tensor in them may be one that has no value yet


class Effects:
    """The changes of one run, in their order, and how to take them back."""

    def __init__(self) -> None:
        self.done: list[Effect] = []
        self._undo: list[Callable[[], Any]] = []
        self._before: dict[int, tuple[Any, Any]] = {}  # containers, and copies of what they held at first
        self.written: set[tuple[int, Any]] = set()  # (id of a container or object, key): holds the run's own value
        self.replaced: set[int] = set()  # containers whose whole content is the run's own
        self.appended: dict[int, int] = {}  # lists that only grew: by how much
        self.states: dict[int, Source] = {}  # of containers that are followed: what the guard finds in them
        self.inputs: dict[int, list[Any]] = {}  # of such containers: what their changes depend on
        self.mirrors: dict[int, list[dict[Any, Any]]] = {}  # copies of dicts that the run goes over
        self.open_keys: dict[int, list[Any]] = {}  # of containers: keys that nobody has looked at (``keyed.py``)
        self.items_set: dict[int, set[int]] = {}  # sequences of which only items were set: which ones
        self._overwritten: list[Any] = []  # what variables, slots and classes held before

    def record(self, apply: Callable[[Any, Any, Any], Any], target: Any, key: Any, value: Any, label: str) -> None:
        """A change that has been made."""
        self.done.append(Effect(apply, target, key, value, label))

    def show(self, apply: Callable[[Any, Any, Any], Any], target: Any, texts: Any, label: str) -> None:
        """Texts that somebody is shown."""
        self.done.append(Effect(apply, target, None, texts, label, shows=True))

    def replace_last(self, apply: Callable[[Any, Any, Any], Any]) -> None:
        """Another way to do the last change at later calls."""
        self.done[-1] = self.done[-1]._replace(apply=apply)

    def lasting(self) -> list[Effect]:
        """The changes, in their order, without values that others replaced before the run ended: an attribute gets its
        last value where it got its first one, so that attributes keep their order."""
        last = {(id(e.target), e.key): e.value for e in self.done if e.apply is SET_ATTRIBUTE}
        return [e._replace(value=last[id(e.target), e.key]) if e.apply is SET_ATTRIBUTE else e for e in self.done]

    def undo_by(self, action: Callable[[], Any]) -> None:
        """How to take back the change that is about to be made."""
        self._undo.append(action)

    def overwrites(self, value: Any) -> None:
        """What lay in a place that is no container is about to be replaced."""
        self._overwritten.append(value)

    def displaced(self) -> list[Any]:
        """What lay in places that the run has changed, and does not lie in the same container now."""
        gone = list(self._overwritten)
        for container, before in self._before.values():
            now = set(map(id, _held(container)))
            gone += [value for value in _held(before) if id(value) not in now]
        return gone

    def before(self, container: Any) -> Any:
        """What a container held when the run began."""
        entry = self._before.get(id(container))
        return container if entry is None else entry[1]

    def is_written(self, place: Place) -> bool:
        """Whether the run has changed what lies in one place of a container."""
        return place in self.written or place[0] in self.replaced

    def is_changed(self, container: Any) -> bool:
        """Whether the run has changed a container."""
        return id(container) in self._before

    def changes(self, entry: Source | Check) -> bool:
        """Whether what a read finds, or the outcome of a check, hangs on what the run changed: a tick of the state
        clock by the same changes at later calls says nothing about it."""
        if isinstance(entry, Source):
            return entry.place is not None and self.is_written(entry.place)
        read = [source for source in (entry.source, *entry.others) if source is not None]
        if any(self.changes(source) or id(source.value) in self._before for source in read):
            return True
        return entry.looks_into is not None and any(address in entry.looks_into for address in self._before)

    def will_set_item(self, sequence: Any, base: Any, index: int) -> None:
        """The same where only one item of a list or deque is set; all others stay what they were."""
        known = self.items_set.get(id(sequence), set())
        only_items = not self.is_changed(sequence) or bool(known)
        self.will_change(sequence, base)
        if only_items:
            self.items_set[id(sequence)] = {*known, index}

    def will_change(self, container: Any, base: Any) -> None:
        """Keep what a container holds before it is changed for the first time."""
        self.items_set.pop(id(container), None)
        self.states.pop(id(container), None)
        if id(container) in self._before:
            return
        copy = _copied(container, base)
        self._before[id(container)] = (container, copy)
        self._undo.append(lambda: _restore(container, base, copy))

    def mirror(self, container: dict[Any, Any], *set_keys: Any) -> None:
        """Copies of a dict are changed as it was: some keys were set, or keys were deleted."""
        for copy in self.mirrors.get(id(container), ()):
            copy.update({key: container[key] for key in set_keys})
            for key in [key for key in copy if key not in container]:
                del copy[key]

    def undo(self) -> None:
        """Take everything back, the last change first."""
        while self._undo:
            self._undo.pop()()


def _held(container: Any) -> list[Any]:
    if isinstance(container, dict):
        return [*dict.keys(container), *dict.values(container)]
    kinds: tuple[Any, ...] = (list, collections.deque, set)
    return next((list(kind.__iter__(container)) for kind in kinds if isinstance(container, kind)), [])


def _copied(container: Any, base: Any) -> Any:
    if base is collections.deque:
        return collections.deque(collections.deque.__iter__(container), container.maxlen)
    if base is dict:
        is_ordered = type(container) is collections.OrderedDict
        return dict(container.items()) if is_ordered else dict.copy(container)  # which hashes no key
    if base is set:
        return set.copy(container)  # whose order stays as it is, as far as that is possible
    return base(base.__iter__(container))


def _restore(container: Any, base: Any, copy: Any) -> None:
    if base in (list, bytearray):
        base.__setitem__(container, slice(None), copy)
        return
    if type(container) is collections.OrderedDict:
        base = collections.OrderedDict
    base.clear(container)
    if base is collections.deque:
        collections.deque.extend(container, copy)
    else:
        base.update(container, copy)
