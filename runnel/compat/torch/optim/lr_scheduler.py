"""Learning-rate schedules."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.inner_names import _LRScheduler

__all__ = ["_LRScheduler"]
_LATE = {
    "_LRScheduler": "runnel.compat.functions.inner_names:_LRScheduler",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.optim.lr_scheduler",))
del TYPE_CHECKING, public
