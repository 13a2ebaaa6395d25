"""Signals."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.torch.signal import windows

__all__ = ["windows"]
_LATE = {
    "windows": "runnel.compat.torch.signal:windows",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
