"""Data, and values computed again."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.torch.utils import _pytree, checkpoint, data, dlpack, hooks, tensorboard

__all__ = ["_pytree", "checkpoint", "data", "dlpack", "hooks", "tensorboard"]
_LATE = {
    "_pytree": "runnel.compat.torch.utils:_pytree",
    "checkpoint": "runnel.compat.torch.utils:checkpoint",
    "data": "runnel.compat.torch.utils:data",
    "dlpack": "runnel.compat.torch.utils:dlpack",
    "hooks": "runnel.compat.torch.utils:hooks",
    "tensorboard": "runnel.compat.torch.utils:tensorboard",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
