"""Types of arguments."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.inner_names import Device, Number

__all__ = ["Device", "Number"]
_LATE = {
    "Device": "runnel.compat.functions.inner_names:Device",
    "Number": "runnel.compat.functions.inner_names:Number",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
