"""Several GPUs, of which there are none."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
_LATE = {
    "DataParallel": "runnel.compat.functions.parallel:DataParallel",
    "data_parallel": "runnel.compat.functions.parallel:data_parallel",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
