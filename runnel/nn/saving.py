"""State dicts of modules: saving and loading, with hooks and extra state."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

from runnel.core.errors import StateError
from runnel.tensor.creation import asarray
from runnel.tensor.snapshot import snapshot
from runnel.tensor.state import LoadReport, load_variables
from runnel.tensor.trace import ACTIVE
from runnel.tensor.variable import Variable

EXTRA: Final = "_extra_state"


def saved(module: Any, into: dict[str, Any], prefix: str, keep_vars: bool) -> dict[str, Any]:
    """Add the state of ``module`` and all below it to ``into``; return it."""
    tree = list(module.named_modules(prefix=prefix.removesuffix("."), remove_duplicate=False))
    if any(is_overridden(part, name) for _, part in tree for name in ("_save_to_state_dict", "state_dict")):
        return _saved_one_by_one(module, into, prefix, keep_vars)
    for path, part in tree:
        for hook in part._state_dict_pre_hooks:
            hook.function(part, inside(path), keep_vars)
    variables = {prefix + path: variable for path, variable in module._persistent().items()}
    into.update(variables if keep_vars else readings(variables))
    for path, part in tree:
        if has_extra_state(part):
            into[inside(path) + EXTRA] = part.get_extra_state()
    for path, part in reversed(tree):
        for hook in part._state_dict_hooks:
            hook.function(part, into, inside(path), {"version": part._version})
    return _described(into, tree)


def _saved_one_by_one(module: Any, into: dict[str, Any], prefix: str, keep_vars: bool) -> dict[str, Any]:
    """Do the same by the methods of each module, some of which the user has overridden."""
    for hook in module._state_dict_pre_hooks:
        hook.function(module, prefix, keep_vars)
    module._save_to_state_dict(into, prefix, keep_vars)
    if has_extra_state(module):
        into[prefix + EXTRA] = module.get_extra_state()
    for name, child in module._direct_children():
        child.state_dict(destination=into, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in module._state_dict_hooks:
        hook.function(module, into, prefix, {"version": module._version})
    return _described(into, [(prefix.removesuffix("."), module)])


def _described(state: dict[str, Any], tree: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return ``state`` with PyTorch's versions of the modules."""
    if isinstance(state, OrderedDict):
        versions = {path: {"version": part._version} for path, part in tree}
        state._metadata = OrderedDict(getattr(state, "_metadata", {}) | versions)  # type: ignore[attr-defined]
    return state


def is_overridden(module: Any, method: str) -> bool:
    """Return whether a class of the user defines a method of Module again."""
    return not getattr(type(module), method).__module__.startswith("runnel.")


def readings(variables: dict[str, Variable]) -> dict[str, Any]:
    """Return views of Variables without tapes, read at one point in time. In a snapshot they are values, which stay."""
    if ACTIVE.readings is not None:
        return {path: v.value for path, v in variables.items()}
    return snapshot(lambda: {path: v.detach() for path, v in variables.items()})


def loaded(module: Any, state: Any, strict: bool, assign: bool) -> LoadReport:
    """Assign the values in ``state`` to ``module`` and all below it. After an error nothing has changed."""
    owner = type(module).__name__
    tree = list(module.named_modules(remove_duplicate=False))
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    targets = module._persistent()
    if isinstance(state, Mapping):
        versions = getattr(state, "_metadata", {})
        state = OrderedDict(state)
        for path, part in tree:
            arguments = (state, inside(path), versions.get(path, {}), strict, missing, unexpected, errors)
            for hook in part._load_state_dict_pre_hooks:
                hook.function(part, *arguments)
            if is_overridden(part, "_load_from_state_dict") and not _is_left(part, arguments):
                for name in part._persistent(recurse=False):
                    targets.pop(inside(path) + name, None)
                    state.pop(inside(path) + name, None)
        if strict and (missing or unexpected):
            errors.append(f"missing {missing}; unexpected {unexpected}.")
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


LOADING: Final[ContextVar[set[str] | None]] = ContextVar("loading", default=None)


def _is_left(module: Any, arguments: tuple[Any, ...]) -> bool:
    """Call a module's ``_load_from_state_dict``; return whether it left its Parameters and buffers to Module's."""
    left: set[str] = set()
    token = LOADING.set(left)
    try:
        module._load_from_state_dict(*arguments)
    finally:
        LOADING.reset(token)
    return arguments[1] in left


def has_extra_state(module: Any) -> bool:
    """Return whether the class of a module defines extra state besides its Variables."""
    return any("get_extra_state" in kind.__dict__ for kind in type(module).__mro__ if kind.__module__ != _BASE)


_BASE: Final = "runnel.nn.module"


def inside(path: str) -> str:
    """Return the prefix of the names of a module at ``path``."""
    return f"{path}." if path else ""
