"""Convolutions of integers, exact modulo 2ⁿ: for each tap of the kernel a product of matrices of integers."""

from __future__ import annotations

import functools
import math
from typing import Any

from runnel.core.avals import Shape, aval
from runnel.core.dtypes import float32
from runnel.core.tables import Op, abstract_eval
from runnel.ops.arguments import Array
from runnel.ops.arithmetic import add
from runnel.ops.contraction import matmul
from runnel.ops.im2col import channels_first, channels_last, kernel_slices
from runnel.ops.padding import pad, pad_spread
from runnel.ops.pieces import flip, narrow
from runnel.ops.spatial import Pairs
from runnel.ops.views import permute, reshape


def require_fit(op: Op, x: Array, w: Array, **attrs: Any) -> Shape:
    """The shape of the result; raises what the convolution ``op`` of floats of these shapes raises."""
    shape: Shape = abstract_eval[op](aval(x.shape, float32), aval(w.shape, float32), **attrs).shape
    return shape


def convolved(x: Array, w: Array, stride: Shape, padding: Pairs, dilation: Shape, groups: int) -> Array:
    """Of ``x`` (N, C, *sizes) and ``w`` (K, C/groups, *kernel) that fit."""
    kernel, count = w.shape[2:], w.shape[0]
    views = kernel_slices(pad(channels_last(x), ((0, 0), *padding, (0, 0))), kernel, stride, dilation)
    split = reshape(w, (groups, count // groups, w.shape[1], len(views)))
    parts = []
    for tap, view in enumerate(views):
        rows = reshape(view, (math.prod(view.shape[:-1]), groups, w.shape[1]))
        weights = reshape(narrow(split, 3, tap, 1), split.shape[:3])
        parts.append(matmul(permute(rows, (1, 0, 2)), permute(weights, (0, 2, 1))))
    total = permute(functools.reduce(add, parts), (1, 0, 2))
    return channels_first(reshape(total, (*views[0].shape[:-1], count)))


def transposed(x: Array, w: Array, size: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int) -> Array:
    """The transpose, of ``w`` (C, K/groups, *kernel): the flipped kernel over ``x`` with its elements apart."""
    channels, per_group, *kernel = w.shape
    spatial = len(kernel)
    reach = [gap * (extent - 1) for gap, extent in zip(dilation, kernel, strict=True)]
    widths = [
        (r, max(low + n - (m - 1) * step - 1, 0), step)
        for r, n, (low, _), m, step in zip(reach, size, padding, x.shape[2:], stride, strict=True)
    ]
    spread = pad_spread(x, ((0, 0, 1), (0, 0, 1), *widths), 0)
    grouped = reshape(w, (groups, channels // groups, per_group, *kernel))
    turned = permute(flip(grouped, tuple(range(3, 3 + spatial))), (0, 2, 1, *range(3, 3 + spatial)))
    y = convolved(
        spread, reshape(turned, (groups * per_group, channels // groups, *kernel)), (1,) * spatial,
        ((0, 0),) * spatial, dilation, groups,
    )  # fmt: skip
    for axis, (n, (low, _)) in enumerate(zip(size, padding, strict=True), 2):
        y = narrow(y, axis, low, n)
    return y
