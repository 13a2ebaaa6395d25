"""Optimizers."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.torch.optim import (
        adadelta,
        adagrad,
        adam,
        adamax,
        adamw,
        asgd,
        lbfgs,
        lr_scheduler,
        nadam,
        optimizer,
        radam,
        rmsprop,
        rprop,
        sgd,
        sparse_adam,
        swa_utils,
    )

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "lbfgs",
    "lr_scheduler",
    "nadam",
    "optimizer",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
    "sparse_adam",
    "swa_utils",
]
_LATE = {
    "adadelta": "runnel.compat.torch.optim:adadelta",
    "adagrad": "runnel.compat.torch.optim:adagrad",
    "adam": "runnel.compat.torch.optim:adam",
    "adamax": "runnel.compat.torch.optim:adamax",
    "adamw": "runnel.compat.torch.optim:adamw",
    "asgd": "runnel.compat.torch.optim:asgd",
    "lbfgs": "runnel.compat.torch.optim:lbfgs",
    "lr_scheduler": "runnel.compat.torch.optim:lr_scheduler",
    "nadam": "runnel.compat.torch.optim:nadam",
    "optimizer": "runnel.compat.torch.optim:optimizer",
    "radam": "runnel.compat.torch.optim:radam",
    "rmsprop": "runnel.compat.torch.optim:rmsprop",
    "rprop": "runnel.compat.torch.optim:rprop",
    "sgd": "runnel.compat.torch.optim:sgd",
    "sparse_adam": "runnel.compat.torch.optim:sparse_adam",
    "swa_utils": "runnel.compat.torch.optim:swa_utils",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.optim",))
del TYPE_CHECKING, public
