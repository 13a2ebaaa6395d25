"""Differentiation as PyTorch spells it: gradients along the tape, and derivatives of one's own."""

from runnel.core.namespaces import namespace

NAMES = {
    "Function": "runnel.transforms.library.function:Function",
    "backward": "runnel.transforms.library.gradients_of:backward",
    "detect_anomaly": "runnel.transforms.library.anomaly:detect_anomaly",
    "grad": "runnel.transforms.library.gradients_of:grad",
    "gradcheck": "runnel.transforms.library.checking:gradcheck",
    "gradgradcheck": "runnel.transforms.library.checking:gradgradcheck",
    "once_differentiable": "runnel.transforms.library.function:once_differentiable",
    "set_detect_anomaly": "runnel.transforms.library.anomaly:set_detect_anomaly",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
