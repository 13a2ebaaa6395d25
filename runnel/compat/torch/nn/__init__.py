"""Networks: modules and their functions."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.parallel import DataParallel
    from runnel.compat.torch.nn import attention, functional, init, modules, parallel, parameter, utils

__all__ = ["DataParallel", "attention", "functional", "init", "modules", "parallel", "parameter", "utils"]
_LATE = {
    "DataParallel": "runnel.compat.functions.parallel:DataParallel",
    "attention": "runnel.compat.torch.nn:attention",
    "functional": "runnel.compat.torch.nn:functional",
    "init": "runnel.compat.torch.nn:init",
    "modules": "runnel.compat.torch.nn:modules",
    "parallel": "runnel.compat.torch.nn:parallel",
    "parameter": "runnel.compat.torch.nn:parameter",
    "utils": "runnel.compat.torch.nn:utils",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.nn",))
del TYPE_CHECKING, public
