"""Settings that have no effect: attributes can be set."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.backends import enabled, is_absent as is_available, strategy

__all__ = ["enabled", "is_available", "strategy"]
_LATE = {
    "enabled": "runnel.compat.functions.backends:enabled",
    "is_available": "runnel.compat.functions.backends:is_absent",
    "strategy": "runnel.compat.functions.backends:strategy",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
