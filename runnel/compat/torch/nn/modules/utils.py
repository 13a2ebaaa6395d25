"""Networks: modules."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.inner_names import _pair, _quadruple, _single, _triple

__all__ = ["_pair", "_quadruple", "_single", "_triple"]
_LATE = {
    "_pair": "runnel.compat.functions.inner_names:_pair",
    "_quadruple": "runnel.compat.functions.inner_names:_quadruple",
    "_single": "runnel.compat.functions.inner_names:_single",
    "_triple": "runnel.compat.functions.inner_names:_triple",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.nn",))
del TYPE_CHECKING, public
