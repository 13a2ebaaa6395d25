"""Images read at positions that are data themselves (M. Jaderberg et al., "Spatial transformer networks", 2015)."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from runnel import ops
from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, as_shape
from runnel.ops.im2col import channels_last
from runnel.tensor.tensor import Tensor

_MODES: Final = ("bilinear", "nearest", "bicubic")
_PADDING: Final = ("zeros", "border", "reflection")


def affine_grid(theta: Array, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The positions (N, H, W, 2), or (N, D, H, W, 3), to which affine maps ``theta`` (N, 2, 3), or (N, 3, 4), take
    those of an image of ``size`` (N, C, H, W), or (N, C, D, H, W). Positions are (x, y) or (x, y, z), from -1 to 1:
    from border to border, or, with ``align_corners``, from the first element's centre to the last one's."""
    sizes = as_shape("affine_grid", size)
    if len(sizes) < 4:
        raise ShapeError(f"[affine_grid] the size of an image is (N, C, H, W) or (N, C, D, H, W); received {sizes}.")
    sizes = sizes[2:]
    n = len(sizes)
    if theta.ndim != 3 or theta.shape[1:] != (n, n + 1) or n not in (2, 3):
        raise ShapeError(
            f"[affine_grid] takes maps (N, 2, 3) with sizes (N, C, H, W), or (N, 3, 4) with (N, C, D, H, W); received "
            f"shape {theta.shape} and {sizes}."
        )
    axes = [np.linspace(-1, 1, m) * (1 if align_corners else (m - 1) / m) if m > 1 else np.zeros(1) for m in sizes]
    points = np.stack([*reversed(np.meshgrid(*axes, indexing="ij")), np.ones(sizes)], -1)
    base = theta.lift(points.reshape(-1, n + 1).astype(theta.dtype.numpy), theta.dtype)
    result: Tensor = ops.reshape(ops.matmul(base, ops.transpose(theta)), (theta.shape[0], *sizes, n))
    return result


def grid_sample(
    x: Array, grid: Array, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """``x`` (N, C, H, W), or (N, C, D, H, W), at the positions ``grid`` (N, …, 2), or (N, …, 3): (N, C, …).

    Args:
        x: the images.
        grid: positions as :func:`affine_grid` gives them.
        mode: what is between elements: "bilinear", "nearest", or, in two dimensions, "bicubic".
        padding_mode: what is outside: "zeros", the "border", or the image reflected ("reflection").
        align_corners: see :func:`affine_grid`.
    """
    spatial = x.ndim - 2
    if mode not in _MODES or padding_mode not in _PADDING or (mode == "bicubic" and spatial != 2):
        raise ValueError(
            f"[grid_sample] mode is one of {', '.join(_MODES)} (bicubic in two dimensions), and padding_mode of "
            f"{', '.join(_PADDING)}; received {mode!r} and {padding_mode!r}."
        )
    if spatial not in (2, 3) or grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != spatial:
        raise ShapeError(
            f"[grid_sample] takes images (N, C, H, W) with a grid (N, H', W', 2), or (N, C, D, H, W) with (N, D', H', "
            f"W', 3); received shapes {x.shape} and {grid.shape}."
        )
    sizes, aligned = x.shape[2:], bool(align_corners)
    at = [_elements(ops.getitem(grid, (..., spatial - 1 - i)), n, aligned) for i, n in enumerate(sizes)]
    if mode != "bicubic":  # whose elements are brought inside one by one
        at = [_inside(p, n, padding_mode, aligned) for p, n in zip(at, sizes, strict=True)]
    taps = [_taps(p, mode) for p in at]
    rows = ops.reshape(channels_last(x), (-1, x.shape[1]))
    image = ops.iota(rows, (x.shape[0], *(1,) * spatial), 0) * math.prod(sizes)
    terms = []
    for corner in itertools.product(*taps):
        places, weights = [p for p, _ in corner], [w for _, w in corner if w is not None]
        if mode == "bicubic":
            places = [_inside(p, n, padding_mode, aligned) for p, n in zip(places, sizes, strict=True)]
        in_range = [
            ops.logical_and(ops.greater_equal(p, 0), ops.less(p, n)) for p, n in zip(places, sizes, strict=True)
        ]
        is_inside = functools.reduce(ops.logical_and, in_range)
        row = image
        for i, (p, n) in enumerate(zip(places, sizes, strict=True)):
            index = ops.cast(ops.clip(ops.stop_gradient(p), 0, n - 1), int64)
            row = row + index * math.prod(sizes[i + 1 :])
        value = ops.take(rows, row, 0)
        weight = functools.reduce(ops.multiply, weights) if weights else ops.full_like(value, 1, (1,) * is_inside.ndim)
        terms.append(value * ops.expand_dims(ops.where(is_inside, weight, 0), -1))
    result: Tensor = ops.moveaxis(functools.reduce(ops.add, terms), -1, 1)
    return result


def _elements(position: Array, n: int, aligned: bool) -> Array:
    """A position in [-1, 1], counted in elements."""
    return (position + 1) * ((n - 1) / 2) if aligned else ((position + 1) * n - 1) / 2


def _inside(p: Array, n: int, padding_mode: str, aligned: bool) -> Array:
    """A position brought into the image, where there is something outside of it."""
    if padding_mode == "zeros":
        return p
    if padding_mode == "reflection":
        low, high = (0.0, n - 1.0) if aligned else (-0.5, n - 0.5)
        span = high - low
        if span == 0:
            return p * 0
        away = ops.abs(p - low)
        turns = ops.floor(ops.stop_gradient(away) / span)
        rest = away - turns * span
        p = ops.where(ops.equal(ops.remainder(turns, 2), 0), rest + low, high - rest)
    within = ops.logical_and(ops.greater(p, 0), ops.less(p, n - 1))
    return ops.where(within, p, ops.clip(ops.stop_gradient(p), 0, n - 1))


def _taps(p: Array, mode: str) -> list[tuple[Array, Array | None]]:
    """Elements near a position, and their weights (None: 1)."""
    if mode == "nearest":
        return [(ops.round(ops.stop_gradient(p)), None)]
    first = ops.floor(ops.stop_gradient(p))
    share = p - first
    if mode == "bilinear":
        return [(first, 1 - share), (first + 1, share)]
    return [(first + (i - 1), _cubic_weight(share, i)) for i in range(4)]


def _cubic_weight(share: Array, tap: int, a: float = -0.75) -> Array:
    """The weight of the element ``tap`` - 1 places after the one before the position (R. Keys, 1981)."""
    d = share + 1 if tap == 0 else share if tap == 1 else 1 - share if tap == 2 else 2 - share
    if tap in (1, 2):
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
