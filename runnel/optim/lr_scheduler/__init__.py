"""Learning-rate schedules, with PyTorch's names, arguments and saved states."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from runnel.core import public
from runnel.optim.lr_scheduler.annealing import CosineAnnealingLR, CosineAnnealingWarmRestarts
from runnel.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from runnel.optim.lr_scheduler.cyclic import CyclicLR
from runnel.optim.lr_scheduler.decay import ConstantLR, ExponentialLR, LinearLR, MultiStepLR, PolynomialLR, StepLR
from runnel.optim.lr_scheduler.functions import LambdaLR, MultiplicativeLR
from runnel.optim.lr_scheduler.one_cycle import OneCycleLR
from runnel.optim.lr_scheduler.plateau import ReduceLROnPlateau
from runnel.optim.lr_scheduler.scheduler import LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

public.offer(globals(), __all__)
del public
