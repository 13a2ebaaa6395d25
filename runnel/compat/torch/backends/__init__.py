"""What PyTorch computes with: settings that have no effect here."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.torch.backends import cudnn, mps

__all__ = ["cudnn", "mps"]
_LATE = {
    "cudnn": "runnel.compat.torch.backends:cudnn",
    "mps": "runnel.compat.torch.backends:mps",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
