"""Parameter groups: Parameters with the hyper-parameters they share."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from runnel.core import tracebacks
from runnel.core.errors import SideEffectError
from runnel.optim.hyperparameters import SHAPING
from runnel.tensor import tracing
from runnel.tensor.floats import RunTimeNumbers, run_time_number
from runnel.tensor.variable import Variable


class ParamGroup(RunTimeNumbers, MutableMapping[str, Any]):
    """The dict of one group: "params" and hyper-parameters, which you may change between steps.

    In a trace, numbers are inputs of the program, read at each run; so a learning-rate schedule does not retrace. Only
    flags, counts, and whether a number is 0 shape the program, which leaves a term out where its factor is 0.

    Attributes:
        params: the Parameters.
        plain: the hyper-parameters. Programs read numbers here, and keep alive nothing else of the group.
        optimizer: a function that returns the optimizer of the group, or None if it does not exist (any more).
    """

    __slots__ = ("optimizer", "params", "plain")

    def __init__(self, params: Sequence[Variable], values: Mapping[str, Any], optimizer: Any = None) -> None:
        self.params = tuple(params)
        self.plain = dict(values)
        self.optimizer: Callable[[], Any] = weakref.ref(optimizer) if optimizer is not None else lambda: None

    def __reduce__(self) -> Any:
        return ParamGroup, (self.params, self.plain)

    def __getitem__(self, key: str) -> Any:
        if key == "params":
            return self.params
        value = self.plain[key]
        if tracing.ACTIVE.trace is None or key in SHAPING:
            return value
        if isinstance(value, tuple):
            return tuple(self._in_trace(item, f"{key}[{i}]", key, i) for i, item in enumerate(value))
        return self._in_trace(value, key, key)

    def _in_trace(self, value: Any, name: str, *path: Any) -> Any:
        """Return an input of the program, read along ``path`` at each run; ``value`` itself unless it is a number."""
        return run_time_number(functools.partial(_at, self.plain, *path), name) if _is_number(value) else value

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        raise ValueError(f"[param_groups] '{key}' cannot be removed; set it to another value.")

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set several hyper-parameters at once. All are checked first: after an error, none has changed."""
        values = dict(*args, **kwargs)
        if "params" in values:
            raise ValueError("[param_groups] the Parameters of a group cannot change; call add_param_group().")
        trace = tracing.ACTIVE.trace
        if trace is not None:
            names = ", ".join(map(repr, values))
            if trace.refuse is not None:
                trace.refuse(f"{names} of a group is set", "set it between calls, or step a schedule")
            raise SideEffectError(
                f"[param_groups] {names} was set in a loop at {tracebacks.user_line()}; set it outside."
            )
        optimizer = self.optimizer()
        before, values = dict(self.plain), {**self.plain, **values}
        self.plain.update(values if optimizer is None else optimizer.checked_group(values, self.params))
        if optimizer is not None and not self._keeps_shape(before):  # a learning rate changes at each step
            optimizer.group_changed(self)

    def _keeps_shape(self, before: dict[str, Any]) -> bool:
        """Return whether programs of the update are as before: only numbers that are inputs have changed."""
        now = self.plain
        changed = [name for name, value in now.items() if before.get(name, self) is not value]
        return all(name in before and _shape_of(name, before[name]) == _shape_of(name, now[name]) for name in changed)

    def __iter__(self) -> Iterator[str]:
        return iter(("params", *self.plain))

    def __len__(self) -> int:
        return 1 + len(self.plain)

    def __repr__(self) -> str:
        return f"ParamGroup({dict(self)!r})"

    def has(self, key: str) -> bool:
        """Return whether a hyper-parameter is set and not 0 or False. This is part of the program's structure."""
        return bool(self.plain.get(key))

    def program_structure(self) -> tuple[Hashable, ...]:
        """Return what a program of this group's update depends on."""
        shapes = tuple(f"{name} {_shape_of(name, value)}" for name, value in sorted(self.plain.items()))
        return tuple(map(id, self.params)), shapes


def _at(values: Any, *path: Any) -> float:
    for key in path:
        values = values[key]
    return float(values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shape_of(name: str, value: Any) -> str:
    """Return how a hyper-parameter shapes a program, in words, since messages about a retrace show it."""
    if _is_number(value) and name not in SHAPING:
        return "is not 0" if value else "is 0"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"({', '.join(_shape_of(name, v) for v in value)})"
    return f"is {value!r}"
