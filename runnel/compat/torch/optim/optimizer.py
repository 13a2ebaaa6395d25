"""Optimizers."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.inner_names import required

__all__ = ["required"]
_LATE = {
    "required": "runnel.compat.functions.inner_names:required",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.optim",))
del TYPE_CHECKING, public
