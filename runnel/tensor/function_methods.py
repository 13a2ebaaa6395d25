"""The methods of Tensor and Variable that call functions of arrays: attached from a list of places."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Mapping
from types import MethodType
from typing import Any, Generic, Self, TypeVar

from runnel.core import public
from runnel.core.dispatch import TensorLike
from runnel.core.namespaces import imported
from runnel.ops.arguments import gathered

Function = Callable[..., Any]
ResultT = TypeVar("ResultT", bound=TensorLike)


class FunctionMethods(TensorLike, Generic[ResultT]):
    """Functions of an array as its methods."""

    __slots__ = ()

    def update(self, name: str, change: Callable[[Any], Any]) -> Self:
        """Give this array the value that ``change`` makes of its present one. ``name`` is for messages."""
        raise NotImplementedError

    def _other(self, view: Any) -> Any:
        """Return ``view`` as a handle that is not this one, so that writing to it leaves this one."""
        raise NotImplementedError


class LateMethod:
    """The function at ``place``, "module:name", as a method that imports the module at its first use. ``wraps`` say
    what kind of method, one around the other, if it is more than the function with the array as its first argument."""

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
            function = self._function = _wrapped(self._name, imported(self._place), self._wraps)
        return function if instance is None else MethodType(function, instance)


def _wrapped(name: str, function: Function, wraps: tuple[Callable[[str, Function], Function], ...]) -> Function:
    for wrap in wraps:
        function = wrap(name, function)
    return public.method(name, function)


def attach(
    places: Mapping[str, str],
    in_place_only: Mapping[str, str],
    in_place: Collection[str],
    views: Collection[str],
    spread: Collection[str],
) -> None:
    """Give FunctionMethods its methods: the data of ``runnel.methods``."""
    for name, place in places.items():
        _attach(name, place, [*([_spread] if name in spread else []), *([_another] if name in views else [])])
    for name in in_place:
        _attach(f"{name}_", places[name], [_updating])
    for name, place in in_place_only.items():
        _attach(name, place, [_updating])


def _attach(name: str, place: str, wraps: list[Callable[[str, Function], Function]]) -> None:
    module, _, member = place.partition(":")
    loaded = sys.modules.get(module)
    if loaded is not None:
        setattr(FunctionMethods, name, _wrapped(name, getattr(loaded, member), tuple(wraps)))
        return
    method = LateMethod(place, *wraps)
    method.__set_name__(FunctionMethods, name)
    setattr(FunctionMethods, name, method)


def _updating(name: str, function: Function) -> Function:
    """Return a method that assigns the function's value to its array."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.update(name, lambda x: function(x, *args, **kwargs))

    method.__name__ = name
    method.__doc__ = f"Give this array the value of ``{name[:-1]}`` of it and the arguments; returns the array itself."
    return method


def _another(name: str, function: Function) -> Function:
    """Return the method of a function that may return the array itself; the method returns another handle."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._other(function(self, *args, **kwargs))

    return method


def _spread(name: str, function: Function) -> Function:
    """Return a method that also takes the function's second argument, a sequence, as several arguments."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *((gathered(args),) if args else ()), **kwargs)

    return method
