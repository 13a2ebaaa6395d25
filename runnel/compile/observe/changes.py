"""Changes of outside state as single calls of C code where possible, so that no signal handler can interrupt them.

A change is applied as ``change(target, key, value)``, which calls what ``change.call`` gives.
"""

from __future__ import annotations

import operator
import types
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import repeat
from types import FunctionType
from typing import Any, ClassVar, Final

Call = tuple[Any, ...]  # a function and its arguments


class Direct:
    """A change that is one call."""

    is_of_state: ClassVar[bool] = False  # whether it is one of state whose version the program advances when it is done

    def call(self, target: Any, key: Any, value: Any) -> Call:
        """The function and its arguments."""
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
    """``target.key = value``, past the class's own ``__setattr__``."""

    def call(self, target: Any, key: Any, value: Any) -> Call:
        return _owner(target, "__setattr__", setattr), target, key, value


class DeletingAttribute(Direct):
    """``del target.key``, past the class's own ``__delattr__``."""

    def call(self, target: Any, key: Any, value: Any) -> Call:
        return _owner(target, "__delattr__", delattr), target, key


class SettingState(SettingAttribute):
    """The same of a stateful object, past its own ``__setattr__``: a signal handler could interrupt that."""

    is_of_state = True


class DeletingState(DeletingAttribute):
    """The same of a stateful object."""

    is_of_state = True


class CallingMethod(Direct):
    """``method(target, *args, **kwargs)``; ``value`` holds both."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def call(self, target: Any, key: Any, value: Any) -> Call:
        args, kwargs = value
        return (partial(self.method, target, *args, **kwargs),) if kwargs else (self.method, target, *args)


class Printing(Direct):
    """``print(*texts, file=target, **kwargs)``; ``value`` holds both. A signal handler may interrupt ``print``, and no
    ``write`` of C code."""

    def call(self, target: Any, key: Any, value: Any) -> Call:
        texts, kwargs = value
        given = {name: option for name, option in kwargs.items() if option is not None}
        between, end = given.get("sep", " "), given.get("end", "\n")
        write = getattr(type(target), "write", None)
        is_plain = isinstance(between, str) and isinstance(end, str) and not kwargs.get("flush")
        if not is_plain or type(write) is not types.MethodDescriptorType:
            return (partial(print, *texts, file=target, **kwargs),)
        return write, target, between.join(texts) + end


class SettingAll(Direct):
    """What ``values(target, value)`` gives is set on the target, attribute by attribute."""

    def __init__(self, values: Callable[[Any, Any], dict[str, Any]]) -> None:
        self.values = values

    def call(self, target: Any, key: Any, value: Any) -> Call:
        values = self.values(target, value)
        return _CONSUME, map(object.__setattr__, repeat(target), values, values.values())


_CONSUME: Final = deque[Any](maxlen=0).extend
SET_ITEM: Final = Setting(operator.setitem)
DELETE_ITEM: Final = Deleting(operator.delitem)
SET_ATTRIBUTE: Final = SettingAttribute()
DELETE_ATTRIBUTE: Final = DeletingAttribute()


def call_of(apply: Callable[[Any, Any, Any], Any], target: Any, key: Any, value: Any) -> Call:
    """A change as a call."""
    return apply.call(target, key, value) if isinstance(apply, Direct) else (apply, target, key, value)


class Later(Iterator[Call]):
    """Calls that are made out only when their turn comes. What breaks in while one is made out has not begun it: the
    next ``next`` gives it."""

    def __init__(self, makers: list[Callable[[], Call]]) -> None:
        self._makers = makers
        self._begun = 0

    def __next__(self) -> Call:
        if self._begun == len(self._makers):
            raise StopIteration
        call = self._makers[self._begun]()
        self._begun += 1
        return call


def _owner(target: Any, name: str, otherwise: Any) -> Any:
    if issubclass(type(target), type):
        return getattr(type, name)
    return otherwise if type(target) in (types.ModuleType, FunctionType) else getattr(object, name)
