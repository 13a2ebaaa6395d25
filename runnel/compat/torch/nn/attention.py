"""How attention is computed, which the compiler chooses."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.backends import SDPBackend, sdpa_kernel

__all__ = ["SDPBackend", "sdpa_kernel"]
_LATE = {
    "SDPBackend": "runnel.compat.functions.backends:SDPBackend",
    "sdpa_kernel": "runnel.compat.functions.backends:sdpa_kernel",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
