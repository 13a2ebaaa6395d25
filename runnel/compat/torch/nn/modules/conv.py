"""Networks: modules."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.inner_names import _ConvNd

__all__ = ["_ConvNd"]
_LATE = {
    "_ConvNd": "runnel.compat.functions.inner_names:_ConvNd",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.nn",))
del TYPE_CHECKING, public
