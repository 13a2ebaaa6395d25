"""Boxes (N, 4) as (x1, y1, x2, y2): areas, overlaps, formats, non-maximum suppression."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runnel.ops.elementwise.arithmetic import maximum, minimum
from runnel.ops.elementwise.circular import atan
from runnel.ops.reductions.statistics import clip
from runnel.ops.shapes.pieces import stack
from runnel.tensor.creation import asarray


def box_area(boxes: Any) -> Any:
    """Return the areas of boxes."""
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def _wide(boxes: Any) -> Any:
    return boxes if boxes.dtype.is_inexact else boxes.float()


def _overlaps(boxes1: Any, boxes2: Any) -> tuple[Any, Any]:
    """Return the areas of intersections and unions: (N, M)."""
    low = maximum(boxes1[:, None, :2], boxes2[None, :, :2])
    high = minimum(boxes1[:, None, 2:], boxes2[None, :, 2:])
    sides = clip(high - low, 0)
    common = sides[..., 0] * sides[..., 1]
    return common, box_area(boxes1)[:, None] + box_area(boxes2)[None, :] - common


def box_iou(boxes1: Any, boxes2: Any) -> Any:
    """Return intersection over union of all pairs: (N, M)."""
    common, union = _overlaps(boxes1, boxes2)
    return common / union


def _hull(boxes1: Any, boxes2: Any) -> Any:
    """Return width and height of the smallest box around each pair: (N, M, 2)."""
    low = minimum(boxes1[:, None, :2], boxes2[None, :, :2])
    return clip(maximum(boxes1[:, None, 2:], boxes2[None, :, 2:]) - low, 0)


def generalized_box_iou(boxes1: Any, boxes2: Any) -> Any:
    """Return the generalized overlap of all pairs (H. Rezatofighi et al., 2019): (N, M)."""
    common, union = _overlaps(boxes1, boxes2)
    hull = _hull(boxes1, boxes2)
    area = hull[..., 0] * hull[..., 1]
    return common / union - (area - union) / area


def _distance(boxes1: Any, boxes2: Any, eps: float) -> tuple[Any, Any]:
    """Return the overlap, and the squared distance of centers over the squared diagonal of the hull."""
    hull = _hull(_wide(boxes1), _wide(boxes2))
    diagonal = hull[..., 0] ** 2 + hull[..., 1] ** 2 + eps
    centers1, centers2 = ((b[:, :2] + b[:, 2:]) / 2 for b in (_wide(boxes1), _wide(boxes2)))
    apart = ((centers1[:, None] - centers2[None]) ** 2).sum(axis=-1)
    return box_iou(boxes1, boxes2), apart / diagonal


def distance_box_iou(boxes1: Any, boxes2: Any, eps: float = 1e-7) -> Any:
    """Return the overlap less the distance of centers (Z. Zheng et al., "Distance-IoU loss", 2020): (N, M)."""
    iou, distance = _distance(boxes1, boxes2, eps)
    return iou - distance


def complete_box_iou(boxes1: Any, boxes2: Any, eps: float = 1e-7) -> Any:
    """Return the overlap less distances of centers and of shapes (Z. Zheng et al., 2020): (N, M)."""
    iou, distance = _distance(boxes1, boxes2, eps)
    shapes = [atan((b[:, 2] - b[:, 0]) / (b[:, 3] - b[:, 1])) for b in (_wide(boxes1), _wide(boxes2))]
    v = (4 / math.pi**2) * (shapes[0][:, None] - shapes[1][None]) ** 2
    alpha = (v / (1 - iou + v + eps)).detach()
    return iou - distance - alpha * v


def box_convert(boxes: Any, in_fmt: str, out_fmt: str) -> Any:
    """Convert boxes (..., 4) among "xyxy", "xywh" and "cxcywh"."""
    for name in (in_fmt, out_fmt):
        if name not in ("xyxy", "xywh", "cxcywh"):
            raise ValueError(f"[box_convert] a format must be 'xyxy', 'xywh' or 'cxcywh'; got {name!r}.")
    if in_fmt == out_fmt:
        return boxes.clone()
    a, b, c, d = (boxes[..., i] for i in range(4))
    if in_fmt == "xywh":
        a, b, c, d = a, b, a + c, b + d
    elif in_fmt == "cxcywh":
        a, b, c, d = a - 0.5 * c, b - 0.5 * d, a + 0.5 * c, b + 0.5 * d
    if out_fmt == "xywh":
        a, b, c, d = a, b, c - a, d - b
    elif out_fmt == "cxcywh":
        a, b, c, d = (a + c) / 2, (b + d) / 2, c - a, d - b
    return stack([a, b, c, d], axis=-1)


def clip_boxes_to_image(boxes: Any, size: tuple[int, int]) -> Any:
    """Clip boxes to an image of (height, width)."""
    height, width = size
    x, y = clip(boxes[..., 0::2], 0, width), clip(boxes[..., 1::2], 0, height)
    return stack([x, y], axis=-1).reshape(boxes.shape)


def remove_small_boxes(boxes: Any, min_size: float) -> Any:
    """Return the numbers of the boxes whose sides are at least ``min_size``: int64."""
    is_large = ((boxes[:, 2] - boxes[:, 0]) >= min_size) & ((boxes[:, 3] - boxes[:, 1]) >= min_size)
    return asarray(np.flatnonzero(is_large.numpy()))


def nms(boxes: Any, scores: Any, iou_threshold: float) -> Any:
    """Return the boxes, best first, that no better one overlaps by more than ``iou_threshold``: int64."""
    corners, values = boxes.detach().numpy(), scores.detach().numpy()
    if corners.ndim != 2 or corners.shape[1] != 4 or values.shape != corners.shape[:1]:
        raise ValueError(f"[nms] boxes must be (N, 4) and scores (N,); got {corners.shape} and {values.shape}.")
    order = np.argsort(-values, kind="stable")
    areas = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    kept = []
    while len(order):
        best, order = order[0], order[1:]
        kept.append(best)
        low, high = np.maximum(corners[best, :2], corners[order, :2]), np.minimum(corners[best, 2:], corners[order, 2:])
        common = np.clip(high - low, 0, None).prod(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            overlap = common / (areas[best] + areas[order] - common)
        order = order[~(overlap > iou_threshold)]
    return asarray(np.array(kept, np.int64))


def batched_nms(boxes: Any, scores: Any, idxs: Any, iou_threshold: float) -> Any:
    """Return :func:`nms` of each class ``idxs`` (N,) by itself, best first."""
    classes, values = idxs.numpy(), scores.detach().numpy()
    kept = []
    for number in np.unique(classes):
        rows = np.flatnonzero(classes == number)
        own = asarray(rows)
        kept.append(rows[nms(boxes[own], scores[own], iou_threshold).numpy()])
    numbers = np.concatenate(kept) if kept else np.zeros(0, np.int64)
    return asarray(numbers[np.argsort(-values[numbers], kind="stable")])


def masks_to_boxes(masks: Any) -> Any:
    """Return the smallest box around each mask (N, H, W): float32."""
    boxes = np.zeros((masks.shape[0], 4), np.float32)
    for row, mask in zip(boxes, masks.numpy(), strict=True):
        y, x = np.nonzero(mask)
        row[:] = x.min(), y.min(), x.max(), y.max()
    return asarray(boxes)
