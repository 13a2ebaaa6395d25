"""Networks: modules and their functions."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.torch.nn import functional, init, modules, parameter, utils

__all__ = ["functional", "init", "modules", "parameter", "utils"]
_LATE = {
    "functional": "runnel.compat.torch.nn:functional",
    "init": "runnel.compat.torch.nn:init",
    "modules": "runnel.compat.torch.nn:modules",
    "parameter": "runnel.compat.torch.nn:parameter",
    "utils": "runnel.compat.torch.nn:utils",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.nn",))
del TYPE_CHECKING, public
