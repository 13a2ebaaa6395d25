"""Functions of networks and of tensors give PyTorch's values and gradients, and the same bits compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.torch as torch
from runnel.core.errors import CaptureWarning
from runnel.nn import functional
from tests.suites.pytorch.edges import EDGES
from tests.suites.pytorch.functions import FUNCTIONS
from tests.suites.pytorch.operations import OPERATIONS, UNTRACED
from tests.suites.pytorch.recorded import assert_gradient, assert_like, backward, leaves, recorded, tensors

EVERY = {**FUNCTIONS, **OPERATIONS, **EDGES}
SINGLE = ("F.celu(x, alpha=0.7)", "F.hardsigmoid(x * 3)", "F.hardsigmoid(o)")  # PyTorch's constants are floats there
# PyTorch's have single precision in float64, too; SciPy's agree with ours (tests/special/test_special.py).
ROUGH = ("airy_ai", "bessel_j0(", "bessel_j1(", "bessel_y")


def evaluated(call: str, inputs: dict[str, rn.Tensor]) -> Any:
    return eval(call, {"F": functional, "torch": torch, **inputs})


@pytest.mark.parametrize("call", EVERY)
def test_values_and_gradients(call: str) -> None:
    reference = recorded()["functions"][call]
    inputs = tensors(EVERY[call], call)
    outputs = leaves(evaluated(call, inputs))
    for actual, expected, dtype in zip(outputs, reference["values"], reference["dtypes"], strict=True):
        is_rough = dtype == "float32" or call.startswith(tuple(f"torch.special.{name}" for name in ROUGH))
        assert_like(actual, expected, 1e-6 if is_rough else 1e-10, call)
        assert call in FUNCTIONS or actual.dtype.name == dtype, call
    backward(outputs)
    for name, expected in reference["gradients"].items():
        assert_gradient(inputs[name], expected, 1e-7 if call in SINGLE else 1e-9, f"gradient of {name} in {call}")


@pytest.mark.parametrize("call", [call for call in EVERY if call not in {"F.one_hot(x)", *UNTRACED}])
def test_bits_of_compiled_functions(call: str) -> None:
    """float32, values and gradients."""
    inputs = tensors(EVERY[call], call, "float32")
    function = eval(f"lambda {', '.join(inputs)}: {call}", {"F": functional, "torch": torch})

    def run(*arrays: rn.Tensor) -> list[rn.Tensor]:
        arguments = [x.detach().clone() for x in arrays]
        for x, like in zip(arguments, arrays, strict=True):
            x.requires_grad = like.requires_grad
        outputs = leaves(function(*arguments))
        backward(outputs)
        return [x.detach() for x in outputs] + [x.grad for x in arguments if x.grad is not None]

    for expected, actual in zip(run(*inputs.values()), rn.compile(run)(*inputs.values()), strict=True):
        np.testing.assert_array_equal(actual.numpy(), expected.numpy(), err_msg=call)


def test_shapes_do_not_follow_from_unknown_labels() -> None:
    with pytest.warns(CaptureWarning, match=r"\[one_hot\] num_classes must be given in a compiled function"):
        actual = rn.compile(lambda x: functional.one_hot(x))(rn.asarray([0, 2]))
    assert actual.tolist() == [[1, 0, 0], [0, 0, 1]]
