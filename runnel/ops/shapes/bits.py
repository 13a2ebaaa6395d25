"""The bits of an array, read as another dtype."""

from __future__ import annotations

import numpy as np

from runnel.core.avals import Shape, row_major
from runnel.core.dispatch import ViewStep, required
from runnel.core.dtypes import DType, bool_
from runnel.core.errors import DTypeError, GradientError, ShapeError
from runnel.ops.arguments import Array


def of_bits(x: Array, dtype: DType) -> Array:
    """Return a view of the same bytes as numbers of ``dtype``; the last axis grows or shrinks with the item size.

    Raises:
        ShapeError: the last axis does not have a multiple of the bytes of an item.
        GradientError: ``x`` requires a gradient, which bits do not have.
        DTypeError: ``dtype`` is bool, and ``x`` is of another dtype.
    """
    own = x.dtype
    if dtype is own:
        alias: Array = x.alias()
        return alias
    if dtype is bool_ or own is bool_:
        raise DTypeError(
            f"[view] bools must not be mixed with bits; got {own.name} as {dtype.name}. Write x.to(dtype)."
        )
    if x.requires_grad and dtype.is_inexact:
        raise GradientError(f"[view] bits have no gradient; write x.detach().view({dtype.name}).")
    shape = x.shape
    if own.itemsize != dtype.itemsize:
        nbytes = shape[-1] * own.itemsize if shape else own.itemsize + 1
        if nbytes % dtype.itemsize:
            raise ShapeError(
                f"[view] the last axis must have a multiple of {dtype.itemsize} bytes for {dtype.name}; got shape "
                f"{shape} of {own.name}."
            )
        shape = (*shape[:-1], nbytes // dtype.itemsize)

    def look(base: Array) -> Array:
        return _read(base, dtype, shape)

    def put(base: Array, new: Array) -> Array:
        return _read(new, base.dtype, base.shape)

    def layout(old: Shape, strides: Shape) -> tuple[Shape, Shape]:
        return shape, row_major(shape)

    view: Array = x.view_by(ViewStep(look, put, layout))
    return view


def _read(x: Array, dtype: DType, shape: Shape) -> Array:
    values = required(x, "[view] bits can be read as another dtype only outside compiled functions.")
    return x.lift(np.ascontiguousarray(values).reshape(-1).view(dtype.numpy).reshape(shape), dtype)
