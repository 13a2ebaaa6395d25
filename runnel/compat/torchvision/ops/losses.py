"""Losses of detectors: the focal loss, and losses of overlaps."""

from __future__ import annotations

import math
from typing import Any

from runnel.nn import functional
from runnel.ops.elementwise.arithmetic import maximum, minimum
from runnel.ops.elementwise.circular import atan
from runnel.ops.elementwise.comparison import where


def _reduced(name: str, loss: Any, reduction: str) -> Any:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"[{name}] reduction must be 'none', 'mean' or 'sum'; got {reduction!r}.")
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean() if loss.numel() else 0.0 * loss.sum()


def sigmoid_focal_loss(
    inputs: Any, targets: Any, alpha: float = 0.25, gamma: float = 2, reduction: str = "none"
) -> Any:
    """Return the focal loss of logits (T. Lin et al., "Focal loss for dense object detection", 2017)."""
    p = inputs.sigmoid()
    loss = functional.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    loss = loss * (1 - (p * targets + (1 - p) * (1 - targets))) ** gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return _reduced("sigmoid_focal_loss", loss, reduction)


def _parts(boxes1: Any, boxes2: Any, eps: float) -> tuple[Any, ...]:
    """Return overlap, union, and the sides of the hull, pair by pair."""
    low, high = maximum(boxes1[..., :2], boxes2[..., :2]), minimum(boxes1[..., 2:], boxes2[..., 2:])
    sides = high - low
    is_common = (sides[..., 0] > 0) & (sides[..., 1] > 0)
    common = where(is_common, sides[..., 0] * sides[..., 1], 0.0)
    areas = [(b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1]) for b in (boxes1, boxes2)]
    union = areas[0] + areas[1] - common
    hull = maximum(boxes1[..., 2:], boxes2[..., 2:]) - minimum(boxes1[..., :2], boxes2[..., :2])
    return common / (union + eps), union, hull


def generalized_box_iou_loss(boxes1: Any, boxes2: Any, reduction: str = "none", eps: float = 1e-7) -> Any:
    """Return 1 less the generalized overlap of each pair."""
    iou, union, hull = _parts(boxes1, boxes2, eps)
    area = hull[..., 0] * hull[..., 1]
    return _reduced("generalized_box_iou_loss", 1 - (iou - (area - union) / (area + eps)), reduction)


def _distance_loss(boxes1: Any, boxes2: Any, eps: float) -> tuple[Any, Any]:
    iou, _, hull = _parts(boxes1, boxes2, eps)
    apart = ((boxes1[..., :2] + boxes1[..., 2:] - boxes2[..., :2] - boxes2[..., 2:]) / 2) ** 2
    return 1 - iou + apart.sum(axis=-1) / ((hull**2).sum(axis=-1) + eps), iou


def distance_box_iou_loss(boxes1: Any, boxes2: Any, reduction: str = "none", eps: float = 1e-7) -> Any:
    """Return 1 less the overlap, plus the distance of centers, of each pair."""
    return _reduced("distance_box_iou_loss", _distance_loss(boxes1, boxes2, eps)[0], reduction)


def complete_box_iou_loss(boxes1: Any, boxes2: Any, reduction: str = "none", eps: float = 1e-7) -> Any:
    """Return 1 less the overlap, plus distances of centers and of shapes, of each pair."""
    loss, iou = _distance_loss(boxes1, boxes2, eps)
    shapes = [atan((b[..., 2] - b[..., 0]) / (b[..., 3] - b[..., 1])) for b in (boxes1, boxes2)]
    v = (4 / math.pi**2) * (shapes[1] - shapes[0]) ** 2
    alpha = (v / (1 - iou + v + eps)).detach()
    return _reduced("complete_box_iou_loss", loss + alpha * v, reduction)
