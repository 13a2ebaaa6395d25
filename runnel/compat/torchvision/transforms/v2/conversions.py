"""Conversions of images, and mixtures of the images of a batch, for ``transforms.v2``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runnel.compat.torchvision.transforms import images
from runnel.core import dtypes
from runnel.core.errors import ShapeError
from runnel.data.randomness import collate_rng
from runnel.nn.module import Module
from runnel.ops.indexing.gather import one_hot
from runnel.ops.shapes.pieces import roll
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods


class Transform(Module):
    """The base of your transforms: define ``transform(inpt, params)``, and ``make_params(flat_inputs)`` if needed."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Return what all inputs of a call share, such as random numbers."""
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Return one input changed."""
        raise NotImplementedError(f"[{type(self).__name__}] a Transform defines transform(inpt, params).")

    def forward(self, *inputs: Any) -> Any:
        params = self.make_params(list(inputs))
        changed = tuple(
            self.transform(x, params) if isinstance(x, ArrayMethods) or hasattr(x, "getbands") else x for x in inputs
        )
        return changed[0] if len(changed) == 1 else changed


def to_image(inpt: Any) -> Any:
    """Return an image of Pillow, an array (H, W, C) or a tensor as a tensor (C, H, W) with the same numbers."""
    if isinstance(inpt, np.ndarray):
        pixels = inpt[:, :, None] if inpt.ndim == 2 else inpt
        return asarray(np.ascontiguousarray(np.moveaxis(pixels, -1, -3)), copy=False)
    if isinstance(inpt, ArrayMethods):
        return inpt
    return images.pil_to_tensor(inpt)


def to_dtype(inpt: Any, dtype: Any = dtypes.float32, scale: bool = False) -> Any:
    """Return a tensor of another dtype; ``scale`` maps the range of integers to [0, 1]."""
    return images.convert_image_dtype(inpt, dtype) if scale else inpt.to(dtypes.as_dtype(dtype))


def grayscale_to_rgb(inpt: Any) -> Any:
    """Return an image of one channel with three equal ones."""
    if images.is_pillow(inpt):
        return inpt.convert("RGB")
    return inpt.expand(*inpt.shape[:-3], 3, *inpt.shape[-2:]) if inpt.shape[-3] == 1 else inpt


class ToImage(Transform):
    """:func:`to_image` of each image."""

    def forward(self, *inputs: Any) -> Any:
        changed = tuple(to_image(x) if hasattr(x, "getbands") or isinstance(x, np.ndarray) else x for x in inputs)
        return changed[0] if len(changed) == 1 else changed


class ToPureTensor(Transform):
    """The image itself: tensors have no kinds here."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt


class Identity(ToPureTensor):
    """The image itself."""


class RGB(Transform):
    """The image with three channels."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return grayscale_to_rgb(inpt)


class ToDtype(Transform):
    """:func:`to_dtype` of each tensor; Pillow's images pass."""

    def __init__(self, dtype: Any, scale: bool = False) -> None:
        super().__init__()
        self.dtype = dtypes.as_dtype(dtype)
        self.scale = scale

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return to_dtype(inpt, self.dtype, self.scale) if isinstance(inpt, ArrayMethods) else inpt


class _Mixing(Module):
    """A mixture of each image with the previous one of a batch, and of their labels (N,) or (N, num_classes)."""

    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None) -> None:
        super().__init__()
        self.alpha, self.num_classes = alpha, num_classes

    def forward(self, inputs: Any, labels: Any) -> tuple[Any, Any]:
        if inputs.ndim != 4:
            raise ShapeError(
                f"[{type(self).__name__}] images must be a batch (N, C, H, W); got {tuple(inputs.shape)}. Call it "
                "after the DataLoader or in its collate_fn."
            )
        if labels.ndim == 1:
            if self.num_classes is None:
                raise ValueError(f"[{type(self).__name__}] num_classes must be given for labels that are numbers.")
            labels = one_hot(labels, self.num_classes)
        rng = collate_rng()
        mixed, share = self.mixed(inputs, rng, float(rng.beta(self.alpha, self.alpha)))
        labels = labels.float()
        return mixed, labels * share + roll(labels, 1, 0) * (1 - share)

    def mixed(self, batch: Any, rng: np.random.Generator, share: float) -> tuple[Any, float]:
        """Return the mixed images, and the share of each image itself."""
        raise NotImplementedError


class MixUp(_Mixing):
    """Images as weighted sums (H. Zhang et al., "mixup", 2018)."""

    def mixed(self, batch: Any, rng: np.random.Generator, share: float) -> tuple[Any, float]:
        return batch * share + roll(batch, 1, 0) * (1 - share), share


class CutMix(_Mixing):
    """Images with a rectangle of another (S. Yun et al., "CutMix", 2019)."""

    def mixed(self, batch: Any, rng: np.random.Generator, share: float) -> tuple[Any, float]:
        height, width = batch.shape[-2:]
        x, y = int(rng.integers(width)), int(rng.integers(height))
        half = 0.5 * math.sqrt(1.0 - share)
        left, right = max(x - int(half * width), 0), min(x + int(half * width), width)
        top, bottom = max(y - int(half * height), 0), min(y + int(half * height), height)
        mixed = batch.clone()
        mixed[..., top:bottom, left:right] = roll(batch, 1, 0)[..., top:bottom, left:right]
        return mixed, 1.0 - (right - left) * (bottom - top) / (height * width)
