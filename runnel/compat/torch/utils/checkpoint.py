"""Values that are computed again in backward."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.running import checkpoint, checkpoint_sequential

__all__ = ["checkpoint", "checkpoint_sequential"]
_LATE = {
    "checkpoint": "runnel.compat.functions.running:checkpoint",
    "checkpoint_sequential": "runnel.compat.functions.running:checkpoint_sequential",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
