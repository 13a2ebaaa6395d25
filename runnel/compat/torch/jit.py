"""Functions and modules as they are."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.running import script, script as freeze, script as trace

__all__ = ["freeze", "script", "trace"]
_LATE = {
    "freeze": "runnel.compat.functions.running:script",
    "script": "runnel.compat.functions.running:script",
    "trace": "runnel.compat.functions.running:script",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
