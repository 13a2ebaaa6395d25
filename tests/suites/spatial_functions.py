"""The functions over spatial axes, for the suites that trace and differentiate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel import ops

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(14)
X = RNG.normal(size=(2, 4, 5, 6))
W = RNG.normal(size=(6, 4, 3, 2))
G = RNG.normal(size=(6, 2, 2, 2))
D = RNG.normal(size=(8, 1, 2, 2))
T = RNG.normal(size=(4, 3, 2, 3))
B = RNG.normal(size=6)
P = RNG.uniform(0.5, 1.5, 4)
Q = RNG.normal(size=4)


def _standardized(x: Any, weight: Any, bias: Any) -> Any:
    return ops.batch_norm(x, *ops.channel_moments(x), weight, bias)


SPATIAL_FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "conv": (lambda x, w, b: ops.conv(x, w, b, (2, 1), ((1, 0), (0, 2)), (1, 2)), (X, W, B)),
    "conv_groups": (lambda x, w, b: ops.conv(x, w, b, padding="same", groups=2), (X, G, B)),
    "conv_depthwise": (lambda x, w: ops.conv(x, w, stride=2, padding=1, groups=4), (X, D)),
    "conv_1d": (lambda x, w: ops.conv(x, w, padding=1), (X[:, :, 0].copy(), W[..., 0].copy())),
    "conv_transpose": (lambda x, w: ops.conv_transpose(x, w, None, (2, 3), 1, (1, 0)), (X, T)),
    "max_pool": (lambda x: ops.max_pool(x, (2, 3)), (X,)),
    "max_pool_overlapping": (lambda x: ops.max_pool(x, 3, (1, 2), 1), (X,)),
    "avg_pool": (lambda x: ops.avg_pool(x, (2, 3)), (X,)),
    "avg_pool_overlapping": (lambda x: ops.avg_pool(x, 3, 2, 1, count_include_pad=False), (X,)),
    "adaptive_avg_pool": (lambda x: ops.adaptive_avg_pool(x, (2, 4)), (X,)),
    "adaptive_max_pool": (lambda x: ops.adaptive_max_pool(x, (2, 4)), (X,)),
    "batch_norm": (_standardized, (X, P, Q)),
    "group_norm": (lambda x, w, b: ops.group_norm(x, 2, w, b), (X, P, Q)),
    "instance_norm": (ops.instance_norm, (X, P, Q)),
    "pad_reflect": (lambda x: ops.pad(x, ((0, 0), (0, 0), (2, 1), (0, 3)), mode="reflect"), (X,)),
}  # fmt: skip
