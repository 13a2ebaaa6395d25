"""``collate_fn``s that mix the samples of a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.core.errors import ArgumentError
from runnel.data.collating import default_collate
from runnel.data.randomness import collate_rng
from runnel.tensor.creation import asarray


class _Mixing:
    """A ``collate_fn`` for pairs (image, label)."""

    def __init__(self, num_classes: int, alpha: float = 1.0) -> None:
        if not alpha > 0 or num_classes < 1:
            raise ArgumentError(
                f"[{type(self).__name__}] alpha must be above 0 and num_classes 1 or more; got {alpha!r} and "
                f"{num_classes!r}."
            )
        self.num_classes = num_classes
        self.alpha = alpha

    def __call__(self, batch: Sequence[Any]) -> list[Any]:
        images, labels = (part.numpy() for part in default_collate(batch))
        rng = collate_rng()
        share = float(rng.beta(self.alpha, self.alpha))
        mixed, share = self.mixed(images, rng, share)
        targets = np.eye(self.num_classes, dtype=np.float32)[labels]
        targets = np.float32(share) * targets + np.float32(1 - share) * np.roll(targets, 1, axis=0)
        return [asarray(mixed, copy=False), asarray(targets, copy=False)]

    def mixed(self, images: np.ndarray, rng: np.random.Generator, share: float) -> tuple[np.ndarray, float]:
        """Mix each image with the previous one; return the images and the share of each image itself."""
        raise NotImplementedError


class MixUp(_Mixing):
    """Mix each image and label with the previous one of the batch, with weights λ and 1 - λ: a ``collate_fn``.

    λ is drawn from Beta(alpha, alpha) for each batch (H. Zhang et al., "mixup: beyond empirical risk minimization",
    2018). Labels become probabilities: float32 (N, num_classes).
    """

    def mixed(self, images: np.ndarray, rng: np.random.Generator, share: float) -> tuple[np.ndarray, float]:
        weight = images.dtype.type(share)
        return weight * images + (1 - weight) * np.roll(images, 1, axis=0), share


class CutMix(_Mixing):
    """Replace a rectangle of each image by the previous image's, and mix the labels by area: a ``collate_fn``.

    The rectangle has 1 - λ of the area before it is cut at the borders (S. Yun et al., "CutMix", 2019). Labels become
    probabilities: float32 (N, num_classes).
    """

    def mixed(self, images: np.ndarray, rng: np.random.Generator, share: float) -> tuple[np.ndarray, float]:
        height, width = images.shape[2:]
        row, column = int(rng.integers(height)), int(rng.integers(width))
        half = math.sqrt(1 - share) / 2
        top, bottom = max(row - int(half * height), 0), min(row + int(half * height), height)
        left, right = max(column - int(half * width), 0), min(column + int(half * width), width)
        mixed = images.copy()
        mixed[:, :, top:bottom, left:right] = np.roll(images, 1, axis=0)[:, :, top:bottom, left:right]
        return mixed, 1 - (bottom - top) * (right - left) / (height * width)
