"""Networks: modules."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.inner_names import _Loss, _WeightedLoss

__all__ = ["_Loss", "_WeightedLoss"]
_LATE = {
    "_Loss": "runnel.compat.functions.inner_names:_Loss",
    "_WeightedLoss": "runnel.compat.functions.inner_names:_WeightedLoss",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.nn",))
del TYPE_CHECKING, public
