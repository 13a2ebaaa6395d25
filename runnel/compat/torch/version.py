"""The version of PyTorch whose names these are."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.backends import __version__, cuda, debug, git_version, hip, xpu

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]
_LATE = {
    "__version__": "runnel.compat.functions.backends:__version__",
    "cuda": "runnel.compat.functions.backends:cuda",
    "debug": "runnel.compat.functions.backends:debug",
    "git_version": "runnel.compat.functions.backends:git_version",
    "hip": "runnel.compat.functions.backends:hip",
    "xpu": "runnel.compat.functions.backends:xpu",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
