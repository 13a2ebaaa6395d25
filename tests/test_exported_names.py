"""``runnel.__all__`` is what ``import runnel`` offers: every public name, in order, and nothing that is missing."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

import runnel
from runnel import nn, optim
from runnel.core import dtypes
from runnel.nn import functional

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


def test_the_top_has_few_names_and_shares_them_with_functional() -> None:
    assert len(runnel.__all__) <= 310
    assert {d.name for d in dtypes.ALL} <= {*runnel.__all__}
    shared = set(runnel.__all__) & set(functional.__all__)
    assert len(shared) > 10 and [n for n in shared if getattr(runnel, n) is not getattr(functional, n)] == []


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("polyfit", "compat.numpy"),
        ("mm", "compat.torch"),
        ("pad", "nn.functional"),
        ("erfc", "special"),
        ("conv", "ops"),
    ],
)
def test_a_missing_name_says_where_it_is(name: str, place: str) -> None:
    with pytest.raises(AttributeError, match=rf"there is no '{name}'; write runnel.{place}.{name}"):
        getattr(runnel, name)


def test_classes_of_nn_and_optim_are_documented() -> None:
    named = [(f"{module.__name__}.{name}", getattr(module, name)) for module in (nn, optim) for name in module.__all__]
    silent = [name for name, value in named if not value.__doc__]
    assert silent == []
