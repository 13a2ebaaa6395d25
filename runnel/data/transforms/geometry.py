"""Image transforms that move pixels: crops, flips, rotations and bilinear resizing."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from runnel.core.errors import ArgumentError, ShapeError
from runnel.data.randomness import Draws
from runnel.data.transforms.base import Transform, is_probability, pair


def resized(images: np.ndarray, height: int, width: int) -> np.ndarray:
    """Resize images (N, C, H, W) to ``height`` × ``width`` pixels; uint8 stays uint8."""
    height, width = max(height, 1), max(width, 1)
    if images.shape[2:] == (height, width):
        return images
    pixels = images.astype(np.float32)
    pixels = _filter(images.shape[2], height) @ pixels @ _filter(images.shape[3], width).T
    return (
        np.clip(np.rint(pixels), 0, 255).astype(np.uint8) if images.dtype == np.uint8 else pixels.astype(images.dtype)
    )


@functools.lru_cache(64)
def _filter(before: int, after: int) -> np.ndarray:
    """Return the weights (after, before) of pixels along one axis.

    They are triangles around the centers of the new pixels, at least one pixel wide to either side.
    """
    step = before / after
    reach = max(step, 1.0)
    centres = (np.arange(after) + 0.5) * step
    distances = np.abs(np.arange(before) + 0.5 - centres[:, None]) / reach
    weights = np.maximum(1 - distances, 0)
    weights /= weights.sum(axis=1, keepdims=True)
    result = weights.astype(np.float32)
    result.flags.writeable = False
    return result


_ATTEMPTS = 10  # as many as torchvision makes to fit a rectangle into an image


class CenterCrop(Transform):
    """The middle of the image, of ``size`` (height, width) or (size, size); 0 outside the image."""

    def __init__(self, size: int | tuple[int, int]) -> None:
        self.size = pair("CenterCrop", size)

    def many(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        height, width = self.size
        missing = (max(height - images.shape[2], 0), max(width - images.shape[3], 0))
        if any(missing):
            images = _padded(images, tuple((n // 2, n - n // 2) for n in missing), 0)
        top, left = round((images.shape[2] - height) / 2), round((images.shape[3] - width) / 2)
        return images[:, :, top : top + height, left : left + width]


class Pad(Transform):
    """Add ``padding`` pixels of value ``fill`` at each side.

    ``padding`` is a number, (left and right, top and bottom), or (left, top, right, bottom).
    """

    def __init__(self, padding: Any, fill: float = 0) -> None:
        self.widths = _widths("Pad", padding)
        self.fill = fill

    def many(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        return _padded(images, self.widths, self.fill)


class RandomCrop(Transform):
    """A random part of ``size``, after padding with ``fill`` as in :class:`Pad`."""

    def __init__(self, size: int | tuple[int, int], padding: Any = None, fill: float = 0) -> None:
        self.size = pair("RandomCrop", size)
        self.widths = None if padding is None else _widths("RandomCrop", padding)
        self.fill = fill

    def many(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        if self.widths is not None:
            images = _padded(images, self.widths, self.fill)
        height, width = self.size
        free = images.shape[2] - height, images.shape[3] - width
        if min(free) < 0:
            raise ShapeError(
                f"[RandomCrop] an image of {images.shape[2]}×{images.shape[3]} pixels has no part of {height}×{width}; "
                "pass padding, or put Resize before it."
            )
        tops, lefts = (draws.integer(0, n + 1).tolist() for n in free)
        parts = np.empty((*images.shape[:2], height, width), images.dtype)
        for part, image, top, left in zip(parts, images, tops, lefts, strict=True):
            part[...] = image[:, top : top + height, left : left + width]
        return parts


class _RandomFlip(Transform):
    """A flip along an axis with probability ``p``."""

    def __init__(self, p: float, axis: int) -> None:
        self.p = is_probability(type(self).__name__, p)
        self._axis = axis

    def many(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        chosen = draws.uniform() < self.p
        if not chosen.any():
            return images
        flipped = images.copy()
        flipped[chosen] = np.flip(images[chosen], self._axis)
        return flipped


class RandomHorizontalFlip(_RandomFlip):
    """A flip of left and right with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p, 3)


class RandomVerticalFlip(_RandomFlip):
    """A flip of top and bottom with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p, 2)


class Resize(Transform):
    """The image resized to (height, width), or with ``size`` pixels on its shorter side.

    It is bilinear, and averages pixels when it shrinks, like Pillow and torchvision with ``antialias=True``.
    """

    def __init__(self, size: int | tuple[int, int]) -> None:
        self.size = size if isinstance(size, int) else pair("Resize", size)
        pair("Resize", size)

    def many(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        height, width = images.shape[2:]
        if isinstance(self.size, tuple):
            return resized(images, *self.size)
        short = min(height, width)
        return resized(images, int(self.size * height / short), int(self.size * width / short))


class RandomResizedCrop(Transform):
    """A part of random area and shape, resized to ``size``.

    Its share of the area is uniform in ``scale``, and width / height is log-uniform in ``ratio``. If no part fits in
    ten attempts, it is the middle.
    """

    def __init__(
        self,
        size: int | tuple[int, int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
    ) -> None:
        self.size = pair("RandomResizedCrop", size)
        self.scale, self.ratio = scale, ratio

    def many(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        height, width = images.shape[2:]
        rectangles = random_rectangles(draws, len(images), height, width, self.scale, self.ratio)
        short = min(height, width)
        middle = ((height - short) // 2, (width - short) // 2, short, short)
        parts = []
        for image, rectangle in zip(images, rectangles, strict=True):
            top, left, h, w = rectangle or middle
            parts.append(resized(image[None, :, top : top + h, left : left + w], *self.size))
        return np.concatenate(parts)


class RandomErasing(Transform):
    """A random rectangle filled with ``value``, with probability ``p``.

    Z. Zhong et al., "Random erasing data augmentation", 2020. Its share of the area is uniform in ``scale``, and height
    / width is log-uniform in ``ratio``.
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3),
        value: float = 0,
    ) -> None:
        self.p = is_probability("RandomErasing", p)
        self.scale, self.ratio, self.value = scale, ratio, value

    def many(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        chosen = (draws.uniform() < self.p).tolist()
        height, width = images.shape[2:]
        inverse = (1 / self.ratio[1], 1 / self.ratio[0])
        rectangles = random_rectangles(draws, len(images), height, width, self.scale, inverse)
        erased = images.copy()
        for image, is_chosen, rectangle in zip(erased, chosen, rectangles, strict=True):
            if is_chosen and rectangle is not None:
                top, left, h, w = rectangle
                image[:, top : top + h, left : left + w] = self.value
        return erased


def random_rectangles(
    draws: Draws, count: int, height: int, width: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> list[tuple[int, int, int, int] | None]:
    """Return (top, left, height, width) of a random rectangle for each image, or None if no attempt fits.

    ``ratio`` bounds width / height. Each image uses the same number of draws.
    """
    if not 0 < scale[0] <= scale[1] or not 0 < ratio[0] <= ratio[1]:
        raise ArgumentError(f"[rectangle] scale and ratio must be ranges (low, high) above 0; got {scale} and {ratio}.")
    rectangles: list[tuple[int, int, int, int] | None] = [None] * count
    for _ in range(_ATTEMPTS):
        area = draws.uniform(*scale) * height * width
        shape = np.exp(draws.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = np.rint(np.sqrt(area * shape)).astype(int), np.rint(np.sqrt(area / shape)).astype(int)
        top, left = draws.integer(0, np.maximum(height - h, 0) + 1), draws.integer(0, np.maximum(width - w, 0) + 1)
        fits = (h >= 1) & (w >= 1) & (h <= height) & (w <= width)
        for i in np.flatnonzero(fits).tolist():
            if rectangles[i] is None:
                rectangles[i] = (int(top[i]), int(left[i]), int(h[i]), int(w[i]))
    return rectangles


def _widths(name: str, padding: Any) -> tuple[tuple[int, int], ...]:
    """Return the padding of height and width."""
    sides = (padding,) * 4 if isinstance(padding, int) else tuple(padding)
    sides = sides * 2 if len(sides) == 2 else sides
    if len(sides) != 4 or any(not isinstance(n, int) or n < 0 for n in sides):
        raise ArgumentError(f"[{name}] padding must be a number of pixels, or 2 or 4 of them; got {padding!r}.")
    left, top, right, bottom = sides
    return (top, bottom), (left, right)


def _padded(images: np.ndarray, widths: tuple[tuple[int, int], ...], fill: float) -> np.ndarray:
    (top, bottom), (left, right) = widths
    n, c, h, w = images.shape
    padded = np.full((n, c, top + h + bottom, left + w + right), fill, images.dtype)
    padded[:, :, top : top + h, left : left + w] = images
    return padded
