"""PyTorch's sums and products, whose result of unsigned integers is int64 (the Array API has uint64), and its older
norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel import ops
from runnel.core.dtypes import int64
from runnel.ops.arguments import Array, Axis
from runnel.ops.library import cumulative, matrices


def _signed(x: Array, dtype: Any) -> Any:
    return int64 if dtype is None and x.dtype.kind == "uint" else dtype


def sum(x: Array, axis: Axis = None, keepdims: bool = False, dtype: Any = None) -> Array:
    """The sum over ``axis``; of integers and bools in int64."""
    return ops.sum(x, axis, keepdims, _signed(x, dtype))


def prod(x: Array, axis: Axis = None, keepdims: bool = False, dtype: Any = None) -> Array:
    """The product over ``axis``; of integers and bools in int64."""
    return ops.prod(x, axis, keepdims, _signed(x, dtype))


def cumsum(x: Array, axis: int | None = None, dtype: Any = None) -> Array:
    """The sums of the elements up to each one along ``axis``; of integers and bools in int64."""
    return cumulative.cumsum(x, axis, _signed(x, dtype))


def cumprod(x: Array, axis: int | None = None, dtype: Any = None) -> Array:
    """The products of the elements up to each one along ``axis``; of integers and bools in int64."""
    return cumulative.cumprod(x, axis, _signed(x, dtype))


def nuclear_norm(input: Array, dim: Sequence[int] = (-2, -1), keepdim: bool = False) -> Array:
    """The sum of singular values."""
    return matrices.matrix_norm(input, "nuc", dim, keepdim)


def frobenius_norm(input: Array, dim: Axis = None, keepdim: bool = False) -> Array:
    """The root of the sum of squares."""
    return ops.norm(input, axis=dim or None, keepdims=keepdim)
