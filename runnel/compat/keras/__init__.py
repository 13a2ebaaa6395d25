"""Keras's training interface (keras.io): ``import runnel.compat.keras as keras``.

``compile``, ``fit``, ``evaluate`` and ``predict`` run on a :class:`runnel.train.Trainer`.
"""

from runnel.compat.keras import (
    activations as activations,
    callbacks as callbacks,
    layers as layers,
    losses as losses,
    metrics as metrics,
    optimizers as optimizers,
)
from runnel.compat.keras.layers.base import Input as Input
from runnel.compat.keras.models import Model as Model, Sequential as Sequential
from runnel.core import public

public.offer(globals(), ("Input", "Model", "Sequential"))
del public
