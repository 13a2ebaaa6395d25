"""Comparison in tests."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.closeness import assert_close

__all__ = ["assert_close"]
_LATE = {
    "assert_close": "runnel.compat.functions.closeness:assert_close",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
