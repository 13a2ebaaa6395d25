"""Regions of feature maps as maps of one size: ``roi_align`` (K. He et al., 2017) and ``roi_pool`` (R. Girshick, 2015).

The boxes' numbers decide which elements are read, so they are read outside compiled functions. As in torchvision, no
gradient leads to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core.errors import ShapeError
from runnel.nn.module import Module
from runnel.ops.elementwise.comparison import where
from runnel.ops.indexing.gather import take
from runnel.ops.reductions.primitives import sum
from runnel.ops.shapes.views import permute, reshape
from runnel.tensor.creation import asarray


def _regions(name: str, boxes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of the image of each box, and the boxes (K, 4), from rows (K, 5) or a list of boxes."""
    if isinstance(boxes, (list, tuple)):
        rows = [np.asarray(b.detach().numpy()) for b in boxes]
        numbers = [np.full(len(b), i, np.int64) for i, b in enumerate(rows)]
        if any(b.ndim != 2 or b.shape[1] != 4 for b in rows):
            raise ShapeError(f"[{name}] boxes of each image must have shape (L, 4); got {[b.shape for b in rows]}.")
        return np.concatenate([*numbers, np.zeros(0, np.int64)]), np.concatenate([*rows, np.zeros((0, 4), np.float32)])
    table = np.asarray(boxes.detach().numpy())
    if table.ndim != 2 or table.shape[1] != 5:
        raise ShapeError(f"[{name}] boxes must have shape (K, 5), the number of the image first; got {table.shape}.")
    return table[:, 0].astype(np.int64), table[:, 1:]


def _sides(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def _gathered(x: Any, image: np.ndarray, y: np.ndarray, column: np.ndarray) -> Any:
    """Return the channels at places of images, as a new last axis."""
    n, c, h, w = x.shape
    rows = reshape(permute(x, (0, 2, 3, 1)), (n * h * w, c))
    return take(rows, asarray((image * h + y) * w + column), 0)


def _samples(start: np.ndarray, size: np.ndarray, bins: int, ratio: int, length: int) -> tuple[Any, ...]:
    """Return for each box, bin and sample along one axis: the lower and upper place, the part of the upper one, and
    whether the sample counts; and the number of samples of each bin."""
    step = size / np.float32(bins)
    counts = np.full(len(size), ratio) if ratio > 0 else np.ceil(step).astype(np.int64)
    sample = np.arange(max(int(counts.max(initial=0)), 1))
    offsets = (sample[None] + np.float32(0.5)) * step[:, None] / np.maximum(counts, 1)[:, None]
    place = start[:, None, None] + np.arange(bins)[None, :, None] * step[:, None, None] + offsets[:, None, :]
    place = place.astype(step.dtype)
    used = (sample[None] < counts[:, None])[:, None, :] & (place >= -1) & (place <= length)
    place = np.maximum(place, 0)
    low = np.minimum(place.astype(np.int64), length - 1)
    place = np.where(low >= length - 1, low.astype(place.dtype), place)
    return low, np.minimum(low + 1, length - 1), place - low, used, counts


def roi_align(
    input: Any,
    boxes: Any,
    output_size: Any,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Any:
    """Return for each box the means of interpolated samples in a grid of ``output_size`` bins: (K, C, height, width).

    ``boxes`` are (K, 5), with the number of the image first, or a list of (L, 4) for each image. A bin has
    ``sampling_ratio`` samples along each axis, or one for each element that it covers.
    """
    image, corners = _regions("roi_align", boxes)
    height, width = _sides(output_size)
    corners = corners.astype(input.dtype.numpy) * corners.dtype.type(spatial_scale) - (0.5 if aligned else 0.0)
    corners = corners.astype(input.dtype.numpy)
    sizes = corners[:, 2:] - corners[:, :2]
    if not aligned:
        sizes = np.maximum(sizes, 1).astype(corners.dtype)
    y0, y1, dy, in_y, rows = _samples(corners[:, 1], sizes[:, 1], height, sampling_ratio, input.shape[2])
    x0, x1, dx, in_x, columns = _samples(corners[:, 0], sizes[:, 0], width, sampling_ratio, input.shape[3])
    used = in_y[:, :, None, :, None] & in_x[:, None, :, None, :]
    share = used / np.maximum(rows * columns, 1)[:, None, None, None, None]
    total: Any = 0
    for y, wy in ((y0, 1 - dy), (y1, dy)):
        for x, wx in ((x0, 1 - dx), (x1, dx)):
            weight = (share * wy[:, :, None, :, None] * wx[:, None, :, None, :]).astype(corners.dtype)
            at = np.broadcast_arrays(image[:, None, None, None, None], y[:, :, None, :, None], x[:, None, :, None, :])
            total = total + sum(_gathered(input, *at) * asarray(weight)[..., None], (3, 4))
    return permute(total, (0, 3, 1, 2))


def _windows(low: np.ndarray, high: np.ndarray, bins: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of each box and bin along one axis, the last of which repeat, and whether there are any."""
    step = np.maximum(high - low + 1, 1).astype(np.float32)[:, None] / np.float32(bins)
    edges = np.arange(bins + 1, dtype=np.float32)[None] * step
    first = np.clip(np.floor(edges[:, :-1]).astype(np.int64) + low[:, None], 0, length)
    end = np.clip(np.ceil(edges[:, 1:]).astype(np.int64) + low[:, None], 0, length)
    count = np.arange(max(int((end - first).max(initial=0)), 1))
    places = np.minimum(first[..., None] + count, np.maximum(end - 1, first)[..., None])
    return np.minimum(places, length - 1), end > first


def roi_pool(input: Any, boxes: Any, output_size: Any, spatial_scale: float = 1.0) -> Any:
    """Return for each box the largest elements in a grid of ``output_size`` bins: (K, C, height, width).

    ``boxes`` are (K, 5) or a list, as in :func:`roi_align`."""
    image, corners = _regions("roi_pool", boxes)
    height, width = _sides(output_size)
    scaled = corners.astype(np.float32) * np.float32(spatial_scale)
    low_x, low_y, high_x, high_y = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int64).T
    y, has_y = _windows(low_y, high_y, height, input.shape[2])
    x, has_x = _windows(low_x, high_x, width, input.shape[3])
    at = np.broadcast_arrays(image[:, None, None, None, None], y[:, :, None, :, None], x[:, None, :, None, :])
    found = _gathered(input, *map(_as_bins, at))
    largest = found.max(3).values if len(image) else sum(found, 3)
    filled = asarray(has_y[:, :, None, None] & has_x[:, None, :, None])
    return permute(where(filled, largest, 0), (0, 3, 1, 2))


def _as_bins(places: np.ndarray) -> np.ndarray:
    """Return places of the two axes of a bin as one axis."""
    return places.reshape(*places.shape[:3], places.shape[3] * places.shape[4])


class RoIAlign(Module):
    """:func:`roi_align` as a layer."""

    def __init__(self, output_size: Any, spatial_scale: float, sampling_ratio: int, aligned: bool = False) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale
        self.sampling_ratio, self.aligned = sampling_ratio, aligned

    def forward(self, input: Any, rois: Any) -> Any:
        return roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned)


class RoIPool(Module):
    """:func:`roi_pool` as a layer."""

    def __init__(self, output_size: Any, spatial_scale: float) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale

    def forward(self, input: Any, rois: Any) -> Any:
        return roi_pool(input, rois, self.output_size, self.spatial_scale)
