"""Methods that make arrays like another one, or say whether one is; and PyTorch's ``type`` and ``where``."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core import dtypes
from runnel.core.devices import as_device
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import Dtype
from runnel.ops.arguments import Array, Axis, Operand, as_sizes, gathered, normalize_axes
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.conversion import cast
from runnel.ops.library.numbers import array_equal
from runnel.ops.library.sets import nonzero as positions
from runnel.ops.logic import where as chosen
from runnel.ops.views import squeeze as squeezed, with_axis


def _filled(x: Array, shape: Any, value: Any, dtype: Any, device: Any) -> Array:
    kind = x.dtype if dtype is None else dtypes.as_dtype(dtype)
    filled = broadcast_to(x.read().lift(np.asarray(value), kind), as_sizes("new_full", shape)).contiguous()
    moved: Array = filled if device is None else filled.to(as_device(device))
    return moved


def _sizes(size: tuple[Any, ...], named: Any) -> Any:
    return gathered(size) if named is None else named


def new_zeros(x: Array, *sizes: Any, size: Any = None, dtype: Dtype = None, device: Any = None) -> Array:
    """Zeros of another shape, in the dtype of ``x`` unless one is named."""
    return _filled(x, _sizes(sizes, size), 0, dtype, device)


def new_ones(x: Array, *sizes: Any, size: Any = None, dtype: Dtype = None, device: Any = None) -> Array:
    """Ones of another shape, in the dtype of ``x`` unless one is named."""
    return _filled(x, _sizes(sizes, size), 1, dtype, device)


def new_full(x: Array, size: Any, fill_value: bool | int | float, dtype: Dtype = None, device: Any = None) -> Array:
    """``fill_value`` in another shape, in the dtype of ``x`` unless one is named."""
    return _filled(x, size, fill_value, dtype, device)


def new_tensor(x: Array, data: Any, dtype: Dtype = None, device: Any = None) -> Array:
    """``data`` as a tensor, in the dtype of ``x`` unless one is named."""
    kind = x.dtype if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(data, TensorLike):
        values: Any = cast(data, kind)
        return values.detach()
    tensor: Array = x.read().lift(np.asarray(data), kind).handle()
    return tensor if device is None else tensor.to(as_device(device))


def equal(x: Array, other: Array) -> bool:
    """Whether shapes and all elements are equal, as a Python bool. (``x == other`` and ``rn.equal`` compare element by
    element.)"""
    return array_equal(x, other)


def where(x: Array, condition: Array, other: Operand) -> Array:
    """``x`` where ``condition`` holds, ``other`` elsewhere."""
    return chosen(condition, x, other)


def squeeze(x: Array, axis: Axis = None) -> Array:
    """``x`` without those of the axes ``axis`` (None: all) that have size 1. (``rn.squeeze`` refuses others.)"""
    axes = normalize_axes("squeeze", axis, x.ndim)
    return squeezed(x, tuple(a for a in axes if x.shape[a] == 1))


def type_of(x: Array, dtype: Dtype = None) -> Any:
    """``x`` in another dtype, or PyTorch's type ("torch.FloatTensor", ``FloatTensor``) in its place; without one, the
    name of that type."""
    if dtype is not None:
        return cast(x, dtypes.as_dtype(dtype))
    return _TYPES.get(x.dtype.name, f"torch.{x.dtype.name}Tensor")


_TYPES = {name: kind for kind, name in dtypes.TYPES.items()}


def nonzero(x: Array, as_tuple: bool = False) -> Any:
    """The int64 positions of the elements that are not 0, as rows; with ``as_tuple`` a vector for each axis, as of
    ``rn.nonzero``."""
    return positions(with_axis(x) if as_tuple else x, as_tuple)
