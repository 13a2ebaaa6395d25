"""Grids of images, images in files, and drawings on images: ``torchvision.utils``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.compat.torchvision.transforms.images import pillow, to_pil_image
from runnel.core.errors import ShapeError
from runnel.ops.shapes.pieces import stack
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods


def make_grid(
    tensor: Any,
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Any:
    """Return one image (3, H, W) of a batch (N, C, H, W), or of a list of images, ``nrow`` in a row.

    ``normalize`` moves the values to [0, 1] from ``value_range``, or from the range of all images or of each one.
    """
    images = tensor if isinstance(tensor, ArrayMethods) else stack(list(tensor))
    if images.ndim == 2:
        images = images[None]
    if images.ndim == 3:
        images = images[None]
    if images.ndim != 4:
        raise ShapeError(f"[make_grid] tensor must have shape (N, C, H, W); got {tuple(images.shape)}.")
    pixels = images.numpy(force=True)
    if pixels.shape[1] == 1:
        pixels = np.repeat(pixels, 3, axis=1)
    if normalize:
        axes = (1, 2, 3) if scale_each else None
        low, high = value_range or (pixels.min(axis=axes, keepdims=True), pixels.max(axis=axes, keepdims=True))
        span = np.maximum(np.asarray(high) - low, 1e-5).astype(pixels.dtype)
        pixels = (np.clip(pixels, low, high) - low) / span
    count, channels, height, width = pixels.shape
    if count == 1:
        return asarray(pixels[0])
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    height, width = height + padding, width + padding
    grid = np.full((channels, height * rows + padding, width * columns + padding), pad_value, pixels.dtype)
    for number, image in enumerate(pixels):
        top, left = number // columns * height + padding, number % columns * width + padding
        grid[:, top : top + height - padding, left : left + width - padding] = image
    return asarray(grid)


def save_image(tensor: Any, fp: Any, format: str | None = None, **kwargs: Any) -> None:
    """Write the grid of images with values in [0, 1] to a file; ``kwargs`` are arguments of :func:`make_grid`."""
    grid = make_grid(tensor, **kwargs).numpy()
    pixels = np.clip(grid * 255 + 0.5, 0, 255).transpose(1, 2, 0).astype(np.uint8)
    pillow("Image").fromarray(np.ascontiguousarray(pixels)).save(fp, format=format)


_COLORS = ("red", "lime", "blue", "yellow", "magenta", "cyan", "orange", "purple", "brown", "pink")


def _colors(colors: Any, count: int) -> list[Any]:
    """Return the color of each of ``count`` things."""
    if colors is None:
        return [_COLORS[i % len(_COLORS)] for i in range(count)]
    return list(colors) if isinstance(colors, list) else [colors] * count


def _drawn(image: Any) -> tuple[Any, Any]:
    """Return an image of Pillow and what draws on it."""
    picture = to_pil_image(image).convert("RGB")
    return picture, pillow("ImageDraw").Draw(picture)


def _as_tensor(picture: Any, like: Any) -> Any:
    pixels = np.asarray(picture).transpose(2, 0, 1)
    return asarray(pixels.astype(like.numpy().dtype) / 255 if like.dtype.is_inexact else pixels.copy()).to(like.dtype)


def draw_bounding_boxes(
    image: Any,
    boxes: Any,
    labels: list[str] | None = None,
    colors: Any = None,
    fill: bool = False,
    width: int = 1,
    font: str | None = None,
    font_size: int | None = None,
) -> Any:
    """Return an image (C, H, W) with boxes (N, 4) as (x1, y1, x2, y2) drawn on it, and their labels."""
    picture, pen = _drawn(image)
    numbers = boxes.tolist()
    face = None if font is None else pillow("ImageFont").truetype(font, font_size or 10)
    texts: Sequence[str | None] = labels or [None] * len(numbers)
    for box, label, color in zip(numbers, texts, _colors(colors, len(numbers)), strict=True):
        if fill:
            layer = picture.copy()
            pillow("ImageDraw").Draw(layer).rectangle(box, fill=color)
            picture.paste(pillow("Image").blend(picture, layer, 100 / 255))
        pen.rectangle(box, width=width, outline=color)
        if label is not None:
            pen.text((box[0] + width + 1, box[1] + width + 1), label, fill=color, font=face)
    return _as_tensor(picture, image)


def draw_keypoints(
    image: Any, keypoints: Any, connectivity: Any = None, colors: Any = None, radius: int = 2, width: int = 3
) -> Any:
    """Return an image with points (instances, K, 2) as dots, joined by lines of ``connectivity``."""
    picture, pen = _drawn(image)
    for points in keypoints.tolist():
        for x, y in points:
            pen.ellipse([x - radius, y - radius, x + radius, y + radius], fill=colors or "red")
        for first, second in connectivity or ():
            pen.line([*points[first], *points[second]], width=width, fill=colors or "red")
    return _as_tensor(picture, image)


def draw_segmentation_masks(image: Any, masks: Any, alpha: float = 0.8, colors: Any = None) -> Any:
    """Return an image (3, H, W) with masks (N, H, W) of bools blended over it."""
    own = masks[None] if masks.ndim == 2 else masks
    pixels = image.numpy()
    painted = pixels.astype(np.float32)
    scale = 1 / 255 if image.dtype.is_inexact else 1
    for mask, color in zip(own.numpy(), _colors(colors, own.shape[0]), strict=True):
        rgb = pillow("ImageColor").getrgb(color) if isinstance(color, str) else color
        painted[:, mask] = (np.array(rgb, np.float32) * scale)[:, None]
    mixed = pixels * (1 - alpha) + painted * alpha
    return asarray(mixed.astype(pixels.dtype))
