"""What the processor can do."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.backends import get_cpu_capability

__all__ = ["get_cpu_capability"]
_LATE = {
    "get_cpu_capability": "runnel.compat.functions.backends:get_cpu_capability",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
