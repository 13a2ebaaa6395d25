"""Optimizers."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.torch.optim import lr_scheduler, optimizer, swa_utils

__all__ = ["lr_scheduler", "optimizer", "swa_utils"]
_LATE = {
    "lr_scheduler": "runnel.compat.torch.optim:lr_scheduler",
    "optimizer": "runnel.compat.torch.optim:optimizer",
    "swa_utils": "runnel.compat.torch.optim:swa_utils",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.optim",))
del TYPE_CHECKING, public
