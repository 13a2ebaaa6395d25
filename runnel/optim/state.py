"""An optimizer's state as a dict, in PyTorch's form; what comes back is checked in full before anything changes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from runnel.core.dtypes import float64
from runnel.core.errors import StateError
from runnel.optim.group import ParamGroup
from runnel.tensor.creation import asarray
from runnel.tensor.state import fitting
from runnel.tensor.tensor import Tensor

if TYPE_CHECKING:
    from runnel.optim.optimizer import Optimizer


class LoadedGroup(NamedTuple):
    """What a group takes over: its hyper-parameters, its step counts, and the state of each of its Parameters."""

    values: dict[str, Any]
    steps: Tensor
    slots: list[dict[str, Tensor]]


def state_of(optimizer: Optimizer) -> dict[str, Any]:
    """{"state": {number of Parameter: {name: tensor}}, "param_groups": [hyper-parameters and numbers]}."""
    state: dict[int, dict[str, Tensor]] = {}
    groups: list[dict[str, Any]] = []
    for group, steps in zip(optimizer.param_groups, optimizer._steps, strict=True):
        first = len(state)
        counts = steps.value
        for i, p in enumerate(group.params):
            state[first + i] = {"step": counts[i], **{name: v.value for name, v in optimizer.state[p].items()}}
        numbers = list(range(first, len(state)))
        groups.append({**group.plain, "params": numbers})
    return {"state": state, "param_groups": groups}


def checked_state(optimizer: Optimizer, saved: Any) -> list[LoadedGroup]:
    """What each group takes over from ``saved``. Raises for what does not fit, and has changed nothing."""
    owner = type(optimizer).__name__
    require_keys(f"the state of {owner}", saved, ("state", "param_groups"))
    groups, state = saved["param_groups"], saved["state"]
    if not isinstance(groups, Sequence) or not isinstance(state, Mapping):
        raise refusal(f'"param_groups" of {owner} is a list and "state" a dict; received {_kinds(groups, state)}')
    sizes = [len(group.params) for group in optimizer.param_groups]
    received = [_size(theirs) for theirs in groups]
    if sizes != received:
        raise refusal(f"the groups have {sizes} Parameters; received {received}")
    for i, (group, theirs) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        require_keys(f"group {i} of {owner}", theirs, ("params", *group.plain))
    numbers = [number for theirs in groups for number in theirs["params"]]
    unknown = [number for number in state if number not in set(numbers)]
    if unknown:
        raise refusal(f'there is state for {", ".join(map(repr, unknown))}, which stands in no "params"')
    if len(set(numbers)) != len(numbers):
        raise refusal(f'each Parameter has a number of its own in "params"; received {numbers}')
    return [
        _checked_group(optimizer, i, group, theirs, state)
        for i, (group, theirs) in enumerate(zip(optimizer.param_groups, groups, strict=True))
    ]


def _checked_group(
    optimizer: Optimizer, index: int, group: ParamGroup, theirs: Mapping[str, Any], state: Mapping[Any, Any]
) -> LoadedGroup:
    owner = type(optimizer).__name__
    try:
        given = {name: value for name, value in theirs.items() if name != "params"}
        values = optimizer.checked_group(given, group.params)
    except (TypeError, ValueError) as error:
        raise refusal(f"group {index}: {str(error).rstrip('.')}") from error
    wanted = optimizer.slots(values)
    counts: list[float] = []
    slots: list[dict[str, Tensor]] = []
    for p, number in zip(group.params, theirs["params"], strict=True):
        kept = state.get(number)
        if kept is None:  # it has not made a step yet
            counts.append(0.0)
            slots.append(
                {name: asarray(optimizer.initial(p, value), device=p.device) for name, value in wanted.items()}
            )
            continue
        require_keys(f"the state of '{p.name}' (number {number}) in {owner}", kept, ("step", *wanted))
        counts.append(_count(f"the step of '{p.name}'", kept["step"]))
        slots.append({name: fitting(owner, f"{p.name}.{name}", p.aval, kept[name]) for name in wanted})
    return LoadedGroup(values, asarray(counts, float64, device=group.params[0].device if group.params else None), slots)


def require_keys(what: str, received: Any, wanted: Collection[str]) -> None:
    """StateError unless ``received`` is a dict of exactly these keys."""
    if not isinstance(received, Mapping):
        raise refusal(f"{what} is a dict; received {type(received).__name__}")
    missing = [key for key in wanted if key not in received]
    unknown = [key for key in received if key not in wanted]
    if missing or unknown:
        parts = ["misses " + ", ".join(map(repr, missing))] if missing else []
        parts += ["has an unknown " + ", ".join(map(repr, unknown))] if unknown else []
        raise refusal(f"{what} {' and '.join(parts)}")


def refusal(sentence: str) -> StateError:
    """The error for a state that does not fit."""
    return StateError(f"[load_state_dict] {sentence}. Nothing was loaded.")


def _size(group: Any) -> int:
    numbers = group["params"] if isinstance(group, Mapping) and "params" in group else None
    if not isinstance(numbers, Sequence) or not all(type(number) is int for number in numbers):
        raise refusal('"params" of a group is a list of the numbers of its Parameters')
    return len(numbers)


def _count(what: str, value: Any) -> float:
    try:
        count = float(value)
    except (TypeError, ValueError):
        count = math.nan
    if not (math.isfinite(count) and count >= 0 and count == int(count)):
        raise refusal(f"{what} is a whole number, at least 0; received {value!r}")
    return count


def _kinds(*values: Any) -> str:
    return " and ".join(type(value).__name__ for value in values)
