"""Tensors with tangents."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.forward_mode import dual_level, make_dual, unpack_dual

__all__ = ["dual_level", "make_dual", "unpack_dual"]
_LATE = {
    "dual_level": "runnel.compat.functions.forward_mode:dual_level",
    "make_dual": "runnel.compat.functions.forward_mode:make_dual",
    "unpack_dual": "runnel.compat.functions.forward_mode:unpack_dual",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
