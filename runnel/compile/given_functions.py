"""Functions that programs run or call: branches of ``rn.cond`` and host calls (``rn.pure_callback``, ``rn.debug``).

Both branches of ``rn.cond`` are traced, and a program runs one of them at each call. Nothing that Python changes in
them can be repeated, neither outside nor in containers that the run made: such a function runs eagerly.

A host call runs with the program, unobserved. The program depends on which function it is. One that was made inside the
compiled function keeps the numbers it closes over, which are checked, and objects from outside; a tensor of the
compiled function would have no value when it runs.
"""

from __future__ import annotations

import types
from collections import deque
from types import CellType, FunctionType, MethodType
from typing import Any, Final

from runnel.compile import boundary
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import PLAIN, SYMBOLIC, instance_dict, is_python_class
from runnel.compile.wrappers import Uncompiled
from runnel.core.errors import CaptureError
from runnel.tensor import callbacks
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.stateful import Stateful
from runnel.transforms.control import cond

Held = dict[int, tuple[Any, tuple[int, ...]]]  # containers by id, with the ids of their parts
_COND: Final = getattr(cond, "__wrapped__", cond)
_HOST_CALLS: Final = (callbacks.pure_callback, callbacks.callback)
_MUTABLE: Final = (list, dict, set, deque)


def is_cond(function: Any) -> bool:
    """Return whether a function is ``rn.cond``."""
    return getattr(function, "__wrapped__", function) is _COND


def is_host_call(function: Any) -> bool:
    """Return whether the first argument of a function is one that programs call."""
    return getattr(function, "__wrapped__", function) in _HOST_CALLS


# Branches -------------------------------------------------------------------------------------------------------------


def call_cond(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``rn.cond``, and refuse a branch that changes something."""
    predicate = args[0] if args else kwargs.get("predicate")
    if not isinstance(predicate, ArrayMethods):
        return boundary.run(rec, function, args, kwargs)
    branches = [*args[1:3], *[kwargs[name] for name in ("true_fn", "false_fn") if name in kwargs]]
    changes, before = len(rec.effects.done), _held(rec, branches)
    result = boundary.run(rec, function, args, kwargs)
    if len(rec.effects.done) != changes or _is_changed(before, _held(rec, branches)):
        rec.refuse(
            "a function that was given to cond changes something, and whether it runs is known only when the program "
            "runs",
            "return what it makes, and keep it after cond",
        )
    return result


def _is_changed(before: Held, now: Held) -> bool:
    """Return whether a container that the run made has other parts. Changes of containers from outside are effects."""
    return any(key in now and now[key][1] != parts for key, (_, parts) in before.items())


def _held(rec: Recorder, functions: list[Any]) -> Held:
    """Return what the variables and containers of the run hold that functions can reach."""
    entries: Held = {}
    waiting, visited = list(functions), set()
    while waiting:
        now = waiting.pop()
        if id(now) in visited or isinstance(now, ArrayMethods):
            continue
        visited.add(id(now))
        parts = _parts(now)
        if parts is not None and (type(now) in (FunctionType, MethodType) or rec.source_of(now) is None):
            entries[id(now)] = now, tuple(map(id, parts))
            waiting += parts
    return entries


def _parts(value: Any) -> list[Any] | None:
    """Return the parts of a value that can be changed, and None for other values."""
    kind = type(value)
    if kind is FunctionType:
        return [*(value.__closure__ or ()), *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if kind is MethodType:
        return [value.__func__, value.__self__]
    if kind is CellType:
        try:
            return [value.cell_contents]
        except ValueError:
            return []
    if issubclass(kind, (*_MUTABLE, tuple)):
        return [*value.keys(), *value.values()] if issubclass(kind, dict) else list(value)
    if is_python_class(kind) and not issubclass(kind, Stateful):  # Modules come from outside: changes are effects
        space = instance_dict(value)
        return None if space is None else [*space.keys(), *space.values()]
    return None


# Host calls -----------------------------------------------------------------------------------------------------------


def call_host(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``rn.pure_callback`` or ``rn.debug`` with the user's function as it is, not observed."""
    name = "callback" if getattr(function, "__wrapped__", function) is callbacks.pure_callback else "function"
    if args:
        args = (Uncompiled(_unobserved(rec, args[0])), *args[1:])
    elif name in kwargs:
        kwargs = kwargs | {name: Uncompiled(_unobserved(rec, kwargs[name]))}
    return boundary.run(rec, function, args, kwargs)


def _unobserved(rec: Recorder, function: Any) -> Any:
    """Return the function that the user wrote, in place of its twin."""
    if isinstance(function, (MethodType, types.BuiltinMethodType)):
        owner = function.__self__
        if not isinstance(owner, types.ModuleType):
            _kept(rec, owner)
        if type(function) is MethodType and rec.is_own(function.__func__):
            return MethodType(_unobserved(rec, function.__func__), owner)
        return function
    if type(function) is not FunctionType or not rec.is_own(function):
        _pin(rec, function)
        return function
    cells = tuple(_cell(rec, cell) for cell in function.__closure__ or ())
    defaults = function.__defaults__ and tuple(_kept(rec, x) for x in function.__defaults__)
    original = FunctionType(
        rec.codes[id(function.__code__)], function.__globals__, function.__name__, defaults, cells or None
    )
    original.__kwdefaults__ = function.__kwdefaults__ and {n: _kept(rec, x) for n, x in function.__kwdefaults__.items()}
    return original


def _cell(rec: Recorder, cell: types.CellType) -> types.CellType:
    if id(cell) in rec.cells:  # from outside: the function reads what it holds when it is called
        return cell
    try:
        return types.CellType(_kept(rec, cell.cell_contents))
    except ValueError:  # it is empty
        return cell


def _pin(rec: Recorder, value: Any) -> None:
    """Require that later calls find this object, which the program keeps with the function."""
    source = rec.source_of(value)
    if source is not None:
        rec.log.check(source, "{v} is not {0}", f"which object {source} is", (value,))


def _kept(rec: Recorder, value: Any) -> Any:
    """Return what a function that was made inside closes over, as it finds it when it is called."""
    if type(value) in PLAIN or type(value) in SYMBOLIC:
        return rec.concrete_number(value)
    if isinstance(value, ArrayMethods) and getattr(value, "is_traced", False):
        raise CaptureError(
            "[callback] the function reads a tensor of the compiled function, which has no value when it is called; "
            "pass it as an argument."
        )
    if type(value) is FunctionType and rec.is_own(value):
        return _unobserved(rec, value)
    if rec.source_of(value) is not None:
        _pin(rec, value)
    elif not isinstance(value, (FunctionType, type, types.ModuleType, ArrayMethods)):
        rec.refuse(
            f"a callback holds a {type(value).__name__} that the function makes at each call", "pass it as an argument"
        )
    return value


def observed_custom(rec: Recorder, function: Any) -> Any:
    """Return a copy of a function with a custom derivative, with observed parts."""
    known = rec.memo.get(("custom", id(function)))
    if known is None:
        source = rec.source_of(function)
        known = rec.memo["custom", id(function)] = object.__new__(type(function))
        known.__dict__.update(function.__dict__)
        for name in function.users_functions:
            part = getattr(function, name)
            if source is not None:
                part = rec.reach(part, rec.log.source(source, f"{{p}}.{name}", f"{source}", part))
            setattr(known, name, part if part is None else rec.callback(part))
        rec.keep(function)
    return known
