"""Images in other sizes: a bilinear filter along each axis, as wide as the pixels that become one."""

from __future__ import annotations

import functools

import numpy as np


def resized(images: np.ndarray, height: int, width: int) -> np.ndarray:
    """Images (N, C, H, W) with ``height`` × ``width`` pixels; uint8 stays uint8."""
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
    """The weights (after, before) of the pixels along one axis: a triangle around each new pixel's centre, one pixel
    wide at least to either side."""
    step = before / after
    reach = max(step, 1.0)
    centres = (np.arange(after) + 0.5) * step
    distances = np.abs(np.arange(before) + 0.5 - centres[:, None]) / reach
    weights = np.maximum(1 - distances, 0)
    weights /= weights.sum(axis=1, keepdims=True)
    result = weights.astype(np.float32)
    result.flags.writeable = False
    return result
