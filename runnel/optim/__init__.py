"""Optimizers and learning-rate schedules."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from runnel.core import public
from runnel.optim import lr_scheduler, swa_utils
from runnel.optim.adadelta import Adadelta
from runnel.optim.adafactor import Adafactor
from runnel.optim.adagrad import Adagrad
from runnel.optim.adam import Adam, AdamW
from runnel.optim.adamax import Adamax
from runnel.optim.asgd import ASGD
from runnel.optim.lamb import LAMB
from runnel.optim.lbfgs import LBFGS
from runnel.optim.lion import Lion
from runnel.optim.lr_scheduler.annealing import CosineAnnealingLR
from runnel.optim.lr_scheduler.decay import LinearLR, StepLR
from runnel.optim.lr_scheduler.scheduler import LRScheduler
from runnel.optim.muon import Muon
from runnel.optim.nadam import NAdam
from runnel.optim.optimizer import Optimizer
from runnel.optim.radam import RAdam
from runnel.optim.rmsprop import RMSprop
from runnel.optim.rprop import Rprop
from runnel.optim.sgd import SGD
from runnel.optim.shampoo import Shampoo
from runnel.optim.sparse import SparseAdam

__all__ = [
    "ASGD",
    "LAMB",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "CosineAnnealingLR",
    "LRScheduler",
    "LinearLR",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "Shampoo",
    "SparseAdam",
    "StepLR",
    "lr_scheduler",
    "swa_utils",
]

public.offer(globals(), __all__)
del public
