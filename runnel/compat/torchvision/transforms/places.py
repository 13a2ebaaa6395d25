"""Which pixels an image has: crops, flips, padding, sizes, erased rectangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.compat.torchvision.transforms.images import (
    InterpolationMode,
    as_mode,
    fill_in_pillow,
    fill_of,
    get_dimensions,
    in_pillow,
    is_pillow,
    pair,
    pillow,
)
from runnel.core.errors import ArgumentError
from runnel.nn import functional
from runnel.ops.indexing.gather import take
from runnel.ops.reductions.statistics import clip
from runnel.tensor.creation import asarray


def hflip(img: Any) -> Any:
    """Flip left and right."""
    return img.transpose(0) if is_pillow(img) else img.flip(-1)


def vflip(img: Any) -> Any:
    """Flip top and bottom."""
    return img.transpose(1) if is_pillow(img) else img.flip(-2)


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """Return a rectangle of the image; 0 outside it."""
    if is_pillow(img):
        return img.crop((left, top, left + width, top + height))
    h, w = img.shape[-2:]
    inside = img[..., max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)]
    if top >= 0 and left >= 0 and top + height <= h and left + width <= w:
        return inside
    sides = [max(-left, 0), max(left + width - max(w, left), 0), max(-top, 0), max(top + height - max(h, top), 0)]
    return functional.pad(inside, sides)


def center_crop(img: Any, output_size: Any) -> Any:
    """Return the middle of the image; 0 outside it."""
    height, width = pair(output_size, "output_size")
    _, h, w = get_dimensions(img)
    if width > w or height > h:
        more_w, more_h = max(width - w, 0), max(height - h, 0)
        img = pad(img, [more_w // 2, more_h // 2, (more_w + 1) // 2, (more_h + 1) // 2])
        _, h, w = get_dimensions(img)
        if (width, height) == (w, h):
            return img
    return crop(img, round((h - height) / 2.0), round((w - width) / 2.0), height, width)


def five_crop(img: Any, size: Any) -> tuple[Any, ...]:
    """Return the corners, top left first, and the middle."""
    height, width = pair(size)
    _, h, w = get_dimensions(img)
    if width > w or height > h:
        raise ValueError(f"[five_crop] size must be at most {(h, w)}, the image's; got {(height, width)}.")
    tops, lefts = (0, h - height), (0, w - width)
    corners = [crop(img, top, left, height, width) for top in tops for left in lefts]
    return (*corners, center_crop(img, (height, width)))


def ten_crop(img: Any, size: Any, vertical_flip: bool = False) -> tuple[Any, ...]:
    """Return the five crops of the image, then of the flipped one."""
    flipped = vflip(img) if vertical_flip else hflip(img)
    return five_crop(img, size) + five_crop(flipped, size)


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """Add pixels at the sides: ``padding`` is a number, [left and right, top and bottom], or one for each side.

    ``padding_mode`` is "constant", "edge", "reflect" or "symmetric".
    """
    left, top, right, bottom = _sides(padding)
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError(
            f"[pad] padding_mode must be 'constant', 'edge', 'reflect' or 'symmetric'; got {padding_mode!r}."
        )
    if is_pillow(img):
        if padding_mode == "constant":
            fill = fill_in_pillow(fill, img, "fill")["fill"]
            widened = img.crop((-left, -top, img.width + right, img.height + bottom))
            if fill and widened.size != img.size:
                widened.paste(fill, (0, 0, *widened.size))
                widened.paste(img, (left, top))
                if img.mode == "P":
                    widened.putpalette(img.getpalette())
            return widened
        pixels = np.asarray(img)
        widths = ((top, bottom), (left, right), (0, 0))[: pixels.ndim]
        padded = pillow("Image").fromarray(np.pad(pixels, widths, mode=padding_mode))  # type: ignore[call-overload]
        if img.mode == "P":
            padded.putpalette(img.getpalette())
        return padded
    if padding_mode == "constant":
        values = fill_of(fill, img.shape[-3] if img.ndim > 2 else 1)
        if min(left, top, right, bottom) < 0:
            img = img[..., max(-top, 0) : img.shape[-2] - max(-bottom, 0), max(-left, 0) :][
                ..., : img.shape[-1] - max(-left, 0) - max(-right, 0)
            ]
            left, top, right, bottom = (max(side, 0) for side in (left, top, right, bottom))
        if values is None or len(set(values)) == 1:
            value = values[0] if values else 0.0
            return functional.pad(img, [left, right, top, bottom], value=value if img.dtype.is_inexact else int(value))
        shifts = asarray(np.array(values)[:, None, None]).to(img.dtype)
        return functional.pad(img - shifts, [left, right, top, bottom]) + shifts
    h, w = img.shape[-2:]
    rows, columns = (
        asarray(np.pad(np.arange(n), widths, mode=padding_mode))  # type: ignore[call-overload]
        for n, widths in ((h, (top, bottom)), (w, (left, right)))
    )
    return take(take(img, rows, axis=-2), columns, axis=-1)


def _sides(padding: Any) -> tuple[int, int, int, int]:
    """Return padding as (left, top, right, bottom)."""
    sides = [padding] if isinstance(padding, int) else list(padding)
    if len(sides) not in (1, 2, 4):
        raise ValueError(f"[pad] padding must be a number, or 1, 2 or 4 of them; got {padding!r}.")
    left, top, right, bottom = (int(side) for side in sides * (4 // len(sides)))
    return left, top, right, bottom


def resize(
    img: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """Resize to (height, width), or to ``size`` pixels on the shorter side and at most ``max_size`` on the longer."""
    _, h, w = get_dimensions(img)
    height, width = _size_after(h, w, size, max_size)
    if (height, width) == (h, w):
        return img
    if is_pillow(img):
        return img.resize((width, height), in_pillow(interpolation))
    mode = as_mode(interpolation).value
    if mode not in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        raise ValueError(f"[resize] interpolation of tensors must be nearest, bilinear or bicubic; got {mode!r}.")
    is_smooth = mode in ("bilinear", "bicubic")
    batch = img.reshape(-1, 1 if img.ndim == 2 else img.shape[-3], h, w)
    pixels = batch if batch.dtype.is_inexact else batch.float()
    resized = functional.interpolate(
        pixels,
        (height, width),
        mode=mode,
        align_corners=False if is_smooth else None,
        antialias=bool(antialias) and is_smooth,
    )
    if not batch.dtype.is_inexact:
        resized = clip(resized, 0, 255) if mode == "bicubic" and str(img.dtype).endswith("uint8") else resized
        resized = resized.round().to(img.dtype)
    return resized.reshape(*img.shape[:-2], height, width)


def _size_after(h: int, w: int, size: Any, max_size: int | None) -> tuple[int, int]:
    """Return (height, width) after ``resize``."""
    sizes: list[Any] = [size] if isinstance(size, int) else [max_size] if size is None else list(size)
    if len(sizes) == 2:
        if max_size is not None:
            raise ValueError("[resize] max_size must be None when size has a height and a width.")
        return int(sizes[0]), int(sizes[1])
    if len(sizes) != 1 or sizes[0] is None:
        raise ValueError(f"[resize] size must be a number of pixels or (height, width); got {size!r}.")
    short, long = min(h, w), max(h, w)
    if size is None:
        new_short, new_long = int(sizes[0] * short / long), sizes[0]
    else:
        new_short, new_long = sizes[0], int(sizes[0] * long / short)
        if max_size is not None:
            if max_size <= sizes[0]:
                raise ValueError(f"[resize] max_size must be above size, {sizes[0]}; got {max_size}.")
            if new_long > max_size:
                new_short, new_long = int(max_size * new_short / new_long), max_size
    return (new_long, new_short) if w <= h else (new_short, new_long)


def resized_crop(
    img: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Any:
    """Resize a rectangle of the image."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def normalize(tensor: Any, mean: Any, std: Any, inplace: bool = False) -> Any:
    """Return ``(tensor - mean) / std`` for each channel of a float tensor."""
    if is_pillow(tensor) or not tensor.dtype.is_inexact:
        raise TypeError("[normalize] tensor must be a float tensor; put ToTensor() before it.")
    if tensor.ndim < 3:
        raise ValueError(f"[normalize] tensor must have shape (..., C, H, W); got {tuple(tensor.shape)}.")
    means, stds = (np.atleast_1d(np.asarray(x, tensor.dtype.numpy)).reshape(-1, 1, 1) for x in (mean, std))
    if not stds.all():
        raise ValueError(f"[normalize] std must not be 0; got {std!r}.")
    if inplace:
        return tensor.sub_(asarray(means)).div_(asarray(stds))
    return (tensor - asarray(means)) / asarray(stds)


def erase(img: Any, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Any:
    """Fill the rectangle of ``h`` × ``w`` pixels at row ``i`` and column ``j`` with ``v``."""
    if is_pillow(img):
        raise TypeError("[erase] img must be a tensor; put ToTensor() before it.")
    erased = img if inplace else img.clone()
    erased[..., i : i + h, j : j + w] = v
    return erased


def erased_value(value: Any, channels: int) -> Any:
    """Return the value of erased pixels as a tensor (C, 1, 1)."""
    values = [value] if isinstance(value, int | float) else list(value)
    if len(values) not in (1, channels):
        raise ArgumentError(f"[RandomErasing] value must have 1 or {channels} elements; got {len(values)}.")
    return asarray(np.array(values, np.float32).reshape(-1, 1, 1))
