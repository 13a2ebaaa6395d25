"""Methods with PyTorch's results: the greatest and smallest elements, and sorted ones, with their positions.

With NumPy's ``axis=`` or ``keepdims=`` they answer as the functions ``rn.max`` etc. do: with values alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from runnel.core.composed import composed
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import Dtype
from runnel.ops import precision
from runnel.ops.arguments import Array, Axis, normalize_axis
from runnel.ops.elementwise import arithmetic
from runnel.ops.indexing.gather import take_along_axis
from runnel.ops.linear_algebra.matrices import matrix_norm
from runnel.ops.reductions import primitives
from runnel.ops.shapes.views import expand_dims, reshape, squeeze
from runnel.ops.sorting import sort as sorting
from runnel.ops.sorting.order import Ranked

_LEFT_OUT: Final[Any] = object()


@composed
def max(
    x: Array, dim: Array | Axis = None, keepdim: bool = False, *, axis: Axis = _LEFT_OUT, keepdims: Any = _LEFT_OUT
) -> Any:
    """Return the largest elements.

    Along ``dim`` the result is a named tuple (values, indices); of equal elements the first one counts, and receives
    the gradient. With an array instead of ``dim``, return the elementwise maximum. With ``axis=``, ``keepdims=`` or
    several ``dim``, return only the values, as ``rn.max`` does.
    """
    return _extremes("max", (primitives.max, primitives.argmax, arithmetic.maximum), x, dim, keepdim, axis, keepdims)


@composed
def min(
    x: Array, dim: Array | Axis = None, keepdim: bool = False, *, axis: Axis = _LEFT_OUT, keepdims: Any = _LEFT_OUT
) -> Any:
    """Return the smallest elements. Arguments and results are the same as for :func:`max`."""
    return _extremes("min", (primitives.min, primitives.argmin, arithmetic.minimum), x, dim, keepdim, axis, keepdims)


def _extremes(
    name: str,
    functions: tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]],
    x: Array,
    dim: Any,
    keepdim: bool,
    axis: Any,
    keepdims: Any,
) -> Any:
    values_of, place_of, both_of = functions
    if axis is not _LEFT_OUT or keepdims is not _LEFT_OUT:
        return values_of(x, dim if axis is _LEFT_OUT else axis, keepdim if keepdims is _LEFT_OUT else keepdims)
    if isinstance(dim, TensorLike):
        return both_of(x, dim)
    if dim is None or isinstance(dim, tuple | list):
        return values_of(x, dim, keepdim)
    if not x.ndim:
        normalize_axis(name, dim, 1)
        return Ranked(x.read(), place_of(x))
    indices = place_of(x, dim, True)
    values = take_along_axis(x, indices, dim)
    return Ranked(values, indices) if keepdim else Ranked(squeeze(values, dim), squeeze(indices, dim))


@composed
def sort(
    x: Array, dim: int = -1, descending: bool = False, stable: bool = True, *, axis: int | None = _LEFT_OUT
) -> Any:
    """Sort the elements along ``dim``, in ascending (or ``descending``) order.

    The result is a named tuple (values, indices) with int64 positions; equal elements keep their order. With
    ``axis=``, return only the values, as ``rn.sort`` does.
    """
    if axis is not _LEFT_OUT:
        return sorting.sort(x, axis, descending, stable)
    if not x.ndim:
        normalize_axis("sort", dim, 1)
        values, indices = sort(expand_dims(x, 0), 0)
        return Ranked(reshape(values, ()), reshape(indices, ()))
    indices = sorting.argsort(x, dim, descending, stable)
    return Ranked(take_along_axis(x, indices, dim), indices)


def var(
    x: Array, axis: Axis = None, correction: float | None = 1, keepdims: bool = False, *, unbiased: bool | None = None
) -> Array:
    """Return the variance over ``axis``: the sum of squared distances from the mean over n - ``correction``.

    The correction is 1 by default, as in PyTorch, and 0 with ``unbiased=False``. (``rn.var`` divides by n, as the
    Array API says.)
    """
    return precision.var(x, *_over(axis, correction, unbiased), keepdims)


def std(
    x: Array, axis: Axis = None, correction: float | None = 1, keepdims: bool = False, *, unbiased: bool | None = None
) -> Array:
    """Return the square root of the method ``var``, with its arguments. (``rn.std`` divides by n.) The derivative at
    0 is 0."""
    return precision.std(x, *_over(axis, correction, unbiased), keepdims)


def var_mean(
    x: Array, axis: Axis = None, correction: float | None = 1, keepdims: bool = False, *, unbiased: bool | None = None
) -> tuple[Array, Array]:
    """Return the method ``var`` and the mean."""
    over, correction = _over(axis, correction, unbiased)
    return precision.var(x, over, correction, keepdims), precision.mean(x, over, keepdims)


def std_mean(
    x: Array, axis: Axis = None, correction: float | None = 1, keepdims: bool = False, *, unbiased: bool | None = None
) -> tuple[Array, Array]:
    """Return the method ``std`` and the mean."""
    over, correction = _over(axis, correction, unbiased)
    return precision.std(x, over, correction, keepdims), precision.mean(x, over, keepdims)


def _over(axis: Any, correction: Any, unbiased: bool | None) -> tuple[Any, float]:
    """Return the axes and the correction. PyTorch's older form has a bool, ``unbiased``, in place of either."""
    if isinstance(axis, bool):
        axis, unbiased = None, axis
    return axis, float((1 if correction is None else correction) if unbiased is None else unbiased)


def norm(
    x: Array, p: float | str | None = "fro", axis: Axis = None, keepdims: bool = False, *, dtype: Dtype = None
) -> Array:
    """Return the vector norm of order ``p`` over ``axis``; by default the 2-norm of all elements. The derivative at 0
    is 0.

    With "nuc", return the sum of the singular values of matrices, in the two axes ``axis`` or all.
    """
    if p == "nuc":
        return matrix_norm(x if dtype is None else x.astype(dtype), p, (0, 1) if axis is None else axis, keepdims)
    return precision.norm(x if dtype is None else x.astype(dtype), 2 if p in ("fro", None) else p, axis, keepdims)
