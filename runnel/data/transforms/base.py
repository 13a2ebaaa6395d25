"""The base of image transforms, which are written for batches and applied to single images as batches of one.

Images are arrays (channels, height, width).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.core.arrays import short_repr
from runnel.core.errors import ArgumentError, ShapeError
from runnel.data.randomness import Draws, sample_draws
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods


class Transform:
    """A function of images. A subclass defines ``many(images, draws)`` for an array (N, C, H, W).

    ``draws.uniform(low, high)`` draws one number for each image. A single image is a batch of one, so a data set can
    transform whole batches with equal results. ``transform(image)`` takes an array or a tensor (C, H, W) and returns
    the same kind; a Pillow image becomes a uint8 array (C, H, W).
    """

    def many(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        """Transform images (N, C, H, W)."""
        raise NotImplementedError(f"[{type(self).__name__}] a Transform defines many(images, draws).")

    def __call__(self, image: Any) -> Any:
        array = as_image(type(self).__name__, image)
        result = self.many(array[None], sample_draws())[0]
        return asarray(result, copy=False) if isinstance(image, ArrayMethods) or self.gives_tensors else result

    @property
    def gives_tensors(self) -> bool:
        """True if single images of any kind become tensors."""
        return False


class Compose(Transform):
    """A sequence of transforms. Functions that are not a :class:`Transform` are called with single images."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image

    def many(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        for transform in self.transforms:
            images = transform.many(images, draws)  # type: ignore[attr-defined]
        return images


def takes_batches(transform: Any) -> bool:
    """Return True if a transform can be applied to whole batches with the same results."""
    if isinstance(transform, Compose):
        return type(transform).__call__ is Compose.__call__ and all(map(takes_batches, transform.transforms))
    return isinstance(transform, Transform) and type(transform).__call__ is Transform.__call__


def as_image(name: str, image: Any) -> np.ndarray:
    """Return an image as an array (C, H, W)."""
    if isinstance(image, ArrayMethods):
        image = image.numpy()
    elif not isinstance(image, np.ndarray):
        if not hasattr(image, "getbands"):
            raise ArgumentError(
                f"[{name}] an image must be an array, a tensor or one of Pillow's; got {short_repr(image)}."
            )
        pixels = np.array(image)
        image = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    if image.ndim == 2:
        image = image[None]
    if image.ndim != 3:
        raise ShapeError(f"[{name}] an image must have shape (channels, height, width); got {image.shape}.")
    array: np.ndarray = image
    return array


def pair(name: str, size: Any) -> tuple[int, int]:
    """Return a size as (height, width)."""
    height, width = (size, size) if isinstance(size, int) else tuple(size) if len(tuple(size)) == 2 else (0, 0)
    if min(height, width) < 1:
        raise ArgumentError(f"[{name}] size must be a number of pixels or (height, width); got {size!r}.")
    return int(height), int(width)


def is_probability(name: str, p: float) -> float:
    """Return ``p`` if it is in [0, 1]."""
    if not 0 <= p <= 1:
        raise ArgumentError(f"[{name}] p must be a probability from 0 to 1; got {p!r}.")
    return p
