"""Times of stretches of a program."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.profiling import profile, record_function

__all__ = ["profile", "record_function"]
_LATE = {
    "profile": "runnel.compat.functions.profiling:profile",
    "record_function": "runnel.compat.functions.profiling:record_function",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
