"""Optimizers and learning-rate schedules."""

from runnel.core import public
from runnel.optim.adagrad import Adagrad
from runnel.optim.adam import Adam, AdamW
from runnel.optim.optimizer import Optimizer
from runnel.optim.rmsprop import RMSprop
from runnel.optim.schedulers import CosineAnnealingLR, LinearLR, LRScheduler, StepLR
from runnel.optim.sgd import SGD
from runnel.optim.sparse import SparseAdam

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "CosineAnnealingLR",
    "LRScheduler",
    "LinearLR",
    "Optimizer",
    "RMSprop",
    "SparseAdam",
    "StepLR",
]

public.offer(globals(), __all__)
del public
