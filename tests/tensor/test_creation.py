"""Functions that make tensors: what they have in common."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import runnel as rn
from runnel.core.errors import GradientError


@pytest.mark.parametrize(
    "make",
    [
        lambda **given: rn.tensor([1.0, 2.0, 3.0], **given),
        lambda **given: rn.full(3, 2.0, **given),
        lambda **given: rn.zeros(3, **given),
        lambda **given: rn.ones(3, **given),
        lambda **given: rn.empty(3, **given),
        lambda **given: rn.arange(3.0, **given),
        lambda **given: rn.linspace(0, 1, 3, **given),
        lambda **given: rn.eye(3, **given),
        lambda **given: rn.rand(3, **given),
        lambda **given: rn.randn(3, **given),
        lambda **given: rn.rand_like(rn.zeros(3), **given),
        lambda **given: rn.randn_like(rn.zeros(3), **given),
    ],
)
def test_new_tensors_are_leaves_on_request(make: Callable[..., rn.Tensor]) -> None:
    assert not make().requires_grad and not make(requires_grad=False).requires_grad

    def gradient() -> rn.Tensor:
        leaf = make(requires_grad=True)
        assert leaf.requires_grad and leaf.is_leaf
        (leaf * 3).sum().backward()
        return leaf.grad

    for function in (gradient, rn.compile(gradient)):
        assert set(function().numpy().ravel().tolist()) == {3.0}


def test_integers_are_no_leaves() -> None:
    with pytest.raises(GradientError, match="the dtype must be floating"):
        rn.arange(3, requires_grad=True)
    assert rn.zeros_like(rn.zeros(3), requires_grad=True).requires_grad
