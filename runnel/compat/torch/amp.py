"""Products in lower precision."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.running import (
        GradScaler,
        autocast,
        custom_autocast as custom_bwd,
        custom_autocast as custom_fwd,
        is_autocast_available,
    )

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
_LATE = {
    "GradScaler": "runnel.compat.functions.running:GradScaler",
    "autocast": "runnel.compat.functions.running:autocast",
    "custom_bwd": "runnel.compat.functions.running:custom_autocast",
    "custom_fwd": "runnel.compat.functions.running:custom_autocast",
    "is_autocast_available": "runnel.compat.functions.running:is_autocast_available",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
