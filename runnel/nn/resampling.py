"""Images of other sizes: each axis by itself, as sums of a few elements with weights that depend on sizes alone.

Positions and weights follow PyTorch's: element i of ``n`` covers [i, i + 1) of an axis, or, with ``align_corners``, the
first and the last elements of input and output lie on each other. Cubic weights are those of R. Keys, 1981.
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
from runnel.nn.module import Module
from runnel.ops.arguments import Array, as_shape, as_sizes, as_tuple, is_single
from runnel.ops.im2col import channels_last
from runnel.tensor.tensor import Tensor

Size = int | Sequence[int]
_LINEAR: Final = {"linear": 1, "bilinear": 2, "trilinear": 3}  # mode: spatial axes
_SMOOTH: Final = (*_LINEAR, "bicubic")
_MODES: Final = ("nearest", "nearest-exact", *_SMOOTH, "area")


class Sizes(NamedTuple):
    """An axis of ``before`` elements that is to have ``after``, a distance of ``step`` apart where corners are not
    aligned."""

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
    """``x`` (N, C, *sizes) with other sizes of one to three spatial axes.

    Args:
        x: an array; integers are interpolated in float32 and rounded.
        size: the sizes, one for all axes or one for each; or
        scale_factor: their ratios to those of ``x``; sizes are rounded down.
        mode: "nearest", "nearest-exact", "linear" (one axis), "bilinear", "bicubic" (two), "trilinear" (three), "area".
        align_corners: whether the outer elements of input and output lie on each other, for linear and cubic modes.
        recompute_scale_factor: distances follow from the rounded sizes, and not from ``scale_factor``.
        antialias: where an axis shrinks, average over all that an element covers ("bilinear" and "bicubic").
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
    return resized


def _require_mode(x: Array, mode: str, align_corners: bool | None, antialias: bool) -> None:
    spatial = x.ndim - 2
    if mode not in _MODES:
        raise ValueError(f"[interpolate] mode is one of {', '.join(_MODES)}; received {mode!r}.")
    expected = 2 if mode == "bicubic" else _LINEAR.get(mode)
    if not 1 <= spatial <= 3 or (expected is not None and spatial != expected):
        fitting = f"mode '{mode}' takes (N, C) and {expected or '1 to 3'} spatial axes"
        raise ShapeError(f"[interpolate] {fitting}; received shape {x.shape}.")
    if align_corners is not None and mode not in _SMOOTH:
        raise ValueError(f"[interpolate] align_corners is for {', '.join(_SMOOTH)}; received mode {mode!r}.")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f"[interpolate] antialias is for 'bilinear' and 'bicubic'; received mode {mode!r}.")


def _sizes(x: Array, size: Any, scale_factor: Any, recompute: bool) -> list[Sizes]:
    """What is wanted along each spatial axis."""
    before = x.shape[2:]
    if (size is None) == (scale_factor is None):
        raise ValueError("[interpolate] needs either size or scale_factor.")
    requested = size if scale_factor is None else scale_factor
    single = is_single(requested) if scale_factor is None else isinstance(requested, (int, float))
    values = (requested,) * len(before) if single else as_tuple(requested)
    if len(values) != len(before):
        raise ShapeError(f"[interpolate] shape {x.shape} has {len(before)} spatial axes; received {requested!r}.")
    after = [int(v) if scale_factor is None else math.floor(n * float(v)) for n, v in zip(before, values, strict=True)]
    if min((*before, *after)) < 1:
        raise ShapeError(f"[interpolate] sizes are positive; received {before}, which are to become {tuple(after)}.")
    as_sizes("interpolate", after)
    steps = [n / m for n, m in zip(before, after, strict=True)]
    if scale_factor is not None and not recompute:
        steps = [1 / float(v) for v in values]
    return [Sizes(*each) for each in zip(before, after, steps, strict=True)]


def _nearest(x: Array, place: int, axis: Sizes, *, exact: bool) -> Array:
    """For each element the one that it lies in, in PyTorch's single precision."""
    if axis.before == axis.after and axis.step == 1:
        return x
    if axis.after % axis.before == 0 and axis.step * axis.after == axis.before:  # each as often as the others
        times = axis.after // axis.before
        wide = ops.broadcast_to(ops.expand_dims(x, place + 1), (*x.shape[: place + 1], times, *x.shape[place + 1 :]))
        return ops.reshape(wide, (*x.shape[:place], axis.after, *x.shape[place + 1 :]))
    there = np.arange(axis.after, dtype=np.float32) + np.float32(0.5 if exact else 0)
    positions = np.minimum(np.floor(there * np.float32(axis.step)).astype(np.int64), axis.before - 1)
    return ops.take(x, x.lift(positions, int64), place)


# --- elements and their weights ---------------------------------------------------------------------------------------

Taps = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]  # positions and weights, (taps, elements of the result)


def _weighted(x: Array, place: int, positions: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> Array:
    """Σ weights[t] · x[positions[t]] along an axis."""
    along = tuple(-1 if i == place else 1 for i in range(x.ndim))
    terms = [
        ops.take(x, x.lift(p.astype(np.int64), int64), place) * x.lift(w.reshape(along).astype(x.dtype.numpy), x.dtype)
        for p, w in zip(positions, weights, strict=True)
    ]
    return functools.reduce(ops.add, terms)


def _centres(axis: Sizes, aligned: bool) -> np.ndarray[Any, Any]:
    """Where the elements of the result lie, counted in those of the input."""
    there = np.arange(axis.after, dtype=np.float64)
    if aligned:
        return there * ((axis.before - 1) / (axis.after - 1) if axis.after > 1 else 0.0)
    return (there + 0.5) * axis.step - 0.5


def _linear(axis: Sizes, aligned: bool) -> Taps:
    centres = np.maximum(_centres(axis, aligned), 0)
    first = np.minimum(np.floor(centres).astype(np.int64), axis.before - 1)
    share = np.clip(centres - first, 0, 1)
    return np.stack([first, np.minimum(first + 1, axis.before - 1)]), np.stack([1 - share, share])


def _cubic(axis: Sizes, aligned: bool) -> Taps:
    centres = _centres(axis, aligned)
    first = np.floor(centres)
    offsets = np.arange(-1, 3)[:, None]
    positions = np.clip(first.astype(np.int64) + offsets, 0, axis.before - 1)
    return positions, cubic_weights(centres - first - offsets, -0.75)


def cubic_weights(distance: Any, a: float) -> Any:
    """The weight of an element at a distance; ``a`` is the slope at 1. For NumPy's arrays, and below 2."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _covering(reach: float, weight: Callable[[Any], Any]) -> Callable[[Sizes, bool], Taps]:
    """Taps of a filter that is as wide as what an element of the result covers."""

    def taps(axis: Sizes, aligned: bool) -> Taps:
        step = axis.step
        if aligned:
            step = (axis.before - 1) / (axis.after - 1) if axis.after > 1 else 0.0
        wide = max(step, 1.0)
        centres = step * (np.arange(axis.after) + 0.5)
        first = np.maximum((centres - reach * wide + 0.5).astype(np.int64), 0)
        last = np.minimum((centres + reach * wide + 0.5).astype(np.int64), axis.before)
        offsets = np.arange(int((last - first).max()))[:, None]
        weights = weight((first + offsets - centres + 0.5) / wide) * (offsets < last - first)
        return np.minimum(first + offsets, axis.before - 1), weights / weights.sum(0)

    return taps


_TAPS: Final[dict[tuple[bool, bool], Callable[[Sizes, bool], Taps]]] = {  # by (whether cubic, whether antialiased)
    (False, False): _linear,
    (True, False): _cubic,
    (False, True): _covering(1.0, lambda d: np.maximum(1 - np.abs(d), 0)),
    (True, True): _covering(2.0, lambda d: cubic_weights(d, -0.5)),
}


def upsample_nearest(x: Array, size: Size | None = None, scale_factor: Any = None) -> Tensor:
    """``interpolate`` with mode "nearest"."""
    return interpolate(x, size, scale_factor, "nearest")


def upsample_bilinear(x: Array, size: Size | None = None, scale_factor: Any = None) -> Tensor:
    """``interpolate`` with mode "bilinear" and ``align_corners``."""
    return interpolate(x, size, scale_factor, "bilinear", True)


class Upsample(Module):
    """An image with other sizes: ``functional.interpolate`` with these arguments."""

    def __init__(
        self,
        size: Size | None = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, x: Any) -> Any:
        return interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)

    def extra_repr(self) -> str:
        what = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{what}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """``Upsample`` with mode "nearest"."""

    def __init__(self, size: Size | None = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """``Upsample`` with mode "bilinear" and aligned corners."""

    def __init__(self, size: Size | None = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


_SAMPLING: Final = ("bilinear", "nearest", "bicubic")
_OUTSIDE: Final = ("zeros", "border", "reflection")


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
    if mode not in _SAMPLING or padding_mode not in _OUTSIDE or (mode == "bicubic" and spatial != 2):
        raise ValueError(
            f"[grid_sample] mode is one of {', '.join(_SAMPLING)} (bicubic in two dimensions), and padding_mode of "
            f"{', '.join(_OUTSIDE)}; received {mode!r} and {padding_mode!r}."
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
