"""Arrays of other libraries."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.inner_names import to_dlpack

__all__ = ["to_dlpack"]
_LATE = {
    "to_dlpack": "runnel.compat.functions.inner_names:to_dlpack",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel",))
del TYPE_CHECKING, public
