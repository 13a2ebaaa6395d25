"""Data, and values that are computed again."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.torch.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
_LATE = {
    "checkpoint": "runnel.compat.torch.utils:checkpoint",
    "data": "runnel.compat.torch.utils:data",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
