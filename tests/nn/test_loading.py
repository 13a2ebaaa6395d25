"""A module's state that does not fit: one error that names everything that is wrong, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import DTypeError, RunnelError, ShapeError, StateError
from tests.tensor.copying.described import described


def net() -> nn.Module:
    rn.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


CASES: dict[str, tuple[Callable[[dict[str, Any]], Any], type[RunnelError], list[str]]] = {
    "missing": (lambda s: s.pop("0.bias"), StateError, ["missing '0.bias'", "strict=False"]),
    "unexpected": (lambda s: s.update(extra=1), StateError, ["unexpected 'extra'"]),
    "misspelt": (
        lambda s: s.update({"0.biass": s.pop("0.bias")}),
        StateError,
        ["missing '0.bias' (is it '0.biass'?)", "unexpected '0.biass' (is it '0.bias'?)"],
    ),
    "a number for a name": (lambda s: s.update({5: rn.ones(3)}), StateError, ["unexpected '5'"]),
    "one shape": (
        lambda s: s.update({"0.bias": rn.ones(4)}),
        ShapeError,
        ["'0.bias' of Sequential must have shape (3,); got (4,)"],
    ),
    "two shapes": (
        lambda s: s.update({"0.bias": rn.ones(4), "1.weight": 1.0}),
        ShapeError,
        ["'0.bias' of Sequential must have shape (3,); got (4,)", "'1.weight' of Sequential must have shape (3,)"],
    ),
    "a dtype": (
        lambda s: s.update({"0.bias": np.ones(3, np.int32)}),
        DTypeError,
        ["'0.bias' of Sequential must be float32; got int32"],
    ),
    "a shape and a dtype": (
        lambda s: s.update({"0.bias": rn.ones(4), "1.bias": np.ones(3, bool)}),
        StateError,
        ["'0.bias' of Sequential must have shape", "'1.bias' of Sequential must be float32; got bool"],
    ),
    "no numbers": (
        lambda s: s.update({"0.bias": "abc"}),
        StateError,
        ["'0.bias' of Sequential must be an array of numbers"],
    ),
    "nothing": (lambda s: s.update({"0.bias": None}), StateError, ["got NoneType"]),
    "complex": (lambda s: s.update({"0.bias": np.ones(3, complex)}), DTypeError, ["complex128"]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("strict", [True, False])
def test_a_wrong_state_changes_nothing(name: str, strict: bool) -> None:
    spoil, kind, sentences = CASES[name]
    target = net()
    state = {path: value + 1 for path, value in target.state_dict().items()}
    spoil(state)
    before = described(target)
    if not strict and ("missing" in sentences[0] or "unexpected" in sentences[0]):
        target.load_state_dict(state, strict=False)
        assert described(target) != before
        return
    with pytest.raises(kind) as caught:
        target.load_state_dict(state, strict=strict)
    message = str(caught.value)
    assert all(sentence in message for sentence in sentences), message
    assert message.startswith("[load_state_dict] ") and message.count("[load_state_dict]") == 1
    assert message.count("Nothing was loaded.") == 1
    assert described(target) == before


@pytest.mark.parametrize("received", [None, [], "abc", 3])
def test_values_that_are_not_a_state(received: Any) -> None:
    with pytest.raises(StateError, match=f"a dict of tensors by path; got {type(received).__name__}"):
        net().load_state_dict(received)


def test_a_generators_state() -> None:
    generator = rn.Generator(4)
    for wrong in ([1, 2], [0.5, 0.5, 0.5], None, "abc", rn.asarray([1, 2, 3])):
        with pytest.raises(RunnelError, match="'state' of Generator"):
            generator.set_state(wrong)
    with pytest.raises(StateError, match="missing 'state'"):
        generator.load_state_dict({})
    assert generator.get_state().tolist() == [4, 0, 0]
    other = rn.Generator(1)
    rn.rand(3, generator=generator)
    other.load_state_dict(generator.state_dict())
    assert rn.rand(3, generator=other).tolist() == rn.rand(3, generator=generator).tolist()


def test_the_default_generators_state() -> None:
    state = rn.get_rng_state()
    one = rn.rand(4).tolist()
    rn.rand(4)
    rn.set_rng_state(state)
    assert rn.rand(4).tolist() == one
