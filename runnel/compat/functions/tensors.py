"""Functions of tensors in ``torch`` whose arguments or results differ from Runnel's function of the same name."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from runnel import ops
from runnel.core.dtype_info import result_type
from runnel.core.dtypes import Dtype, int64
from runnel.ops.arguments import Array, Axis, as_sizes, normalize_axis
from runnel.ops.elementwise.numbers import view_as_complex, view_as_real
from runnel.ops.indexing.items import getitem
from runnel.ops.indexing.scattering import select
from runnel.ops.indexing.updates import add_scaled, divide_rounded, subtract_scaled
from runnel.ops.linear_algebra import matrices, products
from runnel.ops.reductions import cumulative
from runnel.ops.shapes import joining
from runnel.ops.shapes.diagonals import diagonal, unfold
from runnel.ops.shapes.joining import chunk, unstack
from runnel.ops.sorting.sets import nonzero
from runnel.tensor.creation import asarray
from runnel.tensor.queries import t
from runnel.tensor.tensor import Tensor
from runnel.tensor.torch_methods import squeeze


def where(condition: Array, input: Any = None, other: Any = None) -> Any:
    """Return ``input`` where ``condition`` holds and ``other`` elsewhere.

    With only a condition, return the positions where it holds, a vector for each axis.
    """
    if input is None and other is None:
        return nonzero(condition)
    return ops.where(condition, input, other)


def cat(tensors: Sequence[Array], dim: int = 0) -> Array:
    """Concatenate the tensors along ``dim``. Tensors of shape (0,) are ignored if there are others."""
    parts = list(tensors)
    some = [x for x in parts if x.shape != (0,)]
    if some and len(some) < len(parts):
        dtype = result_type(*parts)
        parts = [x.to(dtype) for x in some]
    return ops.concat(parts, dim)


def _of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` of two operands for two Python numbers as well, of which it makes a tensor."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and isinstance(args[0], (int, float)) and isinstance(args[1], (int, float)):
            args = asarray(args[0]), args[1]
        return function(*args, **kwargs)

    return call


add, sub, div = (_of_numbers(function) for function in (add_scaled, subtract_scaled, divide_rounded))
mul, floor_divide = (_of_numbers(function) for function in (ops.multiply, ops.floor_divide))


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Array, ...]:
    """Expand each vector along its own axis, in the order of the arguments."""
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        tensors = tuple(tensors[0])
    return joining.meshgrid(*tensors, indexing=indexing)


def cross(input: Array, other: Array, dim: int | None = None) -> Array:
    """Return the cross product along ``dim``, by default the first axis of size 3."""
    if dim is None:
        dim = next((axis for axis, size in enumerate(input.shape) if size == 3), -1)
    return products.cross(input, other, dim)


def repeat_interleave(
    input: Array,
    repeats: Array | int | Sequence[int] | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Array:
    """Repeat each element of ``input`` along ``dim`` ``repeats`` times in a row.

    With only repetition counts, return each position that many times.
    """
    if repeats is None:
        return joining.repeat(ops.iota(input, input.shape, 0), input, 0)
    return joining.repeat(input, repeats, dim)


def cdist(x1: Array, x2: Array, p: float = 2.0, compute_mode: str | None = None) -> Array:
    """Return the p-norms of the differences of each row of ``x1`` and each row of ``x2``.

    They are always computed from the differences, whatever ``compute_mode`` says.
    """
    return products.cdist(x1, x2, p)


def clone(input: Array, *, memory_format: Any = None) -> Array:
    """Return a copy through which gradients flow."""
    copy: Array = input.clone()
    return copy


def detach(input: Array) -> Array:
    """Return the same value without a tape."""
    value: Array = input.detach()
    return value


def tril_indices(row: int, col: int, offset: int = 0, **options: Any) -> Any:
    """Return the positions on and below a diagonal of a matrix, of shape (2, n) and dtype int64 or ``dtype``."""
    return _indices("tril_indices", np.tril_indices, row, col, offset, **options)


def triu_indices(row: int, col: int, offset: int = 0, **options: Any) -> Any:
    """Return the positions on and above a diagonal of a matrix, of shape (2, n) and dtype int64 or ``dtype``."""
    return _indices("triu_indices", np.triu_indices, row, col, offset, **options)


def _indices(name: str, function: Any, row: int, col: int, offset: int, dtype: Any = None, **options: Any) -> Any:
    as_sizes(name, (row, col))
    return asarray(np.stack(function(row, max(min(offset, col), -row), col)), dtype)


def from_numpy(ndarray: Any) -> Any:
    """Return a tensor with a copy of the array's values: later changes of one do not affect the other."""
    return asarray(ndarray)


def _signed(x: Array, dtype: Any) -> Any:
    return int64 if dtype is None and x.dtype.kind == "uint" else dtype


def sum(x: Array, axis: Axis = None, keepdims: bool = False, dtype: Dtype = None) -> Array:
    """Sum over ``axis``; integers and bools sum in int64."""
    return ops.sum(x, axis, keepdims, _signed(x, dtype))


def prod(x: Array, axis: Axis = None, keepdims: bool = False, dtype: Dtype = None) -> Array:
    """Multiply over ``axis``; integers and bools multiply in int64."""
    return ops.prod(x, axis, keepdims, _signed(x, dtype))


def cumsum(x: Array, axis: int | None = None, dtype: Dtype = None) -> Array:
    """Return cumulative sums along ``axis``; int64 for integers and bools."""
    return cumulative.cumsum(x, axis, _signed(x, dtype))


def cumprod(x: Array, axis: int | None = None, dtype: Dtype = None) -> Array:
    """Return cumulative products along ``axis``; int64 for integers and bools."""
    return cumulative.cumprod(x, axis, _signed(x, dtype))


def nuclear_norm(input: Array, dim: Sequence[int] = (-2, -1), keepdim: bool = False) -> Array:
    """Return the sum of the singular values."""
    return matrices.matrix_norm(input, "nuc", dim, keepdim)


def frobenius_norm(input: Array, dim: Axis = None, keepdim: bool = False) -> Array:
    """Return the square root of the sum of squares."""
    return ops.norm(input, axis=dim or None, keepdims=keepdim)


alias_copy = clone


def _copying(view: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that copies what ``view`` shows."""

    @functools.wraps(view)
    def copy(*args: Any, **kwargs: Any) -> Any:
        shown = view(*args, **kwargs)
        return tuple([x.clone() for x in shown]) if isinstance(shown, tuple) else shown.clone()

    return copy


diagonal_copy = _copying(diagonal)
expand_copy = _copying(ops.broadcast_to)
narrow_copy = _copying(ops.narrow)
permute_copy = _copying(ops.permute)
select_copy = _copying(select)
split_copy = split_with_sizes_copy = _copying(ops.split)
unsafe_split = unsafe_split_with_sizes = ops.split
squeeze_copy = _copying(squeeze)
t_copy = _copying(t)
transpose_copy = _copying(ops.transpose)
unbind_copy = _copying(unstack)
unfold_copy = _copying(unfold)
unsafe_chunk = chunk
unsqueeze_copy = _copying(ops.expand_dims)
view_as_complex_copy = _copying(view_as_complex)
view_as_real_copy = _copying(view_as_real)
view_copy = _copying(ops.reshape)


def slice_copy(input: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Array:
    """Return the slice start:end:step along the axis ``dim``."""
    axis = normalize_axis("slice_copy", dim, input.ndim)
    if step == 0:
        raise ValueError("[slice_copy] the step is not 0.")
    return getitem(input, (*[slice(None)] * axis, slice(start, end, step))).clone()


def _updating(name: str) -> Callable[..., Any]:
    """Return the method ``name`` as a function."""

    def update(input: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(input, name)(*args, **kwargs)

    update.__name__ = update.__qualname__ = name
    update.__doc__ = f"Give ``input`` the value of ``{name[:-1]}`` of it and the arguments; returns ``input`` itself."
    return update


globals().update({name: _updating(name) for name in dir(Tensor) if re.fullmatch("[a-z].*[^_]_", name)})

if TYPE_CHECKING:  # those are found by their names alone

    def __getattr__(name: str) -> Any: ...
