"""A library that is not used."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.backends import is_absent as is_available

__all__ = ["is_available"]
_LATE = {
    "is_available": "runnel.compat.functions.backends:is_absent",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
