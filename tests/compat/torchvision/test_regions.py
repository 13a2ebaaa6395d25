"""Regions of feature maps against sums over their elements, one by one."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
from runnel.compat.torchvision import ops
from runnel.core.errors import ShapeError

pytestmark = pytest.mark.unit
X = np.random.default_rng(0).standard_normal((2, 3, 6, 7)).astype(np.float32)
BOXES = np.array([[0, 1, 1, 5, 4], [1, 0, 2, 3.5, 5.25], [1, -6, -4, 1, 2], [0, 4, 4, 20, 11]], np.float32)


def interpolated(image: np.ndarray, y: float, x: float) -> np.ndarray:
    (h, w), (y, x) = image.shape[1:], (float(y), float(x))
    if not (-1 <= y <= h and -1 <= x <= w):
        return np.zeros(len(image))
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    corners = [(int(y) + i, int(x) + j) for i in (0, 1) for j in (0, 1)]
    return sum(image[:, min(i, h - 1), min(j, w - 1)] * (1 - abs(y - i)) * (1 - abs(x - j)) for i, j in corners)  # type: ignore[return-value]


def align(box: np.ndarray, bins: int, ratio: int, aligned: bool) -> np.ndarray:
    image, (x1, y1, x2, y2) = X[int(box[0])].astype(float), box[1:] - 0.5 * aligned
    width, height = (max(s, 0 if aligned else 1) / bins for s in (x2 - x1, y2 - y1))
    rows, columns = (ratio if ratio > 0 else int(np.ceil(s)) for s in (height, width))
    return np.array([
        [
            np.mean([
                interpolated(image, y1 + (i + (a + 0.5) / rows) * height, x1 + (j + (b + 0.5) / columns) * width)
                for a in range(rows) for b in range(columns)
            ], 0)
            for j in range(bins)
        ]
        for i in range(bins)
    ]).transpose(2, 0, 1)  # fmt: skip


@pytest.mark.parametrize(("ratio", "aligned"), [(2, False), (-1, True), (1, True), (-1, False)])
def test_aligned_regions(ratio: int, aligned: bool) -> None:
    found = ops.roi_align(rn.asarray(X), rn.asarray(BOXES * [1, 2, 2, 2, 2]).float(), 2, 0.5, ratio, aligned)
    np.testing.assert_allclose(found.numpy(), [align(box, 2, ratio, aligned) for box in BOXES], atol=1e-5)
    listed = ops.RoIAlign(2, 1.0, ratio, aligned)(
        rn.asarray(X), [rn.asarray(BOXES[:1, 1:]), rn.asarray(BOXES[1:3, 1:])]
    )
    np.testing.assert_allclose(listed.numpy(), found.numpy()[:3], atol=1e-5)


def test_pooled_regions_and_gradients() -> None:
    x = rn.asarray(X).requires_grad_()
    found = ops.RoIPool((2, 3), 1.0)(x, rn.asarray(BOXES))
    assert found.shape == (4, 3, 2, 3)
    np.testing.assert_array_equal(found.numpy()[0, :, 0, 0], X[0, :, 1:3, 1:3].max((1, 2)))
    np.testing.assert_array_equal(found.numpy()[2, :, 0], np.stack([X[1, :, :0, :1].sum((1, 2))] * 3, 1))
    found[0, :, 1, 2].sum().backward()
    assert x.grad is not None and x.grad.numpy()[0].sum() == 3 and not x.grad.numpy()[:, :, :3].any()
    assert ops.roi_pool(x, rn.zeros((0, 5)), 2).shape == ops.roi_align(x, rn.zeros((0, 5)), 2).shape == (0, 3, 2, 2)
    with pytest.raises(ShapeError, match=r"must have shape \(K, 5\)"):
        ops.roi_align(x, rn.zeros((1, 4)), 2)
