"""Call modules as functions of their Parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from runnel import ops
from runnel.core.errors import ArgumentError
from runnel.nn.module import Module
from runnel.tensor.methods import ArrayMethods


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call ``module`` with other tensors for some of its Parameters and buffers, which do not change.

    Args:
        module: a module.
        parameter_and_buffer_dicts: tensors by the names of ``named_parameters()`` and ``named_buffers()``, in one
            mapping or several. An assignment to a buffer among them lasts only for this call.
        args: the argument, or a tuple of arguments.
        kwargs: named arguments.
        tie_weights: replace a Parameter that has several names under all of them.
        strict: require a tensor for every Parameter and buffer.

    Returns:
        The result of the module.

    Raises:
        ArgumentError: the module has no such name, or one Parameter would be replaced by different tensors.
    """
    several = (
        [parameter_and_buffer_dicts] if isinstance(parameter_and_buffer_dicts, Mapping) else parameter_and_buffer_dicts
    )
    values: dict[str, Any] = {}
    for mapping in several:
        values.update(mapping)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, values, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Stack the Parameters and the buffers of modules of one kind along a new first axis.

    Returns:
        Two dicts by name: Parameters, as leaves that require gradients, and buffers.
    """
    if not models:
        raise ArgumentError("[stack_module_state] models must contain at least one module.")

    def stacked(name: str, is_leaf: bool) -> dict[str, Any]:
        each = [dict(getattr(model, name)()) for model in models]
        answer = {path: ops.stack([one[path].without_tape() for one in each]) for path in each[0]}
        if is_leaf:
            for path, value in answer.items():
                value.requires_grad_(each[0][path].requires_grad)
        return answer

    return stacked("named_parameters", True), stacked("named_buffers", False)


@contextmanager
def _replaced(module: Module, values: Mapping[str, Any], tie_weights: bool, strict: bool) -> Iterator[None]:
    """Put ``values`` into the module until the block ends."""
    places = _places(module)
    unknown = [name for name in values if name not in places]
    left_out = [name for name in places if name not in values] if strict else []
    if unknown or left_out:
        raise ArgumentError(
            f"[functional_call] {type(module).__name__} "
            + (f"has no '{unknown[0]}'" if unknown else f"needs '{left_out[0]}' as well")
            + f"; its Parameters and buffers are {', '.join(places) or 'none'}."
        )
    chosen = {places[name]: value for name, value in values.items()}
    if tie_weights:
        chosen = _tied(places, values)
    before = {(owner, name): owner.__dict__[name] for owner, name in chosen}
    try:
        for (owner, name), value in chosen.items():
            object.__setattr__(owner, name, value)
        yield
    finally:
        for (owner, name), value in before.items():
            object.__setattr__(owner, name, value)


def _tied(places: Mapping[str, tuple[Module, str]], values: Mapping[str, Any]) -> dict[tuple[Module, str], Any]:
    """Return the value at each place of the Parameters that ``values`` replaces, under all of their names."""
    new: dict[int, tuple[str, Any]] = {}
    for name, value in values.items():
        owner, attribute = places[name]
        key = id(owner.__dict__[attribute])
        if key in new and new[key][1] is not value:
            raise ArgumentError(
                f"[functional_call] '{new[key][0]}' and '{name}' are one Parameter; pass one tensor for both, or "
                "tie_weights=False."
            )
        new[key] = name, value
    return {
        (owner, attribute): new[id(owner.__dict__[attribute])][1]
        for owner, attribute in places.values()
        if id(owner.__dict__[attribute]) in new
    }


def _places(module: Module) -> dict[str, tuple[Module, str]]:
    """Return the module and attribute of each Parameter and buffer, by all of its names."""
    return {
        f"{path}.{name}" if path else name: (owner, name)
        for path, owner in module.named_modules(remove_duplicate=False)
        for name, value in vars(owner).items()
        if isinstance(value, ArrayMethods)
    }
