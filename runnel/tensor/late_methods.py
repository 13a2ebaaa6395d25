"""Methods whose modules are imported at their first use."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

from runnel.core.public import loaded, public
from runnel.ops.arguments import gathered

Function = Callable[..., Any]


class LateMethod:
    """The function at ``place``, "module:name", as a method. ``wraps`` say what kind of method, one around the other,
    if it is more than the function with the array as its first argument."""

    __slots__ = ("_function", "_name", "_place", "_wraps")

    def __init__(self, place: str, *wraps: Callable[[str, Function], Function]) -> None:
        self._place = place
        self._wraps = wraps
        self._function: Function | None = None

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        function = self._function
        if function is None:
            function = loaded(self._place)
            for wrap in self._wraps:
                function = public(wrap(self._name, function))
            self._function = function
        return function if instance is None else MethodType(function, instance)


def updating(name: str, function: Function) -> Function:
    """A method that gives its array the value of the function."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.update(name, lambda x: function(x, *args, **kwargs))

    method.__name__ = name
    method.__doc__ = f"Give this array the value of ``{name[:-1]}`` of it and the arguments; returns the array itself."
    return method


def another(name: str, function: Function) -> Function:
    """A method of a function that may give the array itself: the result is another handle."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._other(function(self, *args, **kwargs))

    return method


def spread(name: str, function: Function) -> Function:
    """A method that takes the function's second argument, a sequence, as several arguments, too."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *((gathered(args),) if args else ()), **kwargs)

    return method
