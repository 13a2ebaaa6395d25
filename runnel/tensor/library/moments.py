"""Methods with PyTorch's results: standard deviation and variance over n - 1, and norms."""

from __future__ import annotations

from typing import Any

from runnel.core.dtypes import Dtype
from runnel.ops import precision
from runnel.ops.arguments import Array, Axis
from runnel.ops.library.matrices import matrix_norm


def var(
    x: Array, axis: Axis = None, correction: float | None = 1, keepdims: bool = False, *, unbiased: bool | None = None
) -> Array:
    """The mean square distance from the mean over ``axis``, over n - ``correction``: 1 by default, as in PyTorch, and 0
    with ``unbiased=False``. (``rn.var`` divides by n, as the Array API says.)"""
    return precision.var(x, *_over(axis, correction, unbiased), keepdims)


def std(
    x: Array, axis: Axis = None, correction: float | None = 1, keepdims: bool = False, *, unbiased: bool | None = None
) -> Array:
    """The square root of the method ``var``, with its arguments. (``rn.std`` divides by n.) Derivative 0 at 0."""
    return precision.std(x, *_over(axis, correction, unbiased), keepdims)


def var_mean(
    x: Array, axis: Axis = None, correction: float | None = 1, keepdims: bool = False, *, unbiased: bool | None = None
) -> tuple[Array, Array]:
    """The method ``var`` and the mean."""
    over, correction = _over(axis, correction, unbiased)
    return precision.var(x, over, correction, keepdims), precision.mean(x, over, keepdims)


def std_mean(
    x: Array, axis: Axis = None, correction: float | None = 1, keepdims: bool = False, *, unbiased: bool | None = None
) -> tuple[Array, Array]:
    """The method ``std`` and the mean."""
    over, correction = _over(axis, correction, unbiased)
    return precision.std(x, over, correction, keepdims), precision.mean(x, over, keepdims)


def _over(axis: Any, correction: Any, unbiased: bool | None) -> tuple[Any, float]:
    """The axes and the correction; PyTorch's older form has a bool, ``unbiased``, in the place of either."""
    if isinstance(axis, bool):
        axis, unbiased = None, axis
    return axis, float((1 if correction is None else correction) if unbiased is None else unbiased)


def norm(
    x: Array, p: float | str | None = "fro", axis: Axis = None, keepdims: bool = False, dtype: Dtype = None
) -> Array:
    """The vector norm of order ``p`` over ``axis``; by default that of all elements, of order 2. Derivative 0 at 0.
    With "nuc", the sum of the singular values of matrices, in the two axes ``axis`` or all."""
    if p == "nuc":
        return matrix_norm(x if dtype is None else x.astype(dtype), p, (0, 1) if axis is None else axis, keepdims)
    return precision.norm(x if dtype is None else x.astype(dtype), 2 if p in ("fro", None) else p, axis, keepdims)
