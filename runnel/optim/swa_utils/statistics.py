"""Statistics of batch normalisations, computed anew for averaged Parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from runnel.nn.module import Module
from runnel.nn.normalization import BatchNorm
from runnel.tensor.grad_mode import no_grad


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Run ``model`` over ``loader``, so that the statistics of its batch normalisations are averages of all batches. Of
    a batch that is a list or tuple the first item is the input."""
    layers = [layer for layer in model.modules() if isinstance(layer, BatchNorm) and layer.running_mean is not None]
    if not layers:
        return
    training, momenta = {m: m.training for m in model.modules()}, [layer.momentum for layer in layers]
    for layer in layers:
        _forget(layer)
        layer.momentum = None
    model.train()
    try:
        with no_grad():
            for batch in loader:
                model(batch[0] if isinstance(batch, list | tuple) else batch)
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        for module, was in training.items():
            module.training = was


def _forget(layer: BatchNorm) -> None:
    """Begin the running statistics anew."""
    for buffer, value in ((layer.running_mean, 0.0), (layer.running_var, 1.0), (layer.num_batches_tracked, 0)):
        if buffer is not None:
            buffer.assign(np.full(buffer.shape, value, buffer.dtype.numpy))
