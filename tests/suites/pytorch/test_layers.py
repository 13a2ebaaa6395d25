"""The layers of ``nn`` give PyTorch's values and gradients, and hold Parameters and buffers of the same names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.nn import functional
from tests.suites.pytorch import made
from tests.suites.pytorch.layers import LAYERS
from tests.suites.pytorch.recorded import assert_gradient, assert_like, backward, leaves, recorded, tensors


class Torch:
    """The names of PyTorch's that expressions use for weights."""

    arange = staticmethod(lambda *args: np.arange(*args))
    ones = staticmethod(np.ones)
    tensor = staticmethod(np.array)


def layer(made_by: str) -> nn.Module:
    """A layer in float64."""
    return eval(made_by, {"nn": nn, "F": functional, "torch": Torch}).double()


def set_up(made_by: str, module: nn.Module) -> dict[str, rn.Tensor]:
    """Values for Parameters and buffers, as PyTorch's had; the inputs."""
    case = LAYERS[made_by]
    inputs = tensors(case["inputs"], made_by)
    if "Lazy" in made_by:
        called(made_by, module, inputs)
    state = {
        name: made.parameter(f"{made_by} {name}", value.shape) if value.dtype.is_float else value
        for name, value in module.state_dict().items()
    }
    module.load_state_dict(state)
    module.train(case.get("train", True))
    return inputs


def called(made_by: str, module: nn.Module, inputs: dict[str, rn.Tensor]) -> Any:
    return eval(LAYERS[made_by]["call"], {"m": module, "nn": nn, "F": functional, **inputs})


@pytest.mark.parametrize("made_by", LAYERS)
def test_values_gradients_and_names(made_by: str) -> None:
    reference = recorded()["layers"][made_by]
    module = layer(made_by)
    inputs = set_up(made_by, module)
    assert {name: list(value.shape) for name, value in module.state_dict().items()} == reference["state"]
    outputs = leaves(called(made_by, module, inputs))
    for actual, expected in zip(outputs, reference["values"], strict=True):
        assert_like(actual, expected, 1e-10, made_by)
    backward(outputs)
    parameters = dict(module.named_parameters())
    for name, expected in reference["gradients"].items():
        leaf = parameters[name[1:]] if name.startswith(".") else inputs[name]
        assert_gradient(leaf, expected, 1e-7, f"gradient of {name} in {made_by}")
    buffers = dict(module.named_buffers())
    for name, expected in reference["after"].items():
        assert_like(buffers[name], expected, 1e-10, f"{name} of {made_by} after the call")
