"""An optimizer's state as a dict, in PyTorch's form; what comes back is checked in full before anything changes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from runnel.core.avals import aval
from runnel.core.dtypes import float64, from_numpy
from runnel.core.errors import StateError
from runnel.ops import cast
from runnel.optim.group import GroupOwner, ParamGroup, filled
from runnel.optim.hyperparameters import NOTES, rule_of
from runnel.tensor.creation import asarray
from runnel.tensor.state import fitting
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

_ON = 0.5  # a hyper-parameter that is not 0


class Saved(GroupOwner, Protocol):
    """An optimizer, as far as its state goes."""

    state: dict[Variable, dict[str, Any]]
    saves_steps: bool
    _steps: list[Variable]

    @property
    def param_groups(self) -> Sequence[ParamGroup]: ...

    @property
    def has_own_step(self) -> bool: ...

    def init_state(self, p: Variable, group: Mapping[str, Any]) -> Mapping[str, Any]: ...


class LoadedGroup(NamedTuple):
    """What a group takes over: its hyper-parameters, its step counts, and the state of each of its Parameters."""

    values: dict[str, Any]
    steps: Tensor
    slots: list[dict[str, Any]]


def state_of(optimizer: Saved) -> dict[str, Any]:
    """{"state": {number of Parameter: {name: tensor}}, "param_groups": [hyper-parameters and numbers]}."""
    state: dict[int, dict[str, Any]] = {}
    groups: list[dict[str, Any]] = []
    first = 0
    for group, steps in zip(optimizer.param_groups, optimizer._steps, strict=True):
        counts = steps.value
        for number, p in enumerate(group.params, first):
            count = counts[number - first]
            if optimizer.has_own_step:
                values = {name: value_of(value) for name, value in optimizer.state[p].items()}
            else:
                values = {name: variable.value for name, variable in optimizer.state[p].items()}
            if optimizer.saves_steps and not optimizer.has_own_step:
                state[number] = {"step": count, **values}
            elif values and not (group.has("dampening") and count.item() == 0):  # there, it says that steps were made
                state[number] = values
        numbers = list(range(first, first + len(group.params)))
        first += len(numbers)
        groups.append({**group.plain, "params": numbers})
    return {"state": state, "param_groups": groups}


def value_of(value: Any) -> Any:
    """State that an optimizer's own step keeps, as it is saved: the values of Variables, and lists of its own."""
    if isinstance(value, Variable):
        return value.value
    return [value_of(item) for item in value] if isinstance(value, list) else value


def checked_state(optimizer: Saved, saved: Any) -> list[LoadedGroup]:
    """What each group takes over from ``saved``. Raises for what does not fit, and has changed nothing."""
    owner = type(optimizer).__name__
    require_keys(f"the state of {owner}", saved, ("state", "param_groups"))
    groups, state = saved["param_groups"], saved["state"]
    if not isinstance(groups, Sequence) or not isinstance(state, Mapping):
        raise state_error(f'"param_groups" of {owner} is a list and "state" a dict; received {_kinds(groups, state)}')
    sizes = [len(group.params) for group in optimizer.param_groups]
    received = [_size(theirs) for theirs in groups]
    if sizes != received:
        raise state_error(f"the groups have {sizes} Parameters; received {received}")
    for i, (group, theirs) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        names = (*group.plain, *NOTES, *(theirs if isinstance(theirs, Mapping) else ()))
        optional = [name for name in names if (rule := rule_of(name)) is None or rule.optional]
        require_keys(f"group {i} of {owner}", theirs, ("params", *group.plain), (*optional, "param_names"))
    numbers = [number for theirs in groups for number in theirs["params"]]
    unknown = [number for number in state if number not in set(numbers)]
    if unknown:
        raise state_error(f'there is state for {", ".join(map(repr, unknown))}, which stands in no "params"')
    if len(set(numbers)) != len(numbers):
        raise state_error(f'each Parameter has a number of its own in "params"; received {numbers}')
    return [
        _checked_group(optimizer, i, group, theirs, state)
        for i, (group, theirs) in enumerate(zip(optimizer.param_groups, groups, strict=True))
    ]


def _checked_group(
    optimizer: Saved, index: int, group: ParamGroup, theirs: Mapping[str, Any], state: Mapping[Any, Any]
) -> LoadedGroup:
    owner = type(optimizer).__name__
    try:
        received = {name: value for name, value in theirs.items() if name not in ("params", "param_names")}
        values = optimizer.checked_group({**group.plain, **received}, group.params)
    except (TypeError, ValueError) as error:
        raise state_error(f"group {index}: {str(error).rstrip('.')}") from error
    counts: list[float] = []
    slots: list[dict[str, Any]] = []
    for p, number in zip(group.params, theirs["params"], strict=True):
        saved = state.get(number)
        if optimizer.has_own_step:
            counts.append(0.0)
            slots.append(_free(owner, p, saved))
            continue
        initial = {name: filled(p, value) for name, value in optimizer.init_state(p, values).items()}
        if not saved and (saved is None or not optimizer.saves_steps):  # it has not made a step yet
            counts.append(0.0)
            slots.append({name: asarray(value, device=p.device) for name, value in initial.items()})
            continue
        names = ("step", *initial) if optimizer.saves_steps else tuple(initial)
        possible = optimizer.init_state(p, {name: value or _ON for name, value in values.items()})
        require_keys(
            f"the state of {p.described} (number {number}) in {owner}", saved, names, possible.keys() - initial.keys()
        )
        initial |= {name: filled(p, value) for name, value in possible.items() if name in saved}
        counts.append(_count(f"the step of {p.described}", saved["step"]) if optimizer.saves_steps else 1.0)
        avals = {name: aval(array.shape, from_numpy(array.dtype), p.device) for name, array in initial.items()}
        slots.append({name: fitting(owner, f"{p.name}.{name}", avals[name], saved[name]) for name in initial})
    return LoadedGroup(values, asarray(counts, float64, device=group.params[0].device if group.params else None), slots)


def _free(owner: str, p: Variable, saved: Any) -> dict[str, Any]:
    """What an optimizer's own step kept for ``p``. Arrays of the Parameter's shape take its dtype."""
    if saved is None:
        return {}
    if not isinstance(saved, Mapping):
        raise state_error(f"the state of {p.described} in {owner} is a dict; received {type(saved).__name__}")
    return {str(name): _copied(p, value) for name, value in saved.items()}


def _copied(p: Variable, value: Any) -> Any:
    if isinstance(value, list):
        return [_copied(p, item) for item in value]
    if isinstance(value, bool | int | float | str | None):
        return value
    tensor = asarray(value, device=p.device)
    return cast(tensor, p.dtype) if tensor.dtype.is_float and tensor.shape == p.shape else tensor


def require_keys(what: str, received: Any, expected: Collection[str], optional: Collection[str] = ()) -> None:
    """StateError unless ``received`` is a dict of exactly these keys, but for ``optional`` ones."""
    if not isinstance(received, Mapping):
        raise state_error(f"{what} is a dict; received {type(received).__name__}")
    missing = [key for key in expected if key not in received and key not in optional]
    unknown = [key for key in received if key not in expected and key not in optional]
    if missing or unknown:
        parts = ["misses " + ", ".join(map(repr, missing))] if missing else []
        parts += ["has an unknown " + ", ".join(map(repr, unknown))] if unknown else []
        raise state_error(f"{what} {' and '.join(parts)}")


def state_error(sentence: str) -> StateError:
    """The error for a state that does not fit."""
    return StateError(f"[load_state_dict] {sentence}. Nothing was loaded.")


def _size(group: Any) -> int:
    numbers = group["params"] if isinstance(group, Mapping) and "params" in group else None
    if not isinstance(numbers, Sequence) or not all(type(number) is int for number in numbers):
        raise state_error('"params" of a group is a list of the numbers of its Parameters')
    return len(numbers)


def _count(what: str, value: Any) -> float:
    try:
        count = float(value)
    except (TypeError, ValueError):
        count = math.nan
    if not (math.isfinite(count) and count >= 0 and count == int(count)):
        raise state_error(f"{what} is a whole number, at least 0; received {value!r}")
    return count


def _kinds(*values: Any) -> str:
    return " and ".join(type(value).__name__ for value in values)
