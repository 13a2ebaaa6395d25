"""Transforms of images, under torchvision's names."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from runnel.core import public
from runnel.data.transforms.base import Compose, Transform
from runnel.data.transforms.geometry import (
    CenterCrop,
    Pad,
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
)
from runnel.data.transforms.mixing import CutMix, MixUp
from runnel.data.transforms.values import ColorJitter, Grayscale, Normalize, ToTensor

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "CutMix",
    "Grayscale",
    "MixUp",
    "Normalize",
    "Pad",
    "RandomCrop",
    "RandomErasing",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Resize",
    "ToTensor",
    "Transform",
]

public.offer(globals(), __all__)
del public
