"""Accelerators, of which there are none."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.running import (
        current_accelerator,
        device_count,
        is_available,
        no_effect as empty_cache,
        no_effect as synchronize,
    )

__all__ = ["current_accelerator", "device_count", "empty_cache", "is_available", "synchronize"]
_LATE = {
    "current_accelerator": "runnel.compat.functions.running:current_accelerator",
    "device_count": "runnel.compat.functions.running:device_count",
    "empty_cache": "runnel.compat.functions.running:no_effect",
    "is_available": "runnel.compat.functions.running:is_available",
    "synchronize": "runnel.compat.functions.running:no_effect",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
