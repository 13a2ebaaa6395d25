"""Transforms of pixel values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.core.errors import ArgumentError, ShapeError
from runnel.data.randomness import Draws
from runnel.data.transforms.base import Transform

_CHANNELS = (1, 3, 4)  # of images


class ToTensor(Transform):
    """The image as a float32 tensor (C, H, W); uint8 pixels are scaled to [0, 1].

    A uint8 array is taken as (H, W, C) if its last axis, and not its first, has 1, 3 or 4 elements.
    """

    @property
    def gives_tensors(self) -> bool:
        return True

    def many(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        if images.dtype != np.uint8:
            return images.astype(np.float32)
        if images.shape[3] in _CHANNELS and images.shape[1] not in _CHANNELS:
            images = images.transpose(0, 3, 1, 2)
        scaled = np.ascontiguousarray(images).astype(np.float32)
        scaled /= np.float32(255)
        return scaled


class Normalize(Transform):
    """``(image - mean) / std`` of float images, with a mean and std for each channel, or one for all."""

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float]) -> None:
        self.mean, self.std = (np.atleast_1d(np.asarray(x, np.float32)).reshape(-1, 1, 1) for x in (mean, std))
        if not (self.std > 0).all():
            raise ArgumentError(f"[Normalize] std must be above 0; got {std!r}.")

    def many(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        if images.dtype.kind != "f":
            raise ArgumentError(f"[Normalize] takes float images; got {images.dtype}. Put ToTensor() before it.")
        if len(self.mean) not in (1, images.shape[1]) or len(self.std) not in (1, images.shape[1]):
            raise ShapeError(
                f"[Normalize] {len(self.mean)} means and an image of {images.shape[1]} channels do not fit."
            )
        result: np.ndarray = images - self.mean
        result /= self.std
        return result


class ColorJitter(Transform):
    """Random changes of brightness, contrast, saturation and hue, in random order.

    Args:
        brightness, contrast, saturation: the factor is uniform in [max(0, 1 - x), 1 + x], or in the range (low, high).
        hue: the shift is uniform in [-x, x] of a full turn, x at most 0.5, or in the range (low, high).
    """

    def __init__(self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0) -> None:
        self.ranges = [_range(x, 1.0, 0.0) for x in (brightness, contrast, saturation)]
        self.hue = _range(hue, 0.0, -0.5)
        if self.hue[0] < -0.5 or self.hue[1] > 0.5:
            raise ArgumentError(f"[ColorJitter] hue must be from 0 to 0.5; got {hue!r}.")

    def many(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        if images.shape[1] not in (1, 3):
            raise ShapeError(f"[ColorJitter] an image must have 1 or 3 channels; got {images.shape[1]}.")
        order = np.argsort(np.stack([draws.uniform() for _ in range(4)], axis=1), axis=1)
        factors = [draws.uniform(low, high).astype(np.float32) for low, high in (*self.ranges, self.hue)]
        is_whole = images.dtype == np.uint8
        pixels = images.astype(np.float32) / np.float32(255 if is_whole else 1)
        for step in range(4):
            for number, change in enumerate((_brightened, _contrasted, _saturated, _turned)):
                rows = np.flatnonzero(order[:, step] == number)
                if len(rows) and (
                    (number < 3 and self.ranges[number] != (1, 1)) or (number == 3 and self.hue != (0, 0))
                ):
                    pixels[rows] = change(pixels[rows], factors[number][rows].reshape(-1, 1, 1, 1))
        return np.rint(pixels * 255).astype(np.uint8) if is_whole else pixels.astype(images.dtype)


class Grayscale(Transform):
    """The luma of color images (ITU-R BT.601), on ``num_output_channels`` equal channels."""

    def __init__(self, num_output_channels: int = 1) -> None:
        if num_output_channels not in (1, 3):
            raise ArgumentError(f"[Grayscale] num_output_channels must be 1 or 3; got {num_output_channels!r}.")
        self.num_output_channels = num_output_channels

    def many(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        gray = _gray(images.astype(np.float32))
        gray = np.rint(gray).astype(images.dtype) if images.dtype == np.uint8 else gray.astype(images.dtype)
        return np.repeat(gray, self.num_output_channels, axis=1)


def _range(value: Any, middle: float, least: float) -> tuple[float, float]:
    low, high = value if isinstance(value, tuple | list) else (max(least, middle - value), middle + value)
    if not least <= low <= high:
        raise ArgumentError(f"[ColorJitter] a strength must be 0 or more, or a range (low, high); got {value!r}.")
    return float(low), float(high)


def _gray(pixels: np.ndarray) -> np.ndarray:
    if pixels.shape[1] == 1:
        return pixels
    weights = np.array([0.299, 0.587, 0.114], np.float32)
    red, green, blue = (pixels[:, i : i + 1] * weights[i] for i in range(3))
    gray: np.ndarray = red + green + blue
    return gray


def _blended(pixels: np.ndarray, other: Any, share: np.ndarray) -> np.ndarray:
    blended: np.ndarray = pixels * share
    blended += other * (1 - share)
    return np.clip(blended, 0, 1, out=blended)


def _brightened(pixels: np.ndarray, factor: np.ndarray) -> np.ndarray:
    return _blended(pixels, np.float32(0), factor)


def _contrasted(pixels: np.ndarray, factor: np.ndarray) -> np.ndarray:
    return _blended(pixels, _gray(pixels).mean(axis=(1, 2, 3), keepdims=True), factor)


def _saturated(pixels: np.ndarray, factor: np.ndarray) -> np.ndarray:
    return _blended(pixels, _gray(pixels), factor)


def _turned(pixels: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Shift the hue.

    Each channel of a color of value v and chroma c is v - c max(0, min(k, 4 - k, 1)), with k in [0, 6) its distance on
    the circle of hues (formula of the article "HSL and HSV").
    """
    if pixels.shape[1] == 1:
        return pixels
    red, green, blue = pixels[:, 0:1], pixels[:, 1:2], pixels[:, 2:3]
    value, least = pixels.max(axis=1, keepdims=True), pixels.min(axis=1, keepdims=True)
    chroma = value - least
    safe = np.where(chroma > 0, chroma, np.float32(1))
    hue = np.where(
        value == red, (green - blue) / safe, np.where(value == green, (blue - red) / safe + 2, (red - green) / safe + 4)
    )
    hue = np.where(chroma > 0, hue, np.float32(0)) + shift * np.float32(6)
    channels = []
    for offset in (5, 3, 1):
        k = np.mod(hue + np.float32(offset), np.float32(6))
        channels.append(value - chroma * np.clip(np.minimum(k, 4 - k), 0, 1))
    return np.concatenate(channels, axis=1)
