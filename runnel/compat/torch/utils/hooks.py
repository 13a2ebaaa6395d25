"""What hooks are removed by."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.inner_names import RemovableHandle

__all__ = ["RemovableHandle"]
_LATE = {
    "RemovableHandle": "runnel.compat.functions.inner_names:RemovableHandle",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
