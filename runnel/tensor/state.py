"""State of many Variables: clearing gradients, and checking and assigning saved values.

Every name, shape and dtype is checked before the first Variable changes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from runnel.core.avals import ShapedArray
from runnel.core.errors import DTypeError, RunnelError, ShapeError, StateError
from runnel.ops import cast, zeros_like
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable, assign_together


def clear_gradients(variables: Iterable[Variable], set_to_none: bool = True) -> None:
    """Forget the gradients of ``variables``, or make zeros of those that they have."""
    for variable in variables:
        if not set_to_none and variable.grad is not None:
            variable.grad = zeros_like(variable.grad)
        else:
            variable.drop_gradient()


class LoadReport(NamedTuple):
    """The names that ``load_state_dict(strict=False)`` did not find, and the names that it did not use."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"LoadReport(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def load_variables(owner: str, targets: Mapping[str, Variable], state: Any, strict: bool) -> LoadReport:
    """Assign ``state`` to the Variables of the same names; on any error none of them has changed."""
    if not isinstance(state, Mapping):
        raise StateError(
            f"[load_state_dict] the state of {owner} must be a dict of tensors by path; got {type(state).__name__}."
        )
    missing = [name for name in targets if name not in state]
    unexpected = [str(name) for name in state if name not in targets]
    if strict and (missing or unexpected):
        raise StateError(_mismatch(owner, missing, unexpected, targets))
    values: dict[str, Tensor] = {}
    wrong: list[RunnelError] = []
    for name, target in targets.items():
        if name in state:
            try:
                values[name] = fitting(owner, name, target.aval, state[name])
            except (DTypeError, ShapeError, StateError) as error:
                wrong.append(error)
    if wrong:
        raise _joint(wrong)
    assign_together([(targets[name], value) for name, value in values.items()])
    return LoadReport(missing, unexpected)


def fitting(owner: str, name: str, expected: ShapedArray, value: Any) -> Tensor:
    """Return ``value`` in the shape and dtype ``expected``, on its device. A float of another width is converted; any
    other difference is an error."""
    try:
        tensor = asarray(value)
    except (TypeError, ValueError) as error:
        raise StateError(
            f"{_HEAD}'{name}' of {owner} must be an array of numbers; got {type(value).__name__}: {error}{_TAIL}"
        ) from error
    if tensor.shape != expected.shape:
        raise ShapeError(f"{_HEAD}'{name}' of {owner} must have shape {expected.shape}; got {tensor.shape}.{_TAIL}")
    if tensor.dtype is not expected.dtype and not (tensor.dtype.is_float and expected.dtype.is_float):
        raise DTypeError(f"{_HEAD}'{name}' of {owner} must be {expected.dtype.name}; got {tensor.dtype.name}.{_TAIL}")
    converted: Tensor = cast(tensor, expected.dtype).on(expected.device)
    return converted


_HEAD: Final = "[load_state_dict] "
_TAIL: Final = " Nothing was loaded."


def _joint(errors: list[RunnelError]) -> RunnelError:
    """Return one error for several, of their class if they share one."""
    kinds = {type(error) for error in errors}
    sentences = [str(error).removeprefix(_HEAD).removesuffix(_TAIL) for error in errors]
    kind = kinds.pop() if len(kinds) == 1 else StateError
    return kind(f"{_HEAD}{' '.join(sentences)}{_TAIL}")


def _mismatch(owner: str, missing: list[str], unexpected: list[str], targets: Mapping[str, Variable]) -> str:
    parts: list[str] = []
    if missing:
        parts.append("missing " + ", ".join(f"'{name}'{_nearest(name, unexpected)}" for name in missing))
    if unexpected:
        parts.append("unexpected " + ", ".join(f"'{name}'{_nearest(name, list(targets))}" for name in unexpected))
    return f"{_HEAD}the state does not fit {owner}: {'; '.join(parts)}.{_TAIL} Pass strict=False to load what fits."


def _nearest(name: str, candidates: list[str]) -> str:
    near = difflib.get_close_matches(name, candidates, n=1)
    return f" (is it '{near[0]}'?)" if near else ""
