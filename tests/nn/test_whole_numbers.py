"""Images of bytes, resized."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
from runnel.nn import functional

IMAGE = np.random.default_rng(0).choice(np.array([0, 255], np.uint8), (1, 2, 5, 6))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_bytes_are_interpolated_like_floats_and_rounded(mode: str) -> None:
    actual = functional.interpolate(rn.asarray(IMAGE), (9, 4), mode=mode)
    exact = functional.interpolate(rn.asarray(IMAGE.astype(np.float32)), (9, 4), mode=mode).numpy()
    assert actual.dtype is rn.uint8
    np.testing.assert_array_equal(actual.numpy(), np.clip(np.round(exact), 0, 255).astype(np.uint8))
    assert mode == "bilinear" or exact.max() > 255
