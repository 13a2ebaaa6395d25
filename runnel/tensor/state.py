"""The state of many Variables: gradients dropped, and saved values taken over.

Every name, shape and dtype is checked before the first Variable changes.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, NamedTuple

from runnel.core.errors import DTypeError, RunnelError, ShapeError
from runnel.ops import cast, zeros_like
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


def clear_gradient(variable: Variable, set_to_none: bool = True) -> None:
    """Forget ``variable``'s gradient, or make it zero if it has one."""
    if set_to_none or variable.grad is None:
        variable.grad = None
    else:
        variable.grad = zeros_like(variable.grad)


class LoadReport(NamedTuple):
    """What ``load_state_dict(strict=False)`` did not find, and what it had no use for."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def load_variables(owner: str, targets: Mapping[str, Variable], state: Mapping[str, Any], strict: bool) -> LoadReport:
    """Assign ``state`` to the Variables of the same names; on any error none of them has changed."""
    missing = [name for name in targets if name not in state]
    unexpected = [name for name in state if name not in targets]
    if strict and (missing or unexpected):
        raise RunnelError(_mismatch(owner, missing, unexpected, targets))
    values = {name: fitting(owner, name, target, state[name]) for name, target in targets.items() if name in state}
    for name, value in values.items():
        targets[name].assign(value)
    return LoadReport(missing, unexpected)


def fitting(owner: str, name: str, target: Variable, value: Any) -> Tensor:
    """``value`` in the shape and dtype of ``target``: a float of another width is converted, all else is an error."""
    tensor = asarray(value)
    if tensor.shape != target.shape:
        raise ShapeError(
            f"[load_state_dict] '{name}' of {owner} has shape {target.shape}; received {tensor.shape}. "
            "Nothing was loaded."
        )
    if tensor.dtype is not target.dtype and not (tensor.dtype.is_float and target.dtype.is_float):
        raise DTypeError(
            f"[load_state_dict] '{name}' of {owner} has dtype {target.dtype.name}; received {tensor.dtype.name}. "
            "Nothing was loaded."
        )
    converted: Tensor = cast(tensor, target.dtype)
    return converted


def _mismatch(owner: str, missing: list[str], unexpected: list[str], targets: Mapping[str, Variable]) -> str:
    parts: list[str] = []
    if missing:
        parts.append("missing " + ", ".join(f"'{name}'{_nearest(name, unexpected)}" for name in missing))
    if unexpected:
        parts.append("unexpected " + ", ".join(f"'{name}'{_nearest(name, list(targets))}" for name in unexpected))
    return (
        f"[load_state_dict] the state does not fit {owner}: {'; '.join(parts)}. Nothing was loaded. "
        "Pass strict=False to load what fits."
    )


def _nearest(name: str, candidates: list[str]) -> str:
    found = difflib.get_close_matches(name, candidates, n=1)
    return f" (is it '{found[0]}'?)" if found else ""
