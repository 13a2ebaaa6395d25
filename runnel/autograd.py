"""Differentiation as PyTorch spells it: gradients along the tape, and custom derivatives."""

from runnel.core.namespaces import namespace

NAMES = {
    "Function": "runnel.transforms.autograd:Function",
    "backward": "runnel.transforms.autograd:backward",
    "detect_anomaly": "runnel.transforms.autograd:detect_anomaly",
    "grad": "runnel.transforms.autograd:grad",
    "gradcheck": "runnel.transforms.gradcheck:gradcheck",
    "gradgradcheck": "runnel.transforms.gradcheck:gradgradcheck",
    "once_differentiable": "runnel.transforms.autograd:once_differentiable",
    "set_detect_anomaly": "runnel.transforms.autograd:set_detect_anomaly",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
