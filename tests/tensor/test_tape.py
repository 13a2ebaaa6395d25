"""The tape: what a backward pass adds up, lets go of and leaves alone."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import GradientError
from runnel.tensor import tape


def leaf(*values: float) -> rn.Tensor:
    return rn.tensor(np.array(values, np.float64), requires_grad=True)


def test_a_gradient_is_a_plain_value_unless_asked_otherwise() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0] and not x.grad.requires_grad
    x.grad = None
    (x * x).sum().backward(create_graph=True)
    assert x.grad.requires_grad


def test_paths_that_meet_are_added_up_in_every_place() -> None:
    x = leaf(3.0)
    y = x * 2.0
    (y * y + y * x + x).sum().backward()  # 4x² + 2x² + x
    assert x.grad.tolist() == [12.0 * 3.0 + 1.0]
    (x * 1.0).sum().backward()
    assert x.grad.tolist() == [38.0], "backward adds to what is there"


def test_what_lies_below_a_wanted_tensor_is_not_consumed() -> None:
    x = leaf(1.0, 2.0)
    middle = x * x
    top = (middle * 3.0).sum()
    actual = tape.cotangents([top], [rn.asarray(np.float64(1.0))], [middle])
    assert actual[id(middle)][1].tolist() == [3.0, 3.0]
    middle.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    with pytest.raises(GradientError, match="freed by an earlier backward"):
        top.backward()
