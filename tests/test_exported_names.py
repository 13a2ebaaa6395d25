"""``runnel.__all__`` is what ``import runnel`` offers: every public name, in order, and nothing that is missing."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

import runnel
from runnel import nn, ops, optim
from runnel.core import dtypes

PACKAGES = [
    "runnel", "runnel.nn", "runnel.nn.functional", "runnel.optim", "runnel.optim.lr_scheduler",
    "runnel.optim.swa_utils", "runnel.ops", "runnel.io", "runnel.data",
]  # fmt: skip


def public_names(module: ModuleType) -> set[str]:
    """Names without underscore, but for submodules that are only there because something imported them."""
    exported = set(module.__all__)
    named = {name: getattr(module, name) for name in dir(module)}  # late ones among them
    return {
        name
        for name, value in named.items()
        if name in exported or not (name.startswith("_") or isinstance(value, ModuleType))
    }


@pytest.mark.parametrize("name", [p for p in PACKAGES if p != "runnel.nn.functional"])
def test_all_is_what_is_public(name: str) -> None:
    module = importlib.import_module(name)
    assert set(module.__all__) == public_names(module)


@pytest.mark.parametrize("name", PACKAGES)
def test_all_has_no_name_twice_and_none_missing(name: str) -> None:
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    assert [n for n in module.__all__ if not hasattr(module, n)] == []


def test_every_op_function_and_dtype_is_at_the_top() -> None:
    names = set(ops.__all__) | {"bool_" if d.name == "bool" else d.name for d in dtypes.ALL}
    assert names <= set(runnel.__all__)


def test_classes_of_nn_and_optim_are_documented() -> None:
    named = [(f"{module.__name__}.{name}", getattr(module, name)) for module in (nn, optim) for name in module.__all__]
    silent = [name for name, value in named if not value.__doc__]
    assert silent == []
