"""Keras' way to train (keras.io): ``import runnel.compat.keras as keras``, then ``compile``, ``fit``, ``evaluate`` and
``predict``, by a :class:`runnel.train.Trainer`."""

from runnel.compat.keras import (
    activations as activations,
    callbacks as callbacks,
    layers as layers,
    losses as losses,
    metrics as metrics,
    optimizers as optimizers,
)
from runnel.compat.keras.models import Model as Model, Sequential as Sequential
from runnel.compat.keras.symbols import Input as Input
from runnel.core import public

public.offer(globals(), ("Input", "Model", "Sequential"))
del public
