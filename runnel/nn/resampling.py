"""Resize images, and sample them at positions that are data.

Resizing treats each axis separately: each element of the result is a weighted sum of a few elements, and the weights
depend only on the sizes. As in PyTorch, element i covers [i, i + 1) of an axis; with ``align_corners``, the first and
last elements of input and output coincide. Cubic weights follow R. Keys, 1981.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from runnel import ops
from runnel.core.dtypes import float32, int64
from runnel.core.errors import ShapeError
from runnel.nn.layer import layer
from runnel.nn.windows import Size
from runnel.ops.arguments import Array, as_shape, as_sizes, as_tuple, is_single
from runnel.ops.convolution.windows import channels_last
from runnel.tensor.tensor import Tensor

_LINEAR: Final = {"linear": 1, "bilinear": 2, "trilinear": 3}  # mode: spatial axes
_SMOOTH: Final = (*_LINEAR, "bicubic")
_MODES: Final = ("nearest", "nearest-exact", *_SMOOTH, "area")


class Sizes(NamedTuple):
    """The sizes of an axis before and after resizing, and the distance of elements if corners are not aligned."""

    before: int
    after: int
    step: float


def interpolate(
    x: Array,
    size: Size | None = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the spatial axes of ``x`` (N, C, *sizes), of which there may be one to three.

    Args:
        x: the images; integers are interpolated in float32 and rounded.
        size: the new sizes, an int or one for each axis; or
        scale_factor: their ratios to the sizes of ``x``; new sizes are rounded down.
        mode: "nearest", "nearest-exact", "linear" (one axis), "bilinear", "bicubic" (two), "trilinear" (three), "area".
        align_corners: the outer elements of input and output coincide; for linear and cubic modes.
        recompute_scale_factor: compute distances from the rounded sizes instead of ``scale_factor``.
        antialias: when an axis shrinks, average over all elements that one covers ("bilinear" and "bicubic").
    """
    spatial = x.ndim - 2
    _require_mode(x, mode, align_corners, antialias)
    axes = _sizes(x, size, scale_factor, bool(recompute_scale_factor))
    if mode == "area":
        result: Tensor = ops.adaptive_avg_pool(x, tuple(axis.after for axis in axes))
        return result
    aligned = bool(align_corners)
    is_exact = mode.startswith("nearest")
    y = x if is_exact or (x.dtype.is_inexact and x.dtype.itemsize != 2) else ops.cast(x, float32)
    for place in reversed(range(spatial)):
        axis = axes[place]
        if is_exact:
            y = _nearest(y, 2 + place, axis, exact=mode != "nearest")
        elif axis.before != axis.after or axis.step != 1:
            y = _weighted(y, 2 + place, *_TAPS[mode == "bicubic", antialias](axis, aligned))
    if x.dtype.is_integer and not is_exact:
        ends = np.iinfo(x.dtype.numpy)
        y = ops.clip(ops.round(y), int(ends.min), int(ends.max))
    resized: Tensor = ops.cast(y, x.dtype)
    return resized.handle() if resized is x else resized.separate()


def _require_mode(x: Array, mode: str, align_corners: bool | None, antialias: bool) -> None:
    spatial = x.ndim - 2
    if mode not in _MODES:
        raise ValueError(f"[interpolate] mode must be one of {', '.join(_MODES)}; got {mode!r}.")
    expected = 2 if mode == "bicubic" else _LINEAR.get(mode)
    if not 1 <= spatial <= 3 or (expected is not None and spatial != expected):
        fitting = f"x must have axes (N, C) and {expected or '1 to 3'} spatial ones for mode '{mode}'"
        raise ShapeError(f"[interpolate] {fitting}; got shape {x.shape}.")
    if align_corners is not None and mode not in _SMOOTH:
        raise ValueError(
            f"[interpolate] align_corners must be None unless mode is one of {', '.join(_SMOOTH)}; got mode {mode!r}."
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f"[interpolate] mode must be 'bilinear' or 'bicubic' for antialias; got {mode!r}.")


def _sizes(x: Array, size: Any, scale_factor: Any, recompute: bool) -> list[Sizes]:
    """Return the sizes of each spatial axis."""
    before = x.shape[2:]
    if (size is None) == (scale_factor is None):
        raise ValueError("[interpolate] must get either size or scale_factor.")
    requested = size if scale_factor is None else scale_factor
    single = is_single(requested) if scale_factor is None else isinstance(requested, (int, float))
    values = (requested,) * len(before) if single else as_tuple(requested)
    if len(values) != len(before):
        raise ShapeError(
            f"[interpolate] size or scale_factor must have {len(before)} items for shape {x.shape}; got {requested!r}."
        )
    after = [int(v) if scale_factor is None else math.floor(n * float(v)) for n, v in zip(before, values, strict=True)]
    if min((*before, *after)) < 1:
        raise ShapeError(f"[interpolate] sizes must be positive; got {before} and {tuple(after)}.")
    as_sizes("interpolate", after)
    steps = [n / m for n, m in zip(before, after, strict=True)]
    if scale_factor is not None and not recompute:
        steps = [1 / float(v) for v in values]
    return [Sizes(*each) for each in zip(before, after, steps, strict=True)]


def _nearest(x: Array, place: int, axis: Sizes, *, exact: bool) -> Array:
    """Take for each element the one that it lies in, computed in single precision as in PyTorch."""
    if axis.before == axis.after and axis.step == 1:
        return x
    if axis.after % axis.before == 0 and axis.step * axis.after == axis.before:  # each equally often
        times = axis.after // axis.before
        wide = ops.broadcast_to(ops.expand_dims(x, place + 1), (*x.shape[: place + 1], times, *x.shape[place + 1 :]))
        return ops.reshape(wide, (*x.shape[:place], axis.after, *x.shape[place + 1 :]))
    there = np.arange(axis.after, dtype=np.float32) + np.float32(0.5 if exact else 0)
    positions = np.minimum(np.floor(there * np.float32(axis.step)).astype(np.int64), axis.before - 1)
    return ops.take(x, x.lift(positions, int64), place)


# --- elements and their weights ---------------------------------------------------------------------------------------

Taps = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]  # positions and weights, (taps, elements of the result)


def _weighted(x: Array, place: int, positions: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> Array:
    """Compute Σ weights[t] · x[positions[t]] along an axis."""
    along = tuple(-1 if i == place else 1 for i in range(x.ndim))
    terms = [
        ops.take(x, x.lift(p.astype(np.int64), int64), place) * x.lift(w.reshape(along).astype(x.dtype.numpy), x.dtype)
        for p, w in zip(positions, weights, strict=True)
    ]
    return functools.reduce(ops.add, terms)


def _centers(axis: Sizes, aligned: bool) -> np.ndarray[Any, Any]:
    """Return the positions of the elements of the result, in elements of the input."""
    there = np.arange(axis.after, dtype=np.float64)
    if aligned:
        return there * ((axis.before - 1) / (axis.after - 1) if axis.after > 1 else 0.0)
    return (there + 0.5) * axis.step - 0.5


def _linear(axis: Sizes, aligned: bool) -> Taps:
    centers = np.maximum(_centers(axis, aligned), 0)
    first = np.minimum(np.floor(centers).astype(np.int64), axis.before - 1)
    share = np.clip(centers - first, 0, 1)
    return np.stack([first, np.minimum(first + 1, axis.before - 1)]), np.stack([1 - share, share])


def _cubic(axis: Sizes, aligned: bool) -> Taps:
    centers = _centers(axis, aligned)
    first = np.floor(centers)
    offsets = np.arange(-1, 3)[:, None]
    positions = np.clip(first.astype(np.int64) + offsets, 0, axis.before - 1)
    return positions, cubic_weights(centers - first - offsets, -0.75)


def cubic_weights(distance: Any, a: float) -> Any:
    """Return the weight of an element at ``distance``, a NumPy array; ``a`` is the slope at 1."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _covering(reach: float, weight: Callable[[Any], Any]) -> Callable[[Sizes, bool], Taps]:
    """Return the taps of a filter as wide as an element of the result, for antialiasing."""

    def taps(axis: Sizes, aligned: bool) -> Taps:
        step = axis.step
        if aligned:
            step = (axis.before - 1) / (axis.after - 1) if axis.after > 1 else 0.0
        wide = max(step, 1.0)
        centers = step * (np.arange(axis.after) + 0.5)
        first = np.maximum((centers - reach * wide + 0.5).astype(np.int64), 0)
        last = np.minimum((centers + reach * wide + 0.5).astype(np.int64), axis.before)
        offsets = np.arange(int((last - first).max()))[:, None]
        weights = weight((first + offsets - centers + 0.5) / wide) * (offsets < last - first)
        return np.minimum(first + offsets, axis.before - 1), weights / weights.sum(0)

    return taps


_TAPS: Final[dict[tuple[bool, bool], Callable[[Sizes, bool], Taps]]] = {  # by (whether cubic, whether antialiased)
    (False, False): _linear,
    (True, False): _cubic,
    (False, True): _covering(1.0, lambda d: np.maximum(1 - np.abs(d), 0)),
    (True, True): _covering(2.0, lambda d: cubic_weights(d, -0.5)),
}


def upsample_nearest(x: Array, size: Size | None = None, scale_factor: Any = None) -> Tensor:
    """Resize images by ``interpolate`` with mode "nearest"."""
    return interpolate(x, size, scale_factor, "nearest")


def upsample_bilinear(x: Array, size: Size | None = None, scale_factor: Any = None) -> Tensor:
    """Resize images by ``interpolate`` with mode "bilinear" and ``align_corners``."""
    return interpolate(x, size, scale_factor, "bilinear", True)


_SAMPLING: Final = ("bilinear", "nearest", "bicubic")
_OUTSIDE: Final = ("zeros", "border", "reflection")


def affine_grid(theta: Array, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the positions to which affine maps move the elements of an image.

    Positions are (x, y) or (x, y, z) in [-1, 1], which covers the image from border to border, or with
    ``align_corners`` from the center of the first element to the center of the last one.

    Args:
        theta: the maps, shape (N, 2, 3), or (N, 3, 4) for volumes.
        size: the size of the images, (N, C, H, W) or (N, C, D, H, W).
        align_corners: see above.

    Returns:
        Shape (N, H, W, 2) or (N, D, H, W, 3).
    """
    sizes = as_shape("affine_grid", size)
    if len(sizes) < 4:
        raise ShapeError(f"[affine_grid] size must be (N, C, H, W) or (N, C, D, H, W); got {sizes}.")
    sizes = sizes[2:]
    n = len(sizes)
    if theta.ndim != 3 or theta.shape[1:] != (n, n + 1) or n not in (2, 3):
        raise ShapeError(
            f"[affine_grid] theta must have shape (N, 2, 3) for (N, C, H, W), or (N, 3, 4) for (N, C, D, H, W); got "
            f"{theta.shape} and spatial sizes {sizes}."
        )
    axes = [np.linspace(-1, 1, m) * (1 if align_corners else (m - 1) / m) if m > 1 else np.zeros(1) for m in sizes]
    points = np.stack([*reversed(np.meshgrid(*axes, indexing="ij")), np.ones(sizes)], -1)
    base = theta.lift(points.reshape(-1, n + 1).astype(theta.dtype.numpy), theta.dtype)
    result: Tensor = ops.reshape(ops.matmul(base, ops.transpose(theta)), (theta.shape[0], *sizes, n))
    return result


def grid_sample(
    x: Array, grid: Array, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Sample images at the positions ``grid`` (M. Jaderberg et al., "Spatial transformer networks", 2015).

    Args:
        x: the images (N, C, H, W), or volumes (N, C, D, H, W).
        grid: positions (N, …, 2) or (N, …, 3), as :func:`affine_grid` returns them.
        mode: how to interpolate between elements: "bilinear", "nearest", or for images "bicubic".
        padding_mode: the values outside: "zeros", the nearest one of the "border", or the "reflection" of the image.
        align_corners: see :func:`affine_grid`.

    Returns:
        Shape (N, C, …).
    """
    spatial = x.ndim - 2
    if mode not in _SAMPLING or padding_mode not in _OUTSIDE or (mode == "bicubic" and spatial != 2):
        raise ValueError(
            f"[grid_sample] mode must be one of {', '.join(_SAMPLING)} (bicubic for images), and padding_mode one of "
            f"{', '.join(_OUTSIDE)}; got {mode!r} and {padding_mode!r}."
        )
    if spatial not in (2, 3) or grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != spatial:
        raise ShapeError(
            f"[grid_sample] x and grid must have shapes (N, C, H, W) and (N, H', W', 2), or (N, C, D, H, W) and "
            f"(N, D', H', W', 3); got {x.shape} and {grid.shape}."
        )
    sizes, aligned = x.shape[2:], bool(align_corners)
    at = [_elements(ops.getitem(grid, (..., spatial - 1 - i)), n, aligned) for i, n in enumerate(sizes)]
    if mode != "bicubic":  # which moves each of its elements inside
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
    """Convert a position in [-1, 1] to elements."""
    return (position + 1) * ((n - 1) / 2) if aligned else ((position + 1) * n - 1) / 2


def _inside(p: Array, n: int, padding_mode: str, aligned: bool) -> Array:
    """Move a position into the image, unless there are zeros around it."""
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
    """Return the elements near a position, and their weights; None for 1."""
    if mode == "nearest":
        return [(ops.round(ops.stop_gradient(p)), None)]
    first = ops.floor(ops.stop_gradient(p))
    share = p - first
    if mode == "bilinear":
        return [(first, 1 - share), (first + 1, share)]
    return [(first + (i - 1), _cubic_weight(share, i)) for i in range(4)]


def _cubic_weight(share: Array, tap: int, a: float = -0.75) -> Array:
    """Return the weight of the element ``tap`` - 1 places after the one before the position (R. Keys, 1981)."""
    d = share + 1 if tap == 0 else share if tap == 1 else 1 - share if tap == 2 else 2 - share
    if tap in (1, 2):
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


# Layers ---------------------------------------------------------------------------------------------------------------

Upsample = layer("Upsample", interpolate, "size, scale_factor, mode, align_corners, recompute_scale_factor")


class UpsamplingNearest2d(Upsample):  # type: ignore[misc,valid-type]
    """Resize images by ``interpolate`` with mode "nearest"."""

    def __init__(self, size: Size | None = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):  # type: ignore[misc,valid-type]
    """Resize images by ``interpolate`` with mode "bilinear" and ``align_corners``."""

    def __init__(self, size: Size | None = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
