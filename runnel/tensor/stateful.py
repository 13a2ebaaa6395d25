"""The base class of Modules and optimizers: setting an attribute advances the state version.

Programs look at such an object again only when the version has changed. ``STATE_VERSION`` itself is in ``variable.py``.
"""

from __future__ import annotations

from typing import Any, Self

from runnel.core.watched import WatchedDict
from runnel.tensor.variable import STATE_VERSION, Variable


class TickingDict(WatchedDict):
    """A dict that advances the state version when it is changed: the ``__dict__`` of a stateful object, for one."""

    __slots__ = ()

    @staticmethod
    def changed() -> None:
        STATE_VERSION.now += 1


class Stateful:
    """An object that advances the state version whenever one of its attributes is set or deleted, through its
    ``__dict__`` too. (``object.__setattr__`` alone goes past that.)"""

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


class StatefulTree(Stateful):
    """A stateful object that is called, holds others of its kind by name, and keeps names for Variables."""

    def located(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception:
        """The error that a call ends with for ``error``: with a note that says where this object is."""
        return error

    def is_reserved_for_state(self, name: str) -> bool:
        """Whether ``name``, which holds no Variable now, is there for one."""
        return False

    def updated_buffer(self, buffer: Variable | None, name: str, value: Any) -> Variable:
        """The Variable that holds ``value`` as ``name``: ``buffer``, assigned, where it can."""
        raise NotImplementedError
