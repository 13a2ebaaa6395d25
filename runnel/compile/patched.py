"""Methods of this package's classes that users have replaced, and such as they have added to tensors.

A class of ours is known, as long as its methods are ours. Each call checks that those are still the same that the
function calls, and those that are called when a module or an optimizer is used; a class with another method is observed
like a class of the user's.
"""

from __future__ import annotations

from functools import partial
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

from runnel.compile.observe.classes import MISSING, is_python_class, lookup, mro, namespace
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import container_of
from runnel.compile.owned import PACKAGE, is_own, users_bases
from runnel.tensor.stateful import Stateful, StatefulTree

_OF_TREES: Final = ("__call__", "forward")
_OF_OTHERS: Final = ("step", "update", "zero_grad")
METHODS: Final = (*_OF_TREES, *_OF_OTHERS)
_WRAPPERS: Final[dict[type, str]] = {property: "fget", staticmethod: "__func__", classmethod: "__func__"}
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


def found_in(rec: Recorder, kind: type, name: str) -> Any:
    """What a class of ours holds under a name, MISSING where it holds nothing. Later calls must find the same."""
    found = lookup(kind, name)
    if found is MISSING:
        rec.log.check(None, f"hasattr({{0}}, {name!r})", f"{kind.__name__}.{name}", (kind,))
    elif name.isidentifier() and not _is_part(kind, name, found):
        if getattr(kind, name, MISSING) is found:
            rec.log.check(None, f"{{0}}.{name} is not {{1}}", f"{kind.__name__}.{name}", (kind, found))
        elif is_foreign(found):
            fails = f"{{0}}({{1}}, {name!r}) is not {{2}}"
            rec.log.check(None, fails, f"{kind.__name__}.{name}", (lookup, kind, found))
    return found


def foreign_source(rec: Recorder, kind: type, name: str, found: Any) -> Source | None:
    """Where later calls find what a class of ours was given under a name; None for what is ours."""
    if not is_foreign(found):
        return None
    return rec.log.source(None, f"{{0}}({{1}}, {name!r})", f"{kind.__name__}.{name}", found, (lookup, kind))


def is_foreign(found: Any) -> bool:
    """Whether what a class of ours holds is somebody else's."""
    if type(found) in _WRAPPERS:
        found = getattr(found, _WRAPPERS[type(found)])
    if type(found) is FunctionType:
        return _is_foreign(found)
    if container_of(type(found)) is not None or type(found) is partial:
        return True
    return is_python_class(type(found)) and not is_own(type(found))


def _is_part(kind: type, name: str, found: Any) -> bool:
    """Whether it reads a part of an object, or is what such a part is at first: what it gives is what matters."""
    if is_own(type(found)) or isinstance(found, (GetSetDescriptorType, MemberDescriptorType)):
        return True
    return any(name in namespace(base).get("__annotations__", ()) for base in mro(kind) if is_own(base))


def are_intact(structure: tuple[Any, ...]) -> bool:
    """Whether the classes in a structure are intact."""
    return all(map(is_intact, _classes(structure)))


def all_stay(rec: Recorder, structure: tuple[Any, ...]) -> None:
    """Later calls must find the same methods of the classes in a structure."""
    for kind in sorted(_classes(structure), key=lambda kind: kind.__qualname__):
        for name in _OF_TREES if issubclass(kind, StatefulTree) else _OF_OTHERS:
            if lookup(kind, name) is not MISSING:
                found_in(rec, kind, name)


def _classes(structure: tuple[Any, ...]) -> set[type]:
    return {x for x in structure if isinstance(x, type) and issubclass(x, Stateful)}
