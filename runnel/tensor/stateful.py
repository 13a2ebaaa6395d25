"""The base class of Modules and optimizers: setting an attribute advances the state version.

A program examines such an object again only when the version has changed (``variable.STATE_VERSION``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from runnel.tensor.variable import STATE_VERSION, Variable


class TickingDict(dict[Any, Any]):
    """A dict whose changes advance the state version: the ``__dict__`` of a stateful object, for one.

    The interpreter sets attributes without calling these methods; ``Stateful`` advances the version then. Copies are
    plain dicts.
    """

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (), None, None, iter(list(self.items()))


def _ticking(name: str) -> Callable[..., Any]:
    change = getattr(dict, name)

    def method(self: TickingDict, *args: Any, **kwargs: Any) -> Any:
        try:
            return change(self, *args, **kwargs)
        finally:  # an update may fail in the middle
            STATE_VERSION.now += 1

    method.__name__ = name
    return method


for _name in ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(TickingDict, _name, _ticking(_name))


class Stateful:
    """An object that advances the state version whenever an attribute is set or deleted, also through ``__dict__``.

    Only ``object.__setattr__`` and the methods of ``dict``, called on the object, bypass this.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        instance = object.__new__(cls)
        object.__setattr__(instance, "__dict__", TickingDict())
        return instance

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value if name != "__dict__" else TickingDict(value))
        STATE_VERSION.now += 1

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        STATE_VERSION.now += 1

    def shaping_parts(self) -> list[Any]:
        """Return all that a program depends on of this object: the attributes with their names."""
        return [part for name, item in list(self.__dict__.items()) for part in (item, name)]


class StatefulTree(Stateful):
    """A stateful object that is called, holds others by name, and reserves names for Variables.

    ``named_children``, ``named_modules`` and ``_named_variables`` read the tree below it and nothing else.
    """

    def located(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception:
        """Return the error that a call raises for ``error``, with a note that says where this object is."""
        return error

    def is_reserved_for_state(self, name: str) -> bool:
        """Return whether ``name``, which holds no Variable now, is reserved for one."""
        return False

    def updated_buffer(self, buffer: Variable | None, name: str, value: Any) -> Variable:
        """Return the Variable that holds ``value`` as ``name``: ``buffer`` after an assignment, where possible."""
        raise NotImplementedError
