"""What PyTorch computes with: settings that have no effect here."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.backends import fp32_precision
    from runnel.compat.torch.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "fp32_precision", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
_LATE = {
    "cpu": "runnel.compat.torch.backends:cpu",
    "cuda": "runnel.compat.torch.backends:cuda",
    "cudnn": "runnel.compat.torch.backends:cudnn",
    "fp32_precision": "runnel.compat.functions.backends:fp32_precision",
    "mkl": "runnel.compat.torch.backends:mkl",
    "mkldnn": "runnel.compat.torch.backends:mkldnn",
    "mps": "runnel.compat.torch.backends:mps",
    "openmp": "runnel.compat.torch.backends:openmp",
    "opt_einsum": "runnel.compat.torch.backends:opt_einsum",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
