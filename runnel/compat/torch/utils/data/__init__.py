"""Data sets and batches."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.torch.utils.data import dataloader, dataset, distributed, sampler

__all__ = ["dataloader", "dataset", "distributed", "sampler"]
_LATE = {
    "dataloader": "runnel.compat.torch.utils.data:dataloader",
    "dataset": "runnel.compat.torch.utils.data:dataset",
    "distributed": "runnel.compat.torch.utils.data:distributed",
    "sampler": "runnel.compat.torch.utils.data:sampler",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.data",))
del TYPE_CHECKING, public
