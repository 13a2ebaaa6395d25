"""``rn.cond`` in an observed run: both functions are traced, and a program runs one of them at each call.

So nothing that Python changes in them can be repeated at each call, be it outside or in variables and containers of the
compiled function itself: such a function runs eagerly.
"""

from __future__ import annotations

from collections import deque
from types import CellType, FunctionType, MethodType
from typing import Any, Final

from runnel.compile import boundary
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import instance_dict, is_python_class
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.stateful import Stateful
from runnel.transforms.cond import cond

Held = dict[int, tuple[Any, tuple[int, ...]]]  # containers by id, and what is in them
_HELD: Final = (list, dict, set, deque)  # what a run makes and changes: compared by which objects are in it


def chooses(function: Any) -> bool:
    """Whether it is the function that chooses by a value of the program."""
    return getattr(function, "__wrapped__", function) is _COND


def call(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call it, and refuse where a branch changed something."""
    chosen = args[0] if args else kwargs.get("predicate")
    if not isinstance(chosen, ArrayMethods):
        return boundary.run(rec, function, args, kwargs)
    branches = [*args[1:3], *[kwargs[name] for name in ("true_fn", "false_fn") if name in kwargs]]
    changes, before = len(rec.effects.done), _held(rec, branches)
    result = boundary.run(rec, function, args, kwargs)
    if len(rec.effects.done) != changes or _is_changed(before, _held(rec, branches)):
        rec.refuse(
            "a function that was given to cond changes something, and whether it runs is known only when the program "
            "runs",
            "return what it makes, and keep it behind cond",
        )
    return result


def _is_changed(before: Held, now: Held) -> bool:
    """Whether one of the run's own containers holds something else. Those that the branches were first to read are from
    outside, and not in both: their changes are effects."""
    return any(key in now and now[key][1] != parts for key, (_, parts) in before.items())


def _held(rec: Recorder, functions: list[Any]) -> Held:
    """What the run's own variables and containers that functions can reach hold now."""
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
    """What hangs on a value that can be changed; None for others."""
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
    if issubclass(kind, (*_HELD, tuple)):
        return [*value.keys(), *value.values()] if issubclass(kind, dict) else list(value)
    if is_python_class(kind) and not issubclass(kind, Stateful):  # Modules are made outside, and changes of them noted
        space = instance_dict(value)
        return None if space is None else [*space.keys(), *space.values()]
    return None


_COND: Final = getattr(cond, "__wrapped__", cond)
