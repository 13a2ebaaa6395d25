"""Transforms of images: each is written for a batch of equal sizes, and takes single images as batches of one.

Images are arrays (channels, height, width), as the data sets of this package and the networks have them.
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
    """A function of images. A subclass defines ``many(images, draws)``: the same for an array (N, C, H, W), with
    random numbers of ``draws`` (``draws.uniform(low, high)`` gives one for each image). A transform of one image is
    then that of a batch of one: so a data set may transform whole batches, with equal results.

    ``transform(image)`` takes an array or a tensor (C, H, W) and gives the same kind; an image of Pillow's becomes a
    uint8 array (C, H, W).
    """

    def many(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        """What becomes of images (N, C, H, W)."""
        raise NotImplementedError(f"[{type(self).__name__}] a Transform defines many(images, draws).")

    def __call__(self, image: Any) -> Any:
        array = as_image(type(self).__name__, image)
        result = self.many(array[None], sample_draws())[0]
        return asarray(result, copy=False) if isinstance(image, ArrayMethods) or self.gives_tensors else result

    @property
    def gives_tensors(self) -> bool:
        """Whether single images become tensors, whatever they were."""
        return False


class Compose(Transform):
    """Transforms one after the other. Those that are no :class:`Transform` are called with single images."""

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
    """Whether a transform can be applied to whole batches, with the results of single images."""
    if isinstance(transform, Compose):
        return type(transform).__call__ is Compose.__call__ and all(map(takes_batches, transform.transforms))
    return isinstance(transform, Transform) and type(transform).__call__ is Transform.__call__


def as_image(name: str, image: Any) -> np.ndarray:
    """An image as an array (C, H, W)."""
    if isinstance(image, ArrayMethods):
        image = image.numpy()
    elif not isinstance(image, np.ndarray):
        if not hasattr(image, "getbands"):
            raise ArgumentError(
                f"[{name}] an image is an array, a tensor or one of Pillow's; received {short_repr(image)}."
            )
        pixels = np.array(image)
        image = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    if image.ndim == 2:
        image = image[None]
    if image.ndim != 3:
        raise ShapeError(f"[{name}] an image has shape (channels, height, width); received {image.shape}.")
    array: np.ndarray = image
    return array


def pair(name: str, size: Any) -> tuple[int, int]:
    """A size as (height, width)."""
    height, width = (size, size) if isinstance(size, int) else tuple(size) if len(tuple(size)) == 2 else (0, 0)
    if min(height, width) < 1:
        raise ArgumentError(f"[{name}] size is a number of pixels or (height, width); received {size!r}.")
    return int(height), int(width)


def is_probability(name: str, p: float) -> float:
    """``p``, if it is from 0 to 1."""
    if not 0 <= p <= 1:
        raise ArgumentError(f"[{name}] p is a probability from 0 to 1; received {p!r}.")
    return p
