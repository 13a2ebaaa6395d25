"""Dicts that report changes, for the attributes of objects whose changes count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class WatchedDict(dict[Any, Any]):
    """A dict that calls ``changed`` of its class after each change. The interpreter's own way of setting attributes
    goes past that, so who holds such a dict as ``__dict__`` tells by itself when one is set. Copies are plain dicts."""

    __slots__ = ()

    @staticmethod
    def changed() -> None:
        """What a change does; subclasses say."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (), None, None, iter(list(self.items()))


def _telling(name: str) -> Callable[..., Any]:
    change = getattr(dict, name)

    def method(self: WatchedDict, *args: Any, **kwargs: Any) -> Any:
        try:
            return change(self, *args, **kwargs)
        finally:  # an update may fail in the middle
            self.changed()

    method.__name__ = name
    return method


for _name in ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(WatchedDict, _name, _telling(_name))
