"""Gradients that users set: they have the shape of what they belong to."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import GradientError
from runnel.nn import functional as F


def test_a_gradient_of_another_shape_is_refused_and_nothing_changes() -> None:
    leaf = rn.ones((2, 3)).requires_grad_()
    unnamed, named = rn.Variable(np.ones(4)), rn.Parameter(np.ones(4), name="w")
    for owner, described in ((leaf, "a tensor of shape"), (unnamed, "a Variable of shape"), (named, "Parameter 'w'")):
        owner.grad = rn.ones(owner.shape)
        with pytest.raises(GradientError, match=described):
            owner.grad = rn.ones((7,))
        assert owner.grad is not None and owner.grad.shape == owner.shape
        owner.grad = None
        assert owner.grad is None


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_at_kinks_are_those_of_one_side(compiled: bool) -> None:
    def slopes(x: rn.Tensor) -> tuple[rn.Tensor, ...]:
        activations = (F.elu, F.selu, lambda y: F.elu(y, 0.5))
        return (*[rn.grad(lambda y, f=f: f(y).sum())(x) for f in activations], rn.grad(lambda y: rn.std(y * 0 + 1))(x))

    actual = (rn.compile(slopes) if compiled else slopes)(rn.asarray(np.array([0.0, -0.0])))
    expected = (1.0, 1.6732632423543772 * 1.0507009873554805, 0.5, 0.0)
    for slope, value in zip(actual, expected, strict=True):
        np.testing.assert_allclose(slope.numpy(), value, rtol=1e-15)
