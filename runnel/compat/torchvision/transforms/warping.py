"""Images whose pixels move along a map: affine maps, rotations, perspectives, elastic displacements."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    pil_to_tensor,
    to_pil_image,
)
from runnel.nn import functional
from runnel.ops.elementwise.comparison import where
from runnel.ops.shapes.pieces import concat
from runnel.tensor.creation import asarray

NEAREST = InterpolationMode.NEAREST
BILINEAR = InterpolationMode.BILINEAR


def _inverse_affine(
    center: Sequence[float], angle: float, translate: Sequence[float], scale: float, shear: Sequence[float]
) -> list[float]:
    """Return the rows [a, b, c, d, e, f] of the map from places after to places before.

    The map before → after is a translation, then about ``center`` a rotation, shears and a scale.
    """
    turn, shear_x, shear_y = (math.radians(x) for x in (angle, *shear))
    a = math.cos(turn - shear_y) / math.cos(shear_y)
    b = -math.cos(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) - math.sin(turn)
    c = math.sin(turn - shear_y) / math.cos(shear_y)
    d = -math.sin(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) + math.cos(turn)
    matrix = [x / scale for x in (d, -b, 0.0, -c, a, 0.0)]
    dx, dy = (-middle - shift for middle, shift in zip(center, translate, strict=True))
    matrix[2] += matrix[0] * dx + matrix[1] * dy + center[0]
    matrix[5] += matrix[3] * dx + matrix[4] * dy + center[1]
    return matrix


def _sampled(img: Any, grid: np.ndarray, interpolation: Any, fill: Any) -> Any:
    """Return the pixels at places ``grid`` (H, W, 2) in [-1, 1], x first."""
    mode = as_mode(interpolation).value
    if mode not in ("nearest", "bilinear"):
        raise ValueError(f"[transforms] interpolation of tensors must be nearest or bilinear; got {mode!r}.")
    pixels = (img if img.dtype.is_inexact else img.float()).reshape(-1, *img.shape[-3:])
    values = fill_of(fill, pixels.shape[1])
    if values is not None:
        pixels = concat([pixels, (pixels[:, :1] * 0 + 1)], axis=1)  # the last channel says what is inside
    places = asarray(np.ascontiguousarray(np.broadcast_to(grid, (pixels.shape[0], *grid.shape)), pixels.dtype.numpy))
    moved = functional.grid_sample(pixels, places, mode=mode, padding_mode="zeros", align_corners=False)
    if values is not None:
        inside, moved = moved[:, -1:], moved[:, :-1]
        outside = asarray(np.array(values, pixels.dtype.numpy)[:, None, None])
        if mode == "nearest":
            moved = where(inside < 0.5, outside, moved)
        else:
            moved = moved * inside + (1.0 - inside) * outside
    moved = moved if img.dtype.is_inexact else moved.round().to(img.dtype)
    return moved.reshape(*img.shape[:-2], *moved.shape[-2:])


def _places(height: int, width: int) -> np.ndarray:
    """Return the centers of pixels, relative to the middle of the image: (H, W, 3) with x, y, 1."""
    y, x = np.meshgrid(np.arange(height) - height / 2 + 0.5, np.arange(width) - width / 2 + 0.5, indexing="ij")
    return np.stack([x, y, np.ones_like(x)], axis=-1)


def _affine_grid(matrix: Sequence[float], before: Sequence[int], after: Sequence[int]) -> np.ndarray:
    """Return the places before the map of the pixels after it; sizes are (height, width)."""
    rows = np.array(matrix).reshape(2, 3).T / [0.5 * before[1], 0.5 * before[0]]
    grid: np.ndarray = _places(*after) @ rows
    return grid


def affine(
    img: Any,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Any,
    interpolation: Any = NEAREST,
    fill: Any = None,
    center: Sequence[float] | None = None,
) -> Any:
    """Shear, scale, rotate clockwise by ``angle`` degrees about ``center``, and translate by pixels."""
    shears = [float(shear), 0.0] if isinstance(shear, int | float) else [float(s) for s in shear]
    shears = [*shears, 0.0] if len(shears) == 1 else shears
    if len(shears) != 2 or len(translate) != 2:
        raise ValueError(f"[affine] translate and shear must have 2 elements; got {translate!r} and {shear!r}.")
    if scale <= 0:
        raise ValueError(f"[affine] scale must be above 0; got {scale}.")
    _, h, w = get_dimensions(img)
    if is_pillow(img):
        middle = [w * 0.5, h * 0.5] if center is None else list(center)
        matrix = _inverse_affine(middle, angle, translate, scale, shears)
        return img.transform((w, h), 0, matrix, in_pillow(interpolation), **fill_in_pillow(fill, img))
    middle = [0.0, 0.0] if center is None else [center[0] - w * 0.5, center[1] - h * 0.5]
    matrix = _inverse_affine(middle, angle, [1.0 * t for t in translate], scale, shears)
    return _sampled(img, _affine_grid(matrix, (h, w), (h, w)), interpolation, fill)


def rotate(
    img: Any,
    angle: float,
    interpolation: Any = NEAREST,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Any = None,
) -> Any:
    """Rotate counterclockwise by ``angle`` degrees; ``expand`` makes room for the whole image."""
    if is_pillow(img):
        filled = fill_in_pillow(fill, img)
        return img.rotate(angle, in_pillow(interpolation), expand, None if center is None else tuple(center), **filled)
    h, w = img.shape[-2:]
    middle = [0.0, 0.0] if center is None else [center[0] - w * 0.5, center[1] - h * 0.5]
    matrix = _inverse_affine(middle, -angle, [0.0, 0.0], 1.0, [0.0, 0.0])
    after = (h, w)
    if expand:
        corners = np.array([[x, y, 1.0] for x in (-0.5 * w, 0.5 * w) for y in (-0.5 * h, 0.5 * h)])
        moved = corners @ np.array(matrix).reshape(2, 3).T
        half = np.array([w * 0.5, h * 0.5])
        high = np.ceil(np.trunc((moved.max(axis=0) + half) / 1e-4) * 1e-4)
        low = np.floor(np.trunc((moved.min(axis=0) + half) / 1e-4) * 1e-4)
        width, height = (high - low).astype(int).tolist()
        after = (height, width)
    return _sampled(img, _affine_grid(matrix, (h, w), after), interpolation, fill)


def _perspective(startpoints: Sequence[Any], endpoints: Sequence[Any]) -> list[float]:
    """Return a to h of x → (a x + b y + c) / (g x + h y + 1), y → (d x + e y + f) / (...) from end to start points."""
    rows = []
    for (x, y), (u, v) in zip(endpoints, startpoints, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    known = np.array(startpoints, np.float64).reshape(8)
    solved: list[float] = np.linalg.lstsq(np.array(rows, np.float64), known, rcond=None)[0].tolist()
    return solved


def perspective(
    img: Any,
    startpoints: Sequence[Any],
    endpoints: Sequence[Any],
    interpolation: Any = BILINEAR,
    fill: Any = None,
) -> Any:
    """Move four points, [x, y] each, from ``startpoints`` to ``endpoints``."""
    coefficients = _perspective(startpoints, endpoints)
    if is_pillow(img):
        return img.transform(img.size, 2, coefficients, in_pillow(interpolation), **fill_in_pillow(fill, img))
    h, w = img.shape[-2:]
    places = _places(h, w) + np.array([w * 0.5, h * 0.5, 0.0])
    a, b, c, d, e, f, g, k = coefficients
    top = places @ np.array([[a, b, c], [d, e, f]]).T / [0.5 * w, 0.5 * h]
    return _sampled(img, top / (places @ np.array([[g, k, 1.0]]).T) - 1.0, interpolation, fill)


def elastic_transform(img: Any, displacement: Any, interpolation: Any = BILINEAR, fill: Any = None) -> Any:
    """Move pixels by a displacement (1, H, W, 2) in units of half the image."""
    if is_pillow(img):
        moved = elastic_transform(pil_to_tensor(img), displacement, interpolation, fill)
        return to_pil_image(moved, mode=img.mode)
    h, w = img.shape[-2:]
    if tuple(displacement.shape) != (1, h, w, 2):
        raise ValueError(f"[elastic_transform] displacement must be {(1, h, w, 2)}; got {tuple(displacement.shape)}.")
    identity = _places(h, w)[..., :2] / [0.5 * w, 0.5 * h]
    return _sampled(img, identity + displacement.numpy()[0], interpolation, fill)
