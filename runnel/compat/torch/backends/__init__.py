"""What PyTorch computes with: settings that have no effect here."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.torch.backends import cuda, cudnn, mkldnn, mps

__all__ = ["cuda", "cudnn", "mkldnn", "mps"]
_LATE = {
    "cuda": "runnel.compat.torch.backends:cuda",
    "cudnn": "runnel.compat.torch.backends:cudnn",
    "mkldnn": "runnel.compat.torch.backends:mkldnn",
    "mps": "runnel.compat.torch.backends:mps",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
