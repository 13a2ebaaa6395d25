"""Sequential, ModuleList and ModuleDict behave as sequences and dicts whose Parameters are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn


def test_sequential_applies_in_order() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Flatten())
    x = rn.asarray(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(net(x).numpy(), rn.tanh(net[0](x)).numpy())


def test_lists_change_and_renumber() -> None:
    a, b, c = nn.Linear(1, 1), nn.ReLU(), nn.Tanh()
    row = nn.ModuleList([a]).extend([c])
    row.insert(1, b)
    assert [type(m).__name__ for m in row] == ["Linear", "ReLU", "Tanh"]
    assert [n for n, _ in row.named_children()] == ["0", "1", "2"]
    row[0] = nn.Linear(2, 2)
    del row[1]
    assert len(row) == 2 and row[-1] is c
    assert [p.name for p in row.parameters()] == ["0.weight", "0.bias"]


def test_a_slice_shares_its_modules() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    tail = net[1:]
    assert isinstance(tail, nn.Sequential) and len(tail) == 2 and tail[1] is net[2]
    assert net[2].weight.name == "2.weight"


@pytest.mark.parametrize(("name", "sentence"), [("a.b", "must not contain a dot"), (1, "a key must be a string")])
@pytest.mark.parametrize("kind", [nn.ModuleDict, nn.ParameterDict])
def test_names_that_cannot_be_are_reported_by_constructors_too(kind: type[Any], name: Any, sentence: str) -> None:
    item = nn.ReLU() if kind is nn.ModuleDict else nn.Parameter([1.0])
    with pytest.raises((KeyError, TypeError)) as caught:
        kind({name: item})
    assert str(caught.value.args[0]).startswith(f"[{kind.__name__}] ") and sentence in str(caught.value)
    assert "cannot be done with" not in str(caught.value)


def test_dict_by_name() -> None:
    named = nn.ModuleDict({"a": nn.Linear(1, 2), "b": nn.ReLU()})
    assert list(named) == ["a", "b"] and "a" in named and len(named) == 2
    assert [n for n, _ in named.named_parameters()] == ["a.weight", "a.bias"]
    del named["a"]
    assert named.keys() == ["b"] and isinstance(named["b"], nn.ReLU)
    with pytest.raises(KeyError, match="must not contain a dot"):
        named["forward"] = nn.ReLU()


@pytest.mark.parametrize("make", [nn.Sequential, lambda x: nn.ModuleList([x]), lambda x: nn.ModuleDict({"a": x})])
def test_only_modules_go_in(make: object) -> None:
    with pytest.raises(TypeError, match=r"must be .*Modules?( or|;| )"):
        make(lambda x: x)  # type: ignore[operator]
