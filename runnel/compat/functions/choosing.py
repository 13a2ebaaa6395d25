"""PyTorch's functions whose arguments or results differ from those of the same name in ``runnel``."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel import ops
from runnel.core.library.dtype_info import result_type
from runnel.core.surface import offered
from runnel.io import saving
from runnel.ops.arguments import Array
from runnel.ops.library import joining, products
from runnel.ops.library.sets import nonzero
from runnel.tensor.creation import asarray


@offered("torch")
def where(condition: Array, input: Any = None, other: Any = None) -> Any:
    """``input`` where ``condition`` holds, ``other`` elsewhere; of a condition alone, the positions where it holds, a
    vector for each axis."""
    if input is None and other is None:
        return nonzero(condition)
    return ops.where(condition, input, other)


@offered("torch: cat concat concatenate")
def cat(tensors: Any, dim: int = 0) -> Array:
    """The tensors one after the other along ``dim``; those of shape (0,) count for nothing beside others."""
    parts = list(tensors)
    some = [x for x in parts if x.shape != (0,)]
    if some and len(some) < len(parts):
        dtype = result_type(*parts)
        parts = [x.to(dtype) for x in some]
    return ops.concat(parts, dim)


@offered("torch")
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Array, ...]:
    """Each vector along an axis of its own, repeated along those of the others, in the order of the arguments."""
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        tensors = tuple(tensors[0])
    return joining.meshgrid(*tensors, indexing=indexing)


@offered("torch")
def cross(input: Array, other: Array, dim: int | None = None) -> Array:
    """The vector product along ``dim``, by default the first axis of size 3."""
    if dim is None:
        dim = next((axis for axis, size in enumerate(input.shape) if size == 3), -1)
    return products.cross(input, other, dim)


@offered("torch")
def save(obj: Any, f: Any, *ignored: Any, **options: Any) -> None:
    """Write state dicts and nested containers of tensors and plain values to the path ``f``: no code and no objects, so
    save ``model.state_dict()`` and not the module."""
    saving.save(obj, f)


@offered("torch")
def load(f: Any, map_location: Any = None, *ignored: Any, weights_only: bool = True, mmap: bool | None = None) -> Any:
    """What :func:`save` wrote to the path ``f``."""
    return saving.load(f)


@offered("torch")
def clone(input: Array, *, memory_format: Any = None) -> Array:
    """Another tensor of the same value, through which gradients flow."""
    copy: Array = input.clone()
    return copy


@offered("torch")
def detach(input: Array) -> Array:
    """The same value without a tape."""
    value: Array = input.detach()
    return value


@offered("torch")
def tril_indices(row: int, col: int, offset: int = 0, **options: Any) -> Any:
    """The positions on and below a diagonal of a matrix: int64 of shape (2, n)."""
    return asarray(np.stack(np.tril_indices(row, offset, col)))


@offered("torch")
def triu_indices(row: int, col: int, offset: int = 0, **options: Any) -> Any:
    """The positions on and above a diagonal of a matrix: int64 of shape (2, n)."""
    return asarray(np.stack(np.triu_indices(row, offset, col)))


@offered("torch")
def from_numpy(ndarray: Any) -> Any:
    """The values of an array as a tensor of its own: later changes of either are not seen by the other."""
    return asarray(ndarray)
