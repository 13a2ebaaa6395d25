"""Products in lower precision on GPUs, of which there are none."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.running import (
        GradScaler,
        autocast_on_gpu as autocast,
        custom_autocast as custom_bwd,
        custom_autocast as custom_fwd,
    )

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
_LATE = {
    "GradScaler": "runnel.compat.functions.running:GradScaler",
    "autocast": "runnel.compat.functions.running:autocast_on_gpu",
    "custom_bwd": "runnel.compat.functions.running:custom_autocast",
    "custom_fwd": "runnel.compat.functions.running:custom_autocast",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
