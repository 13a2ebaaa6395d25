"""Modules as functions of their Parameters."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.nn.rare.functional_calls import functional_call

__all__ = ["functional_call"]
_LATE = {
    "functional_call": "runnel.nn.rare.functional_calls:functional_call",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
