"""A device that is not there."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.running import is_available, is_available as is_built

__all__ = ["is_available", "is_built"]
_LATE = {
    "is_available": "runnel.compat.functions.running:is_available",
    "is_built": "runnel.compat.functions.running:is_available",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
