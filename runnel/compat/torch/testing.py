"""Comparison in tests."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.closeness import assert_close
    from runnel.compat.functions.making import assert_allclose, make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
_LATE = {
    "assert_allclose": "runnel.compat.functions.making:assert_allclose",
    "assert_close": "runnel.compat.functions.closeness:assert_close",
    "make_tensor": "runnel.compat.functions.making:make_tensor",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
