"""Wrong arguments to what smaller modules offer: one sentence that names the function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import runnel as rn
import runnel.compat.keras as keras
from runnel import memory, nn, passes
from runnel.core.errors import ArgumentError
from tests.core.errors.test_sweep import complaint

MODULES = {
    "parametrize": nn.utils.parametrize,
    "parametrizations": nn.utils.parametrizations,
    "prune": nn.utils.prune,
    "memory": memory,
    "passes": passes,
    "keras": keras,
}


def functions() -> Iterator[tuple[str, Any]]:
    """Of each module, those that need an argument."""
    for name, module in MODULES.items():
        for public in getattr(module, "__all__", ("Input",)):
            function = getattr(module, public)
            if inspect.isfunction(function):
                yield f"{name}.{public}", function


FUNCTIONS = dict(functions())


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("value", [None, 3, "a", object(), rn.ones(2)], ids=["None", "3", "a", "object", "tensor"])
def test_wrong_arguments_are_reported(name: str, value: Any) -> None:
    function = FUNCTIONS[name]
    parameters = inspect.signature(function).parameters.values()
    needed = {p.name: value for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
    assert complaint(functools.partial(function, **needed)) is None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_unknown_arguments_are_reported(name: str) -> None:
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    with pytest.raises(ArgumentError, match=r"\[\w+\] takes no argument 'tint'"):
        FUNCTIONS[name](tint=3)


def test_names_that_a_module_lacks_are_reported() -> None:
    with pytest.raises(AttributeError, match=r"\[runnel.nn.utils.prune\] there is no 'l2_unstructured'; did you mean"):
        _ = nn.utils.prune.l2_unstructured
