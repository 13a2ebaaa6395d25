"""Axes, shapes and dtypes as callers pass them, normalized for primitives. Knows no op; raises the errors."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from runnel.core.avals import Shape, ShapedArray, is_too_large
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import DType
from runnel.core.errors import AxisError, DTypeError, ShapeError
from runnel.core.lengths import as_size

Array: TypeAlias = Any  # a TensorLike of the caller's kind: what goes in as a Tensor comes out as a Tensor
Operand: TypeAlias = TensorLike | bool | int | float | np.ndarray[Any, Any] | np.generic
Axis: TypeAlias = int | Sequence[int] | None
Numbers: TypeAlias = Any  # an Operand, or numbers in a list: kinds.py


def is_single(value: Any) -> bool:
    """Return whether ``value`` is one int. Arrays with an axis are several, although they have ``__index__``."""
    return hasattr(value, "__index__") and not getattr(value, "ndim", 0)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Convert one value, or a sequence of values, to a tuple."""
    return value if isinstance(value, tuple) else (value,) if is_single(value) else tuple(value)


def gathered(values: tuple[Any, ...]) -> Any:
    """Return the value of ``*values``: the sequence among them, or the ints themselves."""
    return values[0] if len(values) == 1 and not is_single(values[0]) else values


def normalize_axis(name: str, axis: int, ndim: int) -> int:
    """Return ``axis`` counted from the front; AxisError if the array has no such axis."""
    position = operator.index(axis)
    if not -ndim <= position < ndim:
        raise AxisError(f"[{name}] axis {axis} lies outside an array of {ndim} dimensions.")
    return position % ndim


def normalize_axes(name: str, axis: Axis, ndim: int) -> tuple[int, ...]:
    """Return one axis, several or all of them (None) as a sorted tuple; AxisError for repetitions."""
    if axis is None:
        return tuple(range(ndim))
    listed = as_tuple(axis)
    if not ndim and listed in ((0,), (-1,)):  # as in NumPy and PyTorch
        return ()
    axes = sorted(normalize_axis(name, a, ndim) for a in listed)
    if len(set(axes)) != len(axes):
        raise AxisError(f"[{name}] axes {listed} name an axis twice; each may be given once.")
    return tuple(axes)


def as_shape(name: str, shape: int | Iterable[int]) -> Shape:
    """Convert one int, or an iterable of ints, to a shape."""
    sizes = as_tuple(shape)
    try:
        return tuple(map(as_size, sizes))
    except TypeError:
        raise ShapeError(f"[{name}] a shape is made of integers; got {sizes}.") from None


def as_sizes(name: str, shape: int | Iterable[int]) -> Shape:
    """Convert to a shape as :func:`as_shape` does; ShapeError for negative sizes and for too many elements."""
    sizes = as_shape(name, shape)
    if min(sizes, default=0) < 0:
        raise ShapeError(f"[{name}] sizes must not be negative; got the shape {sizes}.")
    if is_too_large(sizes):
        raise ShapeError(f"[{name}] no array has as many elements as the shape {sizes} says.")
    return sizes


def broadcast_shapes(name: str, *shapes: Shape) -> Shape:
    """Return the shape to which arrays of ``shapes`` broadcast (Array API, "Broadcasting")."""
    ndim = max(map(len, shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for axis, n in enumerate(shape, ndim - len(shape)):
            if n == 1 or n == result[axis]:
                continue
            if result[axis] != 1:
                raise ShapeError(
                    f"[{name}] operand shapes {' and '.join(map(str, shapes))} do not broadcast: "
                    f"axis {axis - ndim} has sizes {result[axis]} and {n}; they must be equal, or one of them 1."
                )
            result[axis] = n
    return tuple(result)


def require_dtype(name: str, dtype: DType, accepted: Sequence[DType]) -> None:
    """Raise DTypeError unless the primitive accepts ``dtype``."""
    if dtype not in accepted:
        names = ", ".join(d.name for d in accepted)
        raise DTypeError(f"[{name}] does not take {dtype.name}; it takes {names}. Cast the operand first.")


def require_same_dtype(name: str, *avals: Any) -> None:
    """Raise DTypeError unless all operands have one dtype."""
    if any(a.dtype is not avals[0].dtype for a in avals):
        names = ", ".join(a.dtype.name for a in avals)
        raise DTypeError(f"[{name}] operands must have one dtype, got {names}; cast them to a common one.")


def require_same_rank(name: str, *avals: ShapedArray) -> None:
    """Raise ShapeError unless all operands have the same number of dimensions."""
    if any(a.ndim != avals[0].ndim for a in avals):
        shapes = " and ".join(str(a.shape) for a in avals)
        raise ShapeError(f"[{name}] operands of shapes {shapes} must have the same number of dimensions.")
