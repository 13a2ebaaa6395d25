"""The names that the workloads are written in: PyTorch's, from PyTorch or from Runnel, as ``WORKLOADS_IN`` says."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[], Any]

if os.environ.get("WORKLOADS_IN") == "torch":
    import torch
    import torch.nn.functional as F
    from torch import nn

    def compiled(function: Any) -> Any:
        """PyTorch's side runs eagerly."""
        return function

    def scan(function: Any, carry: Any, rows: tuple[Any, ...]) -> tuple[Any, Any]:
        """Call the function for each row, as PyTorch's users write it."""
        outputs = []
        for row in zip(*rows, strict=True):
            carry, output = function(carry, row)
            outputs.append(output)
        return carry, torch.stack(outputs)

else:
    import runnel as rn
    import runnel.compat.torch as torch
    import runnel.compat.torch.nn.functional as F
    from runnel.compat.torch import nn

    compiled, scan = rn.compile, rn.scan


def draws(*shape: int, seed: int = 0) -> Any:
    """Return normal numbers."""
    return torch.as_tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def ints(below: int, *shape: int, seed: int = 0) -> Any:
    """Return whole numbers from 0."""
    return torch.as_tensor(np.random.default_rng(seed).integers(0, below, shape))


def trained(loss: Any, parameters: Any, *data: Any, optimizer: str = "Adam", eager: bool = False) -> Step:
    """Return a whole training step: forward, backward, update."""
    updated = getattr(torch.optim, optimizer)(list(parameters), lr=1e-3)

    def step(*data: Any) -> Any:
        updated.zero_grad()
        value = loss(*data)
        value.backward()
        updated.step()
        return value

    run = step if eager else compiled(step)
    return lambda: run(*data)


def inferred(model: Any, *data: Any) -> Step:
    """Return a call of a model in eval mode, without gradients."""
    model.eval()

    def step(*data: Any) -> Any:
        with torch.no_grad():
            return model(*data)

    run = compiled(step)
    return lambda: run(*data)


__all__ = ["F", "Step", "compiled", "draws", "inferred", "ints", "nn", "scan", "torch", "trained"]
