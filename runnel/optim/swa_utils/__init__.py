"""Averages of a model's Parameters over training, and the rate that goes with them, with PyTorch's names."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from runnel.core import public
from runnel.optim.swa_utils.averages import (
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
)
from runnel.optim.swa_utils.rate import SWALR
from runnel.optim.swa_utils.statistics import update_bn

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

public.offer(globals(), __all__)
del public
