"""Differentiation as PyTorch spells it: gradients along the tape, and derivatives of one's own."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.transforms.library.anomaly import detect_anomaly, set_detect_anomaly
    from runnel.transforms.library.checking import gradcheck, gradgradcheck
    from runnel.transforms.library.function import Function, once_differentiable
    from runnel.transforms.library.gradients_of import backward, grad

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "once_differentiable",
    "set_detect_anomaly",
]
_LATE = {
    "Function": "runnel.transforms.library.function:Function",
    "backward": "runnel.transforms.library.gradients_of:backward",
    "detect_anomaly": "runnel.transforms.library.anomaly:detect_anomaly",
    "grad": "runnel.transforms.library.gradients_of:grad",
    "gradcheck": "runnel.transforms.library.checking:gradcheck",
    "gradgradcheck": "runnel.transforms.library.checking:gradgradcheck",
    "once_differentiable": "runnel.transforms.library.function:once_differentiable",
    "set_detect_anomaly": "runnel.transforms.library.anomaly:set_detect_anomaly",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
