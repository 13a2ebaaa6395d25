"""The state of an optimizer, and its dict in PyTorch's form. A loaded state is checked before anything changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from runnel.core.avals import aval
from runnel.core.dtypes import from_numpy
from runnel.core.errors import GradientError, StateError
from runnel.ops import cast, zeros_like
from runnel.optim.settings import RULES, bounded, checked
from runnel.tensor.creation import asarray
from runnel.tensor.grad_mode import recording
from runnel.tensor.state import fitting
from runnel.tensor.stateful import TickingDict
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class State(TickingDict):
    """The state by Parameter and name. As in PyTorch, an entry that is missing is made empty when it is read."""

    __slots__ = ()

    def __missing__(self, key: Any) -> Any:
        for p in self if isinstance(key, Tensor) else ():
            if isinstance(p, LeafVariable) and p.source is key:
                return self[p]
        return self.setdefault(key, {})


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
        super().__init__(source.without_tape(), requires_grad=True, device=source.device)
        self.source = source

    def copy_in(self) -> None:
        """Copy the value and the gradient of the tensor."""
        self.assign(self.source.without_tape())
        self.grad = self.source.grad

    def copy_out(self) -> None:
        """Assign the new value to the tensor."""
        with recording(False):
            self.source.update("step", lambda before: self.value.without_tape())

    def clear(self, set_to_none: bool) -> None:
        """Drop the gradient of the tensor, or fill it with zeros."""
        gradient = self.source.grad
        self.source.grad = None if set_to_none or gradient is None else zeros_like(gradient)


def filled(p: Variable, initial: float | np.ndarray) -> np.ndarray:
    """Return the state for ``p`` before its first step."""
    return initial if isinstance(initial, np.ndarray) else np.full(p.shape, initial, p.dtype.numpy)


def state_of(optimizer: Any) -> dict[str, Any]:
    """Return ``{"state": {index: {name: tensor}}, "param_groups": [hyper-parameters and indices]}``."""
    optimizer.structure()
    state: dict[Any, Any] = {key: _value(slots) for key, slots in optimizer.state.items() if isinstance(key, str)}
    groups: list[dict[str, Any]] = []
    for group, steps in zip(optimizer.param_groups, optimizer._steps, strict=True):
        first, counts = sum(len(other["params"]) for other in groups), steps.value
        groups.append({**group.plain, "params": list(range(first, first + len(group.params)))})
        for i, p in enumerate(group.params):
            values = _value(optimizer.state[p])
            if optimizer.saves_steps and not optimizer.has_own_step:
                state[first + i] = {"step": counts[i], **values}
            elif values and (not group.has("dampening") or counts[i].item()):  # its presence says that steps were made
                state[first + i] = values
    return {"state": state, "param_groups": groups}


def _value(value: Any) -> Any:
    """Return the values of Variables, also in the lists and dicts that a custom step keeps."""
    if isinstance(value, dict):
        return {key: _value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_value(item) for item in value]
    return value.value if isinstance(value, Variable) else value


def checked_state(optimizer: Any, saved: Any) -> tuple[list[dict[str, Any]], dict[Any, tuple[float, dict[str, Any]]]]:
    """Return the hyper-parameters of each group, and the step and the state of each Parameter.

    Raises:
        StateError, ShapeError, DTypeError: the state does not fit.
    """
    owner = type(optimizer).__name__
    require_keys(f"the state of {owner}", saved, ("state", "param_groups"))
    groups, state = saved["param_groups"], saved["state"]
    if not isinstance(groups, Sequence) or not isinstance(state, Mapping):
        received = f"{type(groups).__name__} and {type(state).__name__}"
        raise state_error(f'"param_groups" of {owner} must be a list and "state" a dict; got {received}')
    parts: list[Any] = [theirs.get("params") if isinstance(theirs, Mapping) else None for theirs in groups]
    if not all(isinstance(part, Sequence) and all(type(index) is int for index in part) for part in parts):
        raise state_error('"params" of a group must be a list with the indices of its Parameters')
    sizes = [len(group.params) for group in optimizer.param_groups]
    if sizes != list(map(len, parts)):
        raise state_error(f"the groups must have {sizes} Parameters; got {list(map(len, parts))}")
    indices = [index for part in parts for index in part]
    others = state.keys() - set(indices)
    if not (optimizer.has_own_step and all(isinstance(key, str) for key in others)) and others:
        raise state_error(f'"state" has {", ".join(map(repr, others))}, which no "params" contains')
    if len(set(indices)) != len(indices):
        raise state_error(f'each Parameter must have its own index in "params"; got {indices}')
    settings: list[dict[str, Any]] = []
    slots: dict[Any, Any] = {key: (0.0, state[key]) for key in others}
    for i, (group, theirs) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        required = [
            key for key in group.plain if key in RULES and key != "decoupled_weight_decay"
        ]  # new in PyTorch 2.6
        require_keys(f"group {i} of {owner}", theirs, ("params", *required), theirs)
        given = {key: value for key, value in theirs.items() if key not in ("params", "param_names")}
        try:
            values = {**group.plain, **checked(owner, given, optimizer.defaults)}
            optimizer.check(values, group.params)
        except (TypeError, ValueError) as error:
            raise state_error(f"group {i}: {str(error).rstrip('.')}") from error
        settings.append(values)
        slots |= {
            p: _checked_slots(optimizer, p, index, values, state.get(index))
            for p, index in zip(group.params, theirs["params"], strict=True)
        }
    return settings, slots


def _checked_slots(
    optimizer: Any, p: Variable, index: int, values: Mapping[str, Any], saved: Any
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
    what = f"the state of {p.described} (number {index}) in {owner}"
    require_keys(what, saved, names, possible.keys() - initial.keys())
    initial |= {key: filled(p, value) for key, value in possible.items() if key in saved}
    avals = {key: aval(array.shape, from_numpy(array.dtype), p.device) for key, array in initial.items()}
    slots = {key: fitting(owner, f"{p.name}.{key}", avals[key], saved[key]) for key in initial}
    step = saved["step"] if optimizer.saves_steps else 1
    try:
        return float(bounded(0, whole=True)(step)), slots
    except (TypeError, ValueError):
        raise state_error(f"the step of {p.described} must be a whole number of at least 0; got {step!r}") from None


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
    missing = ", ".join(repr(key) for key in expected if key not in received)
    unknown = ", ".join(repr(key) for key in received if key not in expected and key not in optional)
    faults = [f"lacks {missing}"] * bool(missing) + [f"has an unknown {unknown}"] * bool(unknown)
    if faults:
        raise state_error(f"{what} {' and '.join(faults)}")


def state_error(sentence: str) -> StateError:
    """Return the error for a state that does not fit."""
    return StateError(f"[load_state_dict] {sentence}. Nothing was loaded.")
