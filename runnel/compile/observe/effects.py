"""Changes of outside state: recorded with their inverses, undone after the run, and replayed at each call.

A change is applied as ``apply(target, key, value)``. Where possible it is a single call of C code (``call_of``), which
no signal handler can interrupt.
"""

from __future__ import annotations

import collections
import operator
import types
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import repeat
from types import FunctionType
from typing import Any, ClassVar, Final, NamedTuple

from runnel.compile.observe.sources import Check, Place, Source

Call = tuple[Any, ...]  # a function and its arguments


# Kinds of changes -----------------------------------------------------------------------------------------------------


class Direct:
    """A change that is one call."""

    is_of_state: ClassVar[bool] = False  # whether the program advances the state version for it

    def call(self, target: Any, key: Any, value: Any) -> Call:
        """Return the function and its arguments."""
        raise NotImplementedError

    def __call__(self, target: Any, key: Any, value: Any) -> None:
        function, *args = self.call(target, key, value)
        function(*args)


class Setting(Direct):
    """``function(target, key, value)``."""

    def __init__(self, function: Callable[[Any, Any, Any], Any]) -> None:
        self.function = function

    def call(self, target: Any, key: Any, value: Any) -> Call:
        return self.function, target, key, value


class Deleting(Direct):
    """``function(target, key)``."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    def call(self, target: Any, key: Any, value: Any) -> Call:
        return self.function, target, key


class SettingAttribute(Direct):
    """``target.key = value`` without the ``__setattr__`` of the class."""

    def call(self, target: Any, key: Any, value: Any) -> Call:
        return _owner(target, "__setattr__", setattr), target, key, value


class SettingState(SettingAttribute):
    """Set an attribute of a stateful object without its ``__setattr__``, which a signal handler could interrupt."""

    is_of_state = True


class CallingMethod(Direct):
    """``method(target, *args, **kwargs)``; ``value`` is the pair of arguments."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def call(self, target: Any, key: Any, value: Any) -> Call:
        args, kwargs = value
        return (partial(self.method, target, *args, **kwargs),) if kwargs else (self.method, target, *args)


class Printing(Direct):
    """``print(*texts, file=target, **kwargs)``; ``value`` is the pair of arguments. The text is written in one piece
    where the file allows it, because a signal handler may interrupt ``print``."""

    def call(self, target: Any, key: Any, value: Any) -> Call:
        texts, kwargs = value
        given = {name: option for name, option in kwargs.items() if option is not None}
        between, end = given.get("sep", " "), given.get("end", "\n")
        write = getattr(type(target), "write", None)
        is_simple = isinstance(between, str) and isinstance(end, str) and not kwargs.get("flush")
        if not is_simple or type(write) is not types.MethodDescriptorType:
            return (partial(print, *texts, file=target, **kwargs),)
        return write, target, between.join(texts) + end


class SettingAll(Direct):
    """Set the attributes that ``values(target, value)`` returns."""

    def __init__(self, values: Callable[[Any, Any], dict[str, Any]]) -> None:
        self.values = values

    def call(self, target: Any, key: Any, value: Any) -> Call:
        values = self.values(target, value)
        return _CONSUME, map(object.__setattr__, repeat(target), values, values.values())


_CONSUME: Final = deque[Any](maxlen=0).extend
SET_ITEM: Final = Setting(operator.setitem)
DELETE_ITEM: Final = Deleting(operator.delitem)
SET_ATTRIBUTE: Final = SettingAttribute()
SET_CELL: Final = Setting(setattr)


def call_of(apply: Callable[[Any, Any, Any], Any], target: Any, key: Any, value: Any) -> Call:
    """Return a change as a call."""
    return apply.call(target, key, value) if isinstance(apply, Direct) else (apply, target, key, value)


def _owner(target: Any, name: str, otherwise: Any) -> Any:
    if issubclass(type(target), type):
        return getattr(type, name)
    return otherwise if type(target) in (types.ModuleType, FunctionType) else getattr(object, name)


# The changes of a run -------------------------------------------------------------------------------------------------


class Effect(NamedTuple):
    """A change. Later calls replace ``value`` by their value."""

    apply: Callable[[Any, Any, Any], Any]
    target: Any
    key: Any
    value: Any
    label: str
    shows: bool = False  # whether it shows texts, in which a tensor may have no value yet


class Effects:
    """The changes of one run in order, and what undoes them."""

    def __init__(self) -> None:
        self.done: list[Effect] = []
        self._undo: list[Callable[[], Any]] = []
        self._before: dict[int, tuple[Any, Any]] = {}  # containers, and copies of their first content
        self.written: set[tuple[int, Any]] = set()  # (id of a container or object, key) that holds the run's own value
        self.replaced: set[int] = set()  # containers whose whole content is the run's own
        self.appended: dict[int, int] = {}  # lists that only grew, and by how many items
        self.items_set: dict[int, set[int]] = {}  # sequences of which only these items were set
        self.mirrors: dict[int, list[dict[Any, Any]]] = {}  # copies of dicts that the run iterates over

    def record(self, apply: Callable[[Any, Any, Any], Any], target: Any, key: Any, value: Any, label: str) -> None:
        """Note a change that has been made."""
        self.done.append(Effect(apply, target, key, value, label))

    def show(self, apply: Callable[[Any, Any, Any], Any], target: Any, texts: Any, label: str) -> None:
        """Note texts that are shown."""
        self.done.append(Effect(apply, target, None, texts, label, shows=True))

    def replace_last(self, apply: Callable[[Any, Any, Any], Any]) -> None:
        """Replace how later calls make the last change."""
        self.done[-1] = self.done[-1]._replace(apply=apply)

    def lasting(self) -> list[Effect]:
        """Return the changes without values that the run itself replaced. An attribute gets its last value at the place
        of the first change, so that attributes keep their order."""
        last = {(id(e.target), e.key): e.value for e in self.done if e.apply is SET_ATTRIBUTE}
        return [e._replace(value=last[id(e.target), e.key]) if e.apply is SET_ATTRIBUTE else e for e in self.done]

    def undo_by(self, action: Callable[[], Any]) -> None:
        """Register what undoes the change that is about to be made."""
        self._undo.append(action)

    def released(self) -> list[Any]:
        """Return what containers held before the run and do not hold now."""
        gone: list[Any] = []
        for container, before in self._before.values():
            now = set(map(id, _held(container)))
            gone += [value for value in _held(before) if id(value) not in now and type(value) not in _WITHOUT_CODE]
        return gone

    def before(self, container: Any) -> Any:
        """Return what a container held when the run began."""
        entry = self._before.get(id(container))
        return container if entry is None else entry[1]

    def is_written(self, place: Place) -> bool:
        """Return whether the run has changed one place of a container."""
        return place in self.written or place[0] in self.replaced

    def is_changed(self, container: Any) -> bool:
        """Return whether the run has changed a container."""
        return id(container) in self._before

    def changes(self, entry: Source | Check) -> bool:
        """Return whether a read or check depends on what the run changed. Then the state version, which those changes
        advance at each call, says nothing about it."""
        if isinstance(entry, Source):
            return entry.place is not None and self.is_written(entry.place)
        read = [source for source in (entry.source, *entry.others) if source is not None]
        if any(self.changes(source) or id(source.value) in self._before for source in read):
            return True
        return entry.looks_into is not None and any(address in entry.looks_into for address in self._before)

    def will_set_item(self, sequence: Any, base: Any, index: int) -> None:
        """Prepare to set one item of a list or deque."""
        known = self.items_set.get(id(sequence), set())
        only_items = not self.is_changed(sequence) or bool(known)
        self.will_change(sequence, base)
        if only_items:
            self.items_set[id(sequence)] = {*known, index}

    def will_change(self, container: Any, base: Any) -> None:
        """Copy the content of a container before its first change."""
        self.items_set.pop(id(container), None)
        if id(container) in self._before:
            return
        copy = _copied(container, base)
        self._before[id(container)] = (container, copy)
        self._undo.append(lambda: _restore(container, base, copy))

    def mirror(self, container: dict[Any, Any], *set_keys: Any) -> None:
        """Repeat a change of a dict in the copies that the run iterates over."""
        for copy in self.mirrors.get(id(container), ()):
            copy.update({key: container[key] for key in set_keys})
            for key in [key for key in copy if key not in container]:
                del copy[key]

    def undo(self) -> None:
        """Undo everything, the last change first."""
        while self._undo:
            self._undo.pop()()


_WITHOUT_CODE: Final = (int, float, bool, complex, str, bytes, type(None), type)


def _held(container: Any) -> list[Any]:
    if issubclass(type(container), dict):
        return [*dict.keys(container), *dict.values(container)]
    return next(list(kind.__iter__(container)) for kind in (list, deque, set) if issubclass(type(container), kind))


def _copied(container: Any, base: Any) -> Any:
    if base is deque:
        return deque(deque.__iter__(container), container.maxlen)
    if base is dict:
        is_ordered = type(container) is collections.OrderedDict
        return dict(container.items()) if is_ordered else dict.copy(container)  # which hashes no key
    if base is set:
        return set.copy(container)  # which keeps the order as far as possible
    return base(base.__iter__(container))


def _restore(container: Any, base: Any, copy: Any) -> None:
    if base is list:
        list.__setitem__(container, slice(None), copy)
        return
    if type(container) is collections.OrderedDict:
        base = collections.OrderedDict
    base.clear(container)
    if base is deque:
        deque.extend(container, copy)
    else:
        base.update(container, copy)
