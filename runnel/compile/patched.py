"""Methods of this package's Modules and optimizers that users have replaced.

A class of ours is known, as long as its methods are ours. Each call checks that those are still the same that the
function calls, and those that are called when a module or an optimizer is used; a class with another method is observed
like a class of the user's.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, Final

from runnel.compile.observe.classes import lookup, mro, namespace
from runnel.compile.observe.recorder import Recorder
from runnel.compile.owned import PACKAGE, users_bases
from runnel.tensor.stateful import Stateful, StatefulTree

_OF_TREES: Final = ("__call__", "forward")
_OF_OTHERS: Final = ("step", "update", "zero_grad")
METHODS: Final = (*_OF_TREES, *_OF_OTHERS)
_OURS: Final[set[FunctionType]] = set()  # methods that were found to be of this package


def is_patched(kind: type) -> bool:
    """Whether a class of ours holds a method of somebody else's."""
    methods = [method for method in list(namespace(kind).values()) if type(method) is FunctionType]
    if _OURS.issuperset(methods):
        return False
    if any(map(_is_foreign, methods)):
        return True
    _OURS.update(methods)
    return False


def _is_foreign(method: Any) -> bool:
    module = getattr(method, "__globals__", {}).get("__name__") or getattr(method, "__module__", "")
    return str(module).partition(".")[0] != PACKAGE


def is_intact(kind: type) -> bool:
    """Whether all classes that such an object is made of are ours, with methods of ours."""
    return not users_bases(kind) and not any(map(is_patched, mro(kind)))


def stays(rec: Recorder, kind: type, name: str) -> None:
    """Later calls must find the same method of a class of ours."""
    method = lookup(kind, name)
    if type(method) is FunctionType and issubclass(kind, Stateful):
        rec.log.check(None, f"{{0}}.{name} is not {{1}}", f"{kind.__name__}.{name}", (kind, method))


def are_intact(structure: tuple[Any, ...]) -> bool:
    """Whether the classes in a structure are intact."""
    return all(map(is_intact, _classes(structure)))


def all_stay(rec: Recorder, structure: tuple[Any, ...]) -> None:
    """Later calls must find the same methods of the classes in a structure."""
    for kind in sorted(_classes(structure), key=lambda kind: kind.__qualname__):
        for name in _OF_TREES if issubclass(kind, StatefulTree) else _OF_OTHERS:
            stays(rec, kind, name)


def _classes(structure: tuple[Any, ...]) -> set[type]:
    return {x for x in structure if isinstance(x, type) and issubclass(x, Stateful)}
