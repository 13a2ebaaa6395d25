"""Slices of an array rescaled, and sums that undo broadcasting."""

from __future__ import annotations

from typing import Any

from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, as_sizes, normalize_axis
from runnel.ops.arithmetic import add, divide, multiply
from runnel.ops.broadcasting import unbroadcast
from runnel.ops.comparison import greater
from runnel.ops.conversion import cast
from runnel.ops.logic import where
from runnel.ops.reductions import accumulated
from runnel.ops.statistics import norm, wide_dtype

_EPSILON = 1e-7  # of PyTorch's: so the norm stays just below the greatest


def renorm(x: Array, p: float, axis: int, maxnorm: float) -> Array:
    """``x``, each slice along ``axis`` whose norm of order ``p`` is greater than ``maxnorm`` scaled to that."""
    place = normalize_axis("renorm", axis, x.ndim)
    others = tuple(a for a in range(x.ndim) if a != place)
    wide = cast(x, wide_dtype(x))
    size = norm(wide, p, others, keepdims=True)
    is_long = greater(size, maxnorm)
    scale = where(is_long, divide(maxnorm, add(where(is_long, size, 1), _EPSILON)), 1)
    return cast(multiply(wide, scale), x.dtype)


def sum_to_size(x: Array, *size: Any) -> Array:
    """The sum of ``x`` over the axes along which ``size`` has 1 or no axis: what broadcasting from ``size`` repeats."""
    shape = as_sizes("sum_to_size", size[0] if len(size) == 1 else size)
    leading = x.ndim - len(shape)
    if leading < 0 or any(n not in (1, m) for n, m in zip(shape, x.shape[leading:], strict=True)):
        raise ShapeError(f"[sum_to_size] shape {shape} does not broadcast to {x.shape}.")
    return unbroadcast(x if x.dtype.is_inexact else cast(x, accumulated(x.dtype)), shape)
