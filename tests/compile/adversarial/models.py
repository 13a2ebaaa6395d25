"""A module whose attributes, submodules and state change, and how its calls are told."""

from __future__ import annotations

from typing import Any

import numpy as np

import runnel as rn
from runnel import nn
from tests.compile.adversarial.inputs import warm


def rows() -> rn.Tensor:
    return rn.asarray(np.arange(12, dtype=np.float32).reshape(3, 4) / 7)


class Scaled(nn.Module):
    def __init__(self, scale: Any = 2.0) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.config = {"scale": scale, "deep": {"shift": [1.0, 2.0]}}
        self.scale = scale

    def forward(self, x: Any) -> Any:
        return self.layer(x) * self.config["scale"]


def story_of(model: Any, *changes: Any, arguments: Any = None, state: Any = None) -> Any:
    """Calls of a model, and each change with calls behind it."""
    arguments = rows() if arguments is None else arguments
    steps = warm(arguments)
    for change in changes:
        steps += [change, *warm(arguments)]
    return (lambda x: model(x)), steps, state or (lambda: model)
