"""gradcheck: right gradients pass, wrong ones are told with both Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import GradientError


def leaf(*shape: int) -> rn.Tensor:
    return rn.tensor(np.random.default_rng(1).normal(size=shape), requires_grad=True)


class Cube(rn.autograd.Function):
    factor = 3.0

    @staticmethod
    def forward(ctx: Any, x: rn.Tensor) -> rn.Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @classmethod
    def backward(cls, ctx: Any, g: rn.Tensor) -> Any:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        return Cube.factor * x * x * g


def test_right_gradients_pass() -> None:
    assert rn.autograd.gradcheck(Cube.apply, leaf(3))
    assert rn.autograd.gradcheck(lambda x, y: (x @ y, x.sum(), rn.argmax(x)), (leaf(2, 3), leaf(3, 1)))
    assert rn.autograd.gradcheck(lambda x: rn.ones(2, dtype="float64"), leaf(2))


def test_wrong_gradients_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cube, "factor", 2.0)
    assert not rn.autograd.gradcheck(Cube.apply, (leaf(3),), raise_exception=False)
    with pytest.raises(GradientError, match=r"(?s)\[gradcheck\] the gradient of result 0 by input 0 is\n.*differences"):
        rn.autograd.gradcheck(Cube.apply, (leaf(3),))
    with pytest.raises(GradientError, match=r"\[gradcheck\] at least one input must require a gradient"):
        rn.autograd.gradcheck(Cube.apply, (leaf(3).detach(),))
