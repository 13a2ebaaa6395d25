"""Namespaces: modules whose names are data.

A namespace is a dictionary ``NAMES`` in its own file, from each name to the place of what it names: ``"module:name"``,
or ``"module"``. A name whose module is imported already is an attribute of the namespace from the start, also of one
that forwards to it; any other one imports its module when it is first asked for.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final, NamedTuple

from runnel.core import tracebacks
from runnel.core.missing import missing
from runnel.core.public import offered


class Namespace(NamedTuple):
    """The names of a module. ``forwards`` are modules whose names it has as well, unless ``names`` has the name;
    ``elsewhere`` are modules that the message about a missing name points to."""

    names: Mapping[str, str]
    forwards: tuple[str, ...]
    elsewhere: tuple[str, ...]
    is_checked: bool
    found: dict[str, Any]  # what has been asked for


_SPACES: Final[dict[str, Namespace]] = {}


def namespace(
    module: str,
    names: Mapping[str, str],
    *,
    forwards: tuple[str, ...] = (),
    elsewhere: tuple[str, ...] = (),
    checked: bool = True,
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a namespace.

    Args:
        module: the name of the namespace's module.
        names: the place of each name.
        forwards: modules whose names the namespace has as well.
        elsewhere: modules that the message about a missing name points to, the first that has it.
        checked: whether functions are offered in their public form, which explains errors.
    """
    space = _SPACES[module] = Namespace(names, forwards, elsewhere, checked, {})
    members = vars(sys.modules[module])
    for name, place in names.items():
        holder, _, member = place.partition(":")
        loaded = sys.modules.get(holder)
        if loaded is not None and member in vars(loaded):
            members[name] = _looked_up(module, space, name)
    taken = set(names)
    for source in forwards:
        if source not in _SPACES or _SPACES[source].forwards:  # its names are not known yet
            break
        there, offers = vars(sys.modules[source]), _SPACES[source].names.keys()
        members |= {name: there[name] for name in offers & there.keys() - taken if name not in members}
        taken |= offers

    def getattr_of_module(name: str) -> Any:  # holds nothing that changes, so that capture has nothing to watch
        found = _SPACES[module].found
        try:
            if name not in found:
                found[name] = _looked_up(module, _SPACES[module], name)
        except Exception as error:
            tracebacks.end_at_user(error)
            raise
        return found[name]

    def dir_of_module() -> list[str]:
        shown = {n for n, v in vars(sys.modules[module]).items() if n[0] == "_" or isinstance(v, ModuleType)}
        return sorted(shown | names_of(module))

    return list(names), getattr_of_module, dir_of_module


def _looked_up(module: str, space: Namespace, name: str) -> Any:
    """Return what a namespace has under ``name``; AttributeError with a remedy if it has no such name."""
    if name in space.names:
        value = imported(space.names[name])
        return offered(module, name, value) if space.is_checked else value
    if space.forwards:
        if name == "__all__":
            return sorted(names_of(module))
        for source in space.forwards:
            if name in names_of(source):
                return getattr(sys.modules[source], name)
    raise missing(
        module,
        name,
        lambda: names_of(module),
        lambda: next((f"{other}.{name}" for other in space.elsewhere if name in names_of(other)), ""),
    )


def names_of(module: str) -> set[str]:
    """Return the names that a module offers; no names if there is no such module."""
    if module not in _SPACES:
        if importlib.util.find_spec(module) is None:
            return set()
        members = vars(importlib.import_module(module))
        if module not in _SPACES:
            own = {n for n, v in members.items() if n[0] != "_" and getattr(v, "__module__", None) == module}
            return own.union(members.get("__all__", ()))
    space = _SPACES[module]
    return {*space.names}.union(*map(names_of, space.forwards))


def imported(place: str) -> Any:
    """Return what ``"module:name"`` or ``"module"`` names; import the module if need be."""
    module, _, name = place.partition(":")
    loaded = importlib.import_module(module)
    return getattr(loaded, name) if name else loaded


def late(place: str) -> Callable[..., Any]:
    """Return the function at ``place`` as one that imports its module at the first call."""
    found = functools.cache(lambda: imported(place))
    return lambda *args: found()(*args)
