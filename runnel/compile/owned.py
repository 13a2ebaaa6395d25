"""The structure of Runnel's own objects (layers, optimizers, generators) as one comparable value for guards.

The code of such an object runs unobserved, and its state is known: everything it holds is part of one value, its
*structure*, that a guard compares. An object that holds things of the user's has none, and its code runs observed.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import types
import weakref
from collections import OrderedDict, deque
from typing import Any, Final, Generic

import numpy as np

from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import (
    CONTAINERS,
    MISSING,
    PLAIN,
    is_class,
    is_empty,
    is_python_class,
    lookup,
    mro,
    namespace,
)
from runnel.compile.wrappers import Wrapper
from runnel.core import pytree
from runnel.core.dtypes import DType
from runnel.core.functions import FunctionLike
from runnel.core.lifetime import ByIdentity
from runnel.tensor.floats import RunTimeNumbers, is_traceable
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.stateful import Stateful, StatefulTree
from runnel.tensor.variable import Variable

PACKAGE: Final = __name__.partition(".")[0]
_OWN: Final[ByIdentity[type, bool]] = ByIdentity()
_ADVANCES_VERSION: Final[ByIdentity[type, bool]] = ByIdentity()
_EXTENDS: Final[ByIdentity[type, bool]] = ByIdentity()


def is_own(kind: type) -> bool:
    """Return whether a class belongs to this package, and is not a user's subclass."""
    return _OWN.setdefault(kind, lambda: str(kind.__module__).partition(".")[0] == PACKAGE)


def advances_version(kind: type) -> bool:
    """Return whether setting an attribute of such an object advances the state version (Modules and optimizers)."""
    return _ADVANCES_VERSION.setdefault(
        kind, lambda: issubclass(kind, Stateful) and not any("__setattr__" in c.__dict__ for c in users_bases(kind))
    )


def require_own(rec: Recorder, kind: type, name: str) -> Any:
    """Return what a class of Runnel holds under a name, or MISSING. Later calls must find the same. A method that
    somebody else has given to the class ends the observation: classes of Runnel are closed."""
    found = lookup(kind, name)
    if found is MISSING:
        if not hasattr(type, name):
            rec.log.check(None, f"hasattr({{0}}, {name!r})", f"{kind.__name__}.{name}", (kind,))
    elif _is_part(kind, name, found) or name == "__annotations__" or found is object.__getattribute__:
        return found
    elif _is_foreign(found):
        rec.refuse(
            f"{kind.__name__}.{name} is not Runnel's own method",
            "give the method to a subclass, or write a function: compiled functions need Runnel's classes as they are",
        )
    elif name.isidentifier() and getattr(kind, name, MISSING) is found:
        rec.log.check(None, f"{{0}}.{name} is not {{1}}", f"{kind.__name__}.{name}", (kind, found))
    return found


def is_own_module(name: str) -> bool:
    """Return whether code of a module is this package's, or Python's, as decorators and generated methods are."""
    top = name.partition(".")[0]
    return top == PACKAGE or (top in sys.stdlib_module_names and top != "__main__")


_WRAPPERS: Final[dict[type, str]] = {property: "fget", staticmethod: "__func__", classmethod: "__func__"}


def _is_foreign(found: Any) -> bool:
    """Return whether what a class of Runnel holds is somebody else's."""
    if type(found) in _WRAPPERS:
        found = getattr(found, _WRAPPERS[type(found)])
    if type(found) is types.FunctionType:
        return not is_own_module(str(found.__globals__.get("__name__")))
    if type(found) in (list, dict, set, deque, functools.partial):
        return True
    return is_python_class(type(found)) and not is_own(type(found))


def _is_part(kind: type, name: str, found: Any) -> bool:
    """Return whether an attribute of a class reads a part of an object, whose value matters."""
    if is_own(type(found)) or isinstance(found, (types.GetSetDescriptorType, types.MemberDescriptorType)):
        return True
    if type(found) in PLAIN:
        return False
    return any(name in namespace(base).get("__annotations__", ()) for base in mro(kind) if is_own(base))


_CALLED_INSIDE: Final = ("__call__", "forward", "training"), ("step", "update", "zero_grad")
METHODS: Final = (*sum(_CALLED_INSIDE, ()), "update_all")


def require_own_methods(rec: Recorder, structure: tuple[Any, ...]) -> None:
    """Check the methods that Runnel's own code calls of the Modules and optimizers in a structure."""
    kinds = {x for x in structure if isinstance(x, type) and issubclass(x, Stateful)}
    for kind in sorted(kinds, key=lambda kind: kind.__qualname__):
        for name in _CALLED_INSIDE[not issubclass(kind, StatefulTree)]:
            if lookup(kind, name) is not MISSING:
                require_own(rec, kind, name)


def users_bases(kind: type) -> list[type]:
    """Return the user's classes among the bases of a class."""
    return [c for c in kind.__mro__ if c not in (object, Generic) and not is_own(c)]


def runs_users(value: Any) -> bool:
    """Return whether functions of ours may call the user's through a value: a class of the user's that extends one of
    ours, such as ``autograd.Function``, an object of one, or an object of ours that holds one."""
    visited: set[int] = set()
    waiting = [value]
    while waiting:
        now = waiting.pop()
        kind = type(now)
        if kind in PLAIN or is_traceable(kind) or id(now) in visited:
            continue
        visited.add(id(now))
        if is_class(now) and now is value and _extends(now):
            return True
        if _extends(kind):
            return True
        if kind in (list, tuple):
            waiting += now
        elif is_plain_object(kind):
            waiting += getattr(now, "__dict__", {}).values()
    return False


def is_plain_object(kind: type) -> bool:
    """Return whether objects of a class of ours are made of their attributes alone: distributions, for one."""
    special = (Stateful, ArrayMethods, FunctionLike, Wrapper, type, BaseException)
    return is_own(kind) and not issubclass(kind, special) and not is_scheduler(kind)


def is_scheduler(kind: type) -> bool:
    """Return whether a class of Runnel, or one that extends it, sets the rates of an optimizer."""
    return hasattr(kind, "get_last_lr") and any(map(is_own, kind.__mro__))


def _extends(kind: type) -> bool:
    return _EXTENDS.setdefault(kind, lambda: _is_extension(kind))


def _is_extension(kind: type) -> bool:
    """Not of what programs know otherwise: Modules, optimizers and their kin, arrays, trees, and errors."""
    if is_own(kind) or not is_python_class(kind) or issubclass(kind, (ArrayMethods, BaseException, *CONTAINERS)):
        return False
    is_tree = dataclasses.is_dataclass(kind) or pytree.is_registered(kind)
    return any(map(is_own, kind.__mro__)) and not (is_tree or issubclass(kind, Stateful) or is_scheduler(kind))


class Foreign(Exception):
    """Something of the user's hangs on the object."""


def structure(value: Any, looked_into: set[int] | None = None) -> tuple[Any, ...] | None:
    """Return all that an object of Runnel's holds as one comparable value, or None if it holds anything of the user's.
    ``looked_into`` gets the addresses of all objects that it looked into, and of their dicts of attributes."""
    entries: list[Any] = []
    try:
        _walk(value, entries, set() if looked_into is None else looked_into)
    except Foreign:
        return None
    return tuple(entries)


def parts_of(value: Stateful, looked_into: set[int] | None = None) -> tuple[Any, ...] | None:
    """Return the structure of Runnel's parts of an object of a user's class; None if they hold the user's objects."""
    entries: list[Any] = []
    visited = set() if looked_into is None else looked_into
    visited.add(id(value.__dict__))
    try:
        _walk(_parts(value), entries, visited)
    except Foreign:
        return None
    return tuple(entries)


def _walk(value: Any, entries: list[Any], visited: set[int]) -> None:
    """Append what ``value`` is, and what hangs on it. A loop, however deep things hang on one another."""
    waiting = [value]
    while waiting:
        now = waiting.pop()
        kind = type(now)
        if kind in PLAIN:
            entries.append((kind, repr(now) if kind in (float, complex) else now))
            continue
        if issubclass(kind, Variable):
            entries.append((id(now), now.requires_grad))
            continue
        if id(now) in visited or kind in _KNOWN_BY_IDENTITY or issubclass(kind, DType):
            entries.append(id(now))
            continue
        visited.add(id(now))
        entries.append(kind)
        if kind in (list, tuple, deque) or (issubclass(kind, tuple) and is_own(kind)):
            entries.append(len(now))
            waiting.extend(now)
        elif kind in (dict, OrderedDict):
            entries.append(len(now))
            for key, item in list(now.items()):
                waiting += (item, key)
        elif kind in (set, frozenset):
            entries.append(tuple(sorted(map(id, now))))
        elif kind is slice:
            waiting += (now.start, now.stop, now.step)
        elif issubclass(kind, type):
            _require_own(now)
            entries.append(id(now))
        elif kind is types.FunctionType:
            _require_own(now)
            entries.append((id(now), id(now.__code__)))
            waiting += [cell.cell_contents for cell in now.__closure__ or () if not is_empty(cell)]
        elif kind is types.MethodType:
            waiting += (now.__func__, now.__self__)
        elif kind is weakref.ref:
            entries.append(id(now()))
        elif is_own(kind) and not issubclass(kind, ArrayMethods):
            visited.add(id(getattr(now, "__dict__", None)))
            waiting += _parts(now)
        elif _is_users(kind):
            raise Foreign
        else:
            entries.append(id(now))


def _require_own(thing: Any) -> None:
    module = thing.__globals__.get("__name__") if type(thing) is types.FunctionType else thing.__module__
    if str(module).partition(".")[0] not in (PACKAGE, "builtins"):
        raise Foreign


def _is_users(kind: type) -> bool:
    """Return whether an object may look into or call the user's objects, or is an array."""
    if issubclass(kind, (ArrayMethods, np.ndarray, functools.partial)):
        return True
    top = str(kind.__module__).partition(".")[0]
    return top == "__main__" or top not in sys.stdlib_module_names


def _parts(value: Any) -> list[Any]:
    """Return what a program depends on of an object of ours: what it says, or its attributes with their names."""
    if isinstance(value, Stateful):
        return type(value).shaping_parts(value)
    is_numbers = isinstance(value, RunTimeNumbers)
    parts: list[Any] = [value.shapes()] if is_numbers else []
    for name, item in list(getattr(value, "__dict__", {}).items()):
        parts += (item, name)
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and not (is_numbers and name == "plain"):
                parts += (getattr(value, name, None), name)
    return parts


_KNOWN_BY_IDENTITY: Final = (types.ModuleType, types.BuiltinFunctionType, np.dtype, np.ufunc)


def tree(module: Any, looked_into: dict[int, Any] | None = None) -> tuple[Any, ...]:
    """Return the Modules and Variables below a Module, with their names, which ``parameters()`` and its kin look at.
    ``looked_into`` gets the Modules by the addresses of their dicts of attributes."""
    entries: list[Any] = []
    visited: set[int] = set()
    into = {} if looked_into is None else looked_into
    waiting = [module]
    while waiting:
        now = waiting.pop()
        entries.append(id(now))
        if id(now) in visited:
            continue
        visited.add(id(now))
        into[id(now.__dict__)] = now
        for name, item in list(now.__dict__.items()):
            if isinstance(item, Variable):
                entries.append((name, id(item), item.requires_grad))
            elif isinstance(item, StatefulTree):
                entries.append(name)
                waiting.append(item)
    return tuple(entries)


def holds_state(module: Any, name: str) -> bool:
    """Return whether a name of a Module is, or is kept for, a Parameter or buffer."""
    if isinstance(module.__dict__.get(name), Variable):
        return True
    return isinstance(module, StatefulTree) and module.is_reserved_for_state(name)


def reads_outside(function: Any) -> bool:
    """Return whether a function of a registered class, which runs unobserved, reads what may change."""
    function = getattr(function, "__func__", function)
    if type(function) is not types.FunctionType:
        return True
    if is_own_module(str(function.__module__)):
        return False
    names = [name for name in function.__code__.co_names if name in function.__globals__]
    known = (types.FunctionType, types.ModuleType, type)
    return bool(function.__closure__) or not all(isinstance(function.__globals__[name], known) for name in names)


def stored_names(value: Any) -> list[str]:
    """Return the attributes that an object holds itself, in its dict or in slots."""
    slots = [
        name
        for kind in type(value).__mro__
        for name, member in vars(kind).items()
        if type(member) is types.MemberDescriptorType and hasattr(value, name)
    ]
    return [*getattr(value, "__dict__", ()), *slots]
