"""What the tape keeps."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.running import save_on_cpu

__all__ = ["save_on_cpu"]
_LATE = {
    "save_on_cpu": "runnel.compat.functions.running:save_on_cpu",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
