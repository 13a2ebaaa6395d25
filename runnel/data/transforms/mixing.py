"""Batches whose samples are mixed with one another."""

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
                f"[{type(self).__name__}] alpha is above 0 and num_classes 1 or more; received {alpha!r} and "
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
        """Each image mixed with the one before it; and the share of its own that it has."""
        raise NotImplementedError


class MixUp(_Mixing):
    """A ``collate_fn``: each image and its label become λ times themselves and 1 - λ times those before them in the
    batch, with one λ of Beta(alpha, alpha) for each batch (H. Zhang et al., "mixup: beyond empirical risk
    minimization", 2018). Labels become probabilities: float32 (N, num_classes)."""

    def mixed(self, images: np.ndarray, rng: np.random.Generator, share: float) -> tuple[np.ndarray, float]:
        weight = images.dtype.type(share)
        return weight * images + (1 - weight) * np.roll(images, 1, axis=0), share


class CutMix(_Mixing):
    """A ``collate_fn``: a rectangle of each image, of 1 - λ of its area before it is cut at the borders, is taken from
    the image before it in the batch, and its label is mixed by areas (S. Yun et al., "CutMix", 2019). Labels become
    probabilities: float32 (N, num_classes)."""

    def mixed(self, images: np.ndarray, rng: np.random.Generator, share: float) -> tuple[np.ndarray, float]:
        height, width = images.shape[2:]
        row, column = int(rng.integers(height)), int(rng.integers(width))
        half = math.sqrt(1 - share) / 2
        top, bottom = max(row - int(half * height), 0), min(row + int(half * height), height)
        left, right = max(column - int(half * width), 0), min(column + int(half * width), width)
        mixed = images.copy()
        mixed[:, :, top:bottom, left:right] = np.roll(images, 1, axis=0)[:, :, top:bottom, left:right]
        return mixed, 1 - (bottom - top) * (right - left) / (height * width)
