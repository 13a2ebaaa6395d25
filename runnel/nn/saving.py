"""State dicts of modules: saving and loading, with hooks and extra state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from runnel.core.errors import StateError
from runnel.tensor.creation import asarray
from runnel.tensor.snapshot import snapshot
from runnel.tensor.state import LoadReport, load_variables
from runnel.tensor.variable import Variable
from runnel.tensor.views import DETACHED, View

EXTRA: Final = "_extra_state"


def saved(module: Any, into: dict[str, Any], prefix: str, keep_vars: bool) -> dict[str, Any]:
    """Add the state of ``module`` and all below it to ``into``; return it."""
    tree = list(module.named_modules(prefix=prefix.removesuffix(".")))
    for path, part in tree:
        for hook in part._state_dict_pre_hooks:
            hook.function(part, inside(path), keep_vars)
    variables = {prefix + path: variable for path, variable in module._persistent().items()}
    into.update(variables if keep_vars else _readings(variables))
    for path, part in tree:
        if has_extra_state(part):
            into[inside(path) + EXTRA] = part.get_extra_state()
    for path, part in reversed(tree):
        for hook in part._state_dict_hooks:
            hook.function(part, into, inside(path), {})
    return into


def _readings(variables: dict[str, Variable]) -> dict[str, Any]:
    """Return the values of Variables at one point in time. Changing one in place also changes its Variable."""
    values = snapshot(lambda: {path: v.value for path, v in variables.items()})
    for path, value in values.items():
        value._view = View(variables[path], (DETACHED,), follows=False)
    return values


def loaded(module: Any, state: Any, strict: bool, assign: bool) -> LoadReport:
    """Assign the values in ``state`` to ``module`` and all below it. After an error nothing has changed."""
    owner = type(module).__name__
    tree = list(module.named_modules())
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    if isinstance(state, Mapping):
        state = dict(state)
        for path, part in tree:
            for hook in part._load_state_dict_pre_hooks:
                hook.function(part, state, inside(path), {}, strict, missing, unexpected, errors)
        if errors:
            raise StateError(
                f"[load_state_dict] the state does not fit {owner}: {' '.join(errors)} Nothing was loaded."
            )
    extra = {inside(path) + EXTRA: part for path, part in tree if has_extra_state(part)}
    extras = {path: state.pop(path) for path in extra if path in state} if isinstance(state, dict) else {}
    lacking = [path for path in extra if path not in extras]
    if strict and lacking:
        raise StateError(
            f"[load_state_dict] the state does not fit {owner}: missing {', '.join(map(repr, lacking))}. Nothing was "
            "loaded. Pass strict=False to load what fits."
        )
    targets = module._persistent()
    report = load_variables(owner, targets, state, strict)
    if assign:
        for path, variable in targets.items():
            value = asarray(state[path]) if path in state else variable
            if value.dtype is not variable.dtype:
                variable.move_to(variable.aval.device, value.dtype).assign(value)
    for path, value in extras.items():
        extra[path].set_extra_state(value)
    report = LoadReport([*missing, *report.missing_keys, *lacking], [*unexpected, *report.unexpected_keys])
    for _, part in reversed(tree):
        for hook in part._load_state_dict_post_hooks:
            hook.function(part, report)
    return report


def has_extra_state(module: Any) -> bool:
    """Return whether the class of a module defines extra state besides its Variables."""
    return any("get_extra_state" in kind.__dict__ for kind in type(module).__mro__ if kind.__module__ != _BASE)


_BASE: Final = "runnel.nn.module"


def inside(path: str) -> str:
    """Return the prefix of the names of a module at ``path``."""
    return f"{path}." if path else ""
