"""The state of an optimizer as a dict in PyTorch's form. A loaded state is checked before anything changes."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from runnel.core.avals import aval
from runnel.core.dtypes import float64, from_numpy
from runnel.core.errors import GradientError, StateError
from runnel.ops import cast, zeros_like
from runnel.optim.group import ParamGroup
from runnel.optim.hyperparameters import RULES
from runnel.tensor.creation import asarray
from runnel.tensor.grad_mode import recording
from runnel.tensor.state import fitting
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class LeafVariable(Variable):
    """The Variable that represents ``source``, a tensor with ``requires_grad``, while a step runs.

    The value and the gradient of ``source`` are the user's to change: the Variable takes them over before each step.
    """

    __slots__ = ("source",)

    def __init__(self, owner: str, source: Tensor) -> None:
        if not (source.is_leaf and source.requires_grad):
            what = "was computed" if source.requires_grad else "has requires_grad=False"
            raise GradientError(
                f"[{owner}] params must be Parameters, or tensors with requires_grad that were not computed; got a "
                f"tensor that {what}."
            )
        super().__init__(source.detach(), requires_grad=True, device=source.device)
        self.source = source

    def copy_in(self) -> None:
        """Copy the value and the gradient of the tensor."""
        self.assign(self.source.detach())
        self.grad = self.source.grad

    def copy_out(self) -> None:
        """Assign the new value to the tensor."""
        with recording(False):
            self.source.update("step", functools.partial(_value_of, self))

    def clear(self, set_to_none: bool) -> None:
        """Drop the gradient of the tensor, or fill it with zeros."""
        gradient = self.source.grad
        self.source.grad = None if set_to_none or gradient is None else zeros_like(gradient)


def _value_of(leaf: LeafVariable, before: Tensor) -> Tensor:
    return leaf.value.detach()


class LoadedGroup(NamedTuple):
    """The new hyper-parameters of a group, its step counts, and the state of each of its Parameters."""

    values: dict[str, Any]
    steps: Tensor
    slots: list[dict[str, Any]]


def filled(p: Variable, initial: float | np.ndarray) -> np.ndarray:
    """Return the state for ``p`` before its first step."""
    return initial if isinstance(initial, np.ndarray) else np.full(p.shape, initial, p.dtype.numpy)


def state_of(optimizer: Any) -> dict[str, Any]:
    """Return the state dict: ``{"state": {index: {name: tensor}}, "param_groups": [hyper-parameters and indices]}``."""
    state: dict[int, dict[str, Any]] = {}
    groups: list[dict[str, Any]] = []
    first = 0
    for group, steps in zip(optimizer.param_groups, optimizer._steps, strict=True):
        counts = steps.value
        indices = list(range(first, first + len(group.params)))
        for index, p in zip(indices, group.params, strict=True):
            count = counts[index - first]
            values = {name: _value(value) for name, value in optimizer.state[p].items()}
            if optimizer.saves_steps and not optimizer.has_own_step:
                state[index] = {"step": count, **values}
            elif values and not (group.has("dampening") and count.item() == 0):  # there, it says that steps were made
                state[index] = values
        first += len(indices)
        groups.append({**group.plain, "params": indices})
    return {"state": state, "param_groups": groups}


def _value(value: Any) -> Any:
    """Return the values of Variables, also in lists, which a custom step may keep."""
    if isinstance(value, Variable):
        return value.value
    return [_value(item) for item in value] if isinstance(value, list) else value


def checked_state(optimizer: Any, saved: Any) -> list[LoadedGroup]:
    """Return what each group takes over from ``saved``. Raise an error for a state that does not fit."""
    owner = type(optimizer).__name__
    require_keys(f"the state of {owner}", saved, ("state", "param_groups"))
    groups, state = saved["param_groups"], saved["state"]
    if not isinstance(groups, Sequence) or not isinstance(state, Mapping):
        received = f"{type(groups).__name__} and {type(state).__name__}"
        raise state_error(f'"param_groups" of {owner} must be a list and "state" a dict; got {received}')
    sizes, received_sizes = [len(group.params) for group in optimizer.param_groups], list(map(_size, groups))
    if sizes != received_sizes:
        raise state_error(f"the groups must have {sizes} Parameters; got {received_sizes}")
    indices = [index for theirs in groups for index in theirs["params"]]
    unknown = [index for index in state if index not in set(indices)]
    if unknown:
        raise state_error(f'"state" has {", ".join(map(repr, unknown))}, which no "params" contains')
    if len(set(indices)) != len(indices):
        raise state_error(f'each Parameter must have its own index in "params"; got {indices}')
    return [
        _checked_group(optimizer, f"group {i}", group, theirs, state)
        for i, (group, theirs) in enumerate(zip(optimizer.param_groups, groups, strict=True))
    ]


def _checked_group(
    optimizer: Any, name: str, group: ParamGroup, theirs: Mapping[str, Any], state: Mapping[Any, Any]
) -> LoadedGroup:
    required = [key for key in group.plain if key in RULES and key != "decoupled_weight_decay"]  # new in PyTorch 2.6
    require_keys(f"{name} of {type(optimizer).__name__}", theirs, ("params", *required), theirs)
    received = {key: value for key, value in theirs.items() if key not in ("params", "param_names")}
    try:
        values = optimizer.checked_group({**group.plain, **received}, group.params)
    except (TypeError, ValueError) as error:
        raise state_error(f"{name}: {str(error).rstrip('.')}") from error
    pairs = [
        _checked_slots(optimizer, p, f"{p.described} (number {index})", values, state.get(index))
        for p, index in zip(group.params, theirs["params"], strict=True)
    ]
    place = group.params[0].device if group.params else None
    counts = asarray([count for count, _ in pairs], float64, device=place)
    return LoadedGroup(values, counts, [slots for _, slots in pairs])


def _checked_slots(
    optimizer: Any, p: Variable, name: str, values: Mapping[str, Any], saved: Any
) -> tuple[float, dict[str, Any]]:
    """Return how many steps ``p`` has made, and its state by name."""
    owner = type(optimizer).__name__
    if optimizer.has_own_step:
        if not isinstance(saved, Mapping | None):
            raise state_error(f"the state of {p.described} in {owner} must be a dict; got {type(saved).__name__}")
        return 0.0, {str(key): _copied(p, value) for key, value in (saved or {}).items()}
    initial = {key: filled(p, value) for key, value in optimizer.init_state(p, values).items()}
    if not saved and (saved is None or not optimizer.saves_steps):  # it has not made a step yet
        return 0.0, {key: asarray(value, device=p.device) for key, value in initial.items()}
    possible = optimizer.init_state(p, {key: value or 0.5 for key, value in values.items()})  # with every term on
    names = ("step", *initial) if optimizer.saves_steps else tuple(initial)
    require_keys(f"the state of {name} in {owner}", saved, names, possible.keys() - initial.keys())
    initial |= {key: filled(p, value) for key, value in possible.items() if key in saved}
    count = _count(f"the step of {p.described}", saved["step"]) if optimizer.saves_steps else 1.0
    avals = {key: aval(array.shape, from_numpy(array.dtype), p.device) for key, array in initial.items()}
    return count, {key: fitting(owner, f"{p.name}.{key}", avals[key], saved[key]) for key in initial}


def _copied(p: Variable, value: Any) -> Any:
    """Return the state of a custom step as it is kept. Arrays of the Parameter's shape take its dtype."""
    if isinstance(value, list):
        return [_copied(p, item) for item in value]
    if isinstance(value, bool | int | float | str | None):
        return value
    tensor = asarray(value, device=p.device)
    return cast(tensor, p.dtype) if tensor.dtype.is_float and tensor.shape == p.shape else tensor


def require_keys(what: str, received: Any, expected: Collection[str], optional: Collection[str] = ()) -> None:
    """Raise StateError unless ``received`` is a dict of exactly the keys ``expected``, and any of ``optional``."""
    if not isinstance(received, Mapping):
        raise state_error(f"{what} must be a dict; got {type(received).__name__}")
    missing = [key for key in expected if key not in received]
    unknown = [key for key in received if key not in expected and key not in optional]
    if missing or unknown:
        parts = ["lacks " + ", ".join(map(repr, missing))] if missing else []
        parts += ["has an unknown " + ", ".join(map(repr, unknown))] if unknown else []
        raise state_error(f"{what} {' and '.join(parts)}")


def state_error(sentence: str) -> StateError:
    """Return the error for a state that does not fit."""
    return StateError(f"[load_state_dict] {sentence}. Nothing was loaded.")


def _size(group: Any) -> int:
    indices = group["params"] if isinstance(group, Mapping) and "params" in group else None
    if not isinstance(indices, Sequence) or not all(type(index) is int for index in indices):
        raise state_error('"params" of a group must be a list with the indices of its Parameters')
    return len(indices)


def _count(what: str, value: Any) -> float:
    try:
        count = float(value)
    except (TypeError, ValueError):
        count = math.nan
    if not (math.isfinite(count) and count >= 0 and count == int(count)):
        raise state_error(f"{what} must be a whole number of at least 0; got {value!r}")
    return count
