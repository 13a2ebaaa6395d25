"""A parameter group: Parameters with the hyper-parameters they share."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Protocol

import numpy as np

from runnel.core import tracebacks
from runnel.core.errors import SideEffectError
from runnel.optim import hyperparameters
from runnel.tensor import tracing
from runnel.tensor.scalars import RunTimeNumbers, run_time_scalar
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class GroupOwner(Protocol):
    """The optimizer that a group belongs to."""

    def checked_group(self, values: Mapping[str, Any], params: Sequence[Variable]) -> dict[str, Any]:
        """The hyper-parameters ``values``, if they may be set together; else an error."""
        ...

    def group_changed(self, group: ParamGroup) -> None:
        """Hear that ``group`` has other hyper-parameters."""
        ...


class ParamGroup(RunTimeNumbers, MutableMapping[str, Any]):
    """The dict of one group: "params" and hyper-parameters, which may be changed between steps.

    Compiled steps read its numbers at each run. Of a number only whether it is 0 shapes the program (a term is left out
    then); flags do too. So a learning-rate schedule compiles nothing anew.
    """

    # No __dict__: what compiled programs depend on is structure(), which the optimizer holds, and not the numbers.
    __slots__ = ("_optimizer", "params", "plain")

    def __init__(self, params: Sequence[Variable], values: Mapping[str, Any], optimizer: GroupOwner | None) -> None:
        self.params = tuple(params)
        self.plain = dict(values)  # programs read their numbers here, and keep alive nothing else of the group
        self.join(optimizer)

    def join(self, optimizer: GroupOwner | None) -> None:
        """Be a group of this optimizer, which the group does not keep alive."""
        self._optimizer = None if optimizer is None else weakref.ref(optimizer)

    @property
    def optimizer(self) -> GroupOwner | None:
        """The optimizer it belongs to. A copy that was not made with its optimizer belongs to none."""
        return None if self._optimizer is None else self._optimizer()

    def __getstate__(self) -> tuple[Sequence[Variable], dict[str, Any]]:
        return self.params, dict(self.plain)

    def __setstate__(self, state: tuple[Sequence[Variable], dict[str, Any]]) -> None:
        params, self.plain = state
        self.params = tuple(params)
        self.join(None)

    def __getitem__(self, key: str) -> Any:
        if key == "params":
            return self.params
        plain, value = self.plain, self.plain[key]
        if tracing.ACTIVE.trace is None or _is_shaping(key):
            return value
        if isinstance(value, Sequence) and not isinstance(value, str):
            readers = [functools.partial(_element, plain, key, i) for i in range(len(value))]
            return tuple(self._scalar(v, reader, key) for v, reader in zip(value, readers, strict=True))
        return self._scalar(value, functools.partial(dict.__getitem__, plain, key), key)

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        raise ValueError(f"[param_groups] '{key}' cannot be removed; set it to another value.")

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set several hyper-parameters at once, as in a dict. They are checked with the others first: on an error none
        of them has changed."""
        values = dict(*args, **kwargs)
        if "params" in values:
            raise ValueError("[param_groups] the Parameters of a group stay; add others with add_param_group().")
        trace = tracing.ACTIVE.trace
        if trace is not None:
            names = ", ".join(map(repr, values))
            if trace.refuse is not None:
                trace.refuse(f"{names} of a group is set", "set it between calls, or step a schedule")
            raise SideEffectError(
                f"[param_groups] {names} was set in a loop at {tracebacks.user_line()}; set it outside."
            )
        optimizer = self.optimizer
        values = {**self.plain, **values}
        self.plain.update(values if optimizer is None else optimizer.checked_group(values, self.params))
        if optimizer is not None:
            optimizer.group_changed(self)

    def __iter__(self) -> Iterator[str]:
        return iter(("params", *self.plain))

    def __len__(self) -> int:
        return 1 + len(self.plain)

    def __repr__(self) -> str:
        return f"ParamGroup({dict(self)!r})"

    def number(self, formula: Callable[[Mapping[str, Any]], float], name: str) -> float | Tensor:
        """What ``formula`` makes of the hyper-parameters, computed in Python at each run."""
        return run_time_scalar(functools.partial(formula, self.plain), name)

    def has(self, key: str) -> bool:
        """Whether the hyper-parameter is set and not 0 or False; part of the program's structure."""
        return bool(self.plain.get(key))

    def structure(self) -> Hashable:
        """What a program of this group's update depends on."""
        names = sorted(self.plain)
        return tuple(id(p) for p in self.params), tuple(f"{name} {_shape_of(name, self.plain[name])}" for name in names)

    def program_structure(self) -> list[Any]:
        """The same, for compiled functions that are given the group."""
        return [self.structure()]

    @staticmethod
    def _scalar(value: Any, getter: functools.partial[float], name: str) -> Any:
        return run_time_scalar(getter, name) if _is_number(value) else value


def _element(plain: Mapping[str, Any], key: str, i: int) -> float:
    return float(plain[key][i])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_shaping(name: str) -> bool:
    rule = hyperparameters.rule_of(name)
    return rule is not None and rule.shapes


def _shape_of(name: str, value: Any) -> str:
    """What of a hyper-parameter shapes a program, in words, since messages about a retrace show it."""
    if _is_number(value) and not _is_shaping(name):
        return "is not 0" if value != 0 else "is 0"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"({', '.join(_shape_of(name, v) for v in value)})"
    return f"is {value!r}"


def filled(p: Variable, initial: float | np.ndarray) -> np.ndarray:
    """State for ``p`` before the first step."""
    return initial if isinstance(initial, np.ndarray) else np.full(p.shape, initial, p.dtype.numpy)
