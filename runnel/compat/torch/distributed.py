"""Several processes, which there are not."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.running import is_available, is_initialized

__all__ = ["is_available", "is_initialized"]
_LATE = {
    "is_available": "runnel.compat.functions.running:is_available",
    "is_initialized": "runnel.compat.functions.running:is_initialized",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
