"""PyTorch's functions whose arguments or results differ from those of the same name in ``runnel``."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from runnel import ops
from runnel.core.library.dtype_info import result_type
from runnel.io import saving
from runnel.ops.arguments import Array, as_sizes
from runnel.ops.library import joining, products
from runnel.ops.library.sets import nonzero
from runnel.tensor.creation import asarray


def where(condition: Array, input: Any = None, other: Any = None) -> Any:
    """``input`` where ``condition`` holds, ``other`` elsewhere; of a condition alone, the positions where it holds, a
    vector for each axis."""
    if input is None and other is None:
        return nonzero(condition)
    return ops.where(condition, input, other)


def cat(tensors: Sequence[Array], dim: int = 0) -> Array:
    """The tensors one after the other along ``dim``; those of shape (0,) count for nothing beside others."""
    parts = list(tensors)
    some = [x for x in parts if x.shape != (0,)]
    if some and len(some) < len(parts):
        dtype = result_type(*parts)
        parts = [x.to(dtype) for x in some]
    return ops.concat(parts, dim)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Array, ...]:
    """Each vector along an axis of its own, repeated along those of the others, in the order of the arguments."""
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        tensors = tuple(tensors[0])
    return joining.meshgrid(*tensors, indexing=indexing)


def cross(input: Array, other: Array, dim: int | None = None) -> Array:
    """The vector product along ``dim``, by default the first axis of size 3."""
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
    """Each element of ``input`` along ``dim`` ``repeats`` times in a row; of numbers of repetitions alone, the position
    of each, so many times."""
    if repeats is None:
        return joining.repeat(ops.iota(input, input.shape, 0), input, 0)
    return joining.repeat(input, repeats, dim)


def cdist(x1: Array, x2: Array, p: float = 2.0, compute_mode: str | None = None) -> Array:
    """The p-norms of the differences of each row of ``x1`` and each row of ``x2``, by the differences themselves,
    whatever ``compute_mode`` says."""
    return products.cdist(x1, x2, p)


def save(obj: Any, f: Any, *ignored: Any, **options: Any) -> None:
    """Write state dicts and nested containers of tensors and plain values to the path ``f``, or to a file that is open
    for writing: no code and no objects, so save ``model.state_dict()`` and not the module."""
    if not hasattr(f, "write"):
        saving.save(obj, f)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        saving.save(obj, path)
        f.write(path.read_bytes())


def load(f: Any, map_location: Any = None, *ignored: Any, weights_only: bool = True, mmap: bool | None = None) -> Any:
    """What :func:`save` wrote to the path ``f``, or to a file that is open for reading."""
    if not hasattr(f, "read"):
        return saving.load(f)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        path.write_bytes(f.read())
        return saving.load(path)


def clone(input: Array, *, memory_format: Any = None) -> Array:
    """Another tensor of the same value, through which gradients flow."""
    copy: Array = input.clone()
    return copy


def detach(input: Array) -> Array:
    """The same value without a tape."""
    value: Array = input.detach()
    return value


def tril_indices(row: int, col: int, offset: int = 0, **options: Any) -> Any:
    """The positions on and below a diagonal of a matrix: int64, or ``dtype``, of shape (2, n)."""
    return _indices("tril_indices", np.tril_indices, row, col, offset, **options)


def triu_indices(row: int, col: int, offset: int = 0, **options: Any) -> Any:
    """The positions on and above a diagonal of a matrix: int64, or ``dtype``, of shape (2, n)."""
    return _indices("triu_indices", np.triu_indices, row, col, offset, **options)


def _indices(name: str, function: Any, row: int, col: int, offset: int, dtype: Any = None, **options: Any) -> Any:
    as_sizes(name, (row, col))
    return asarray(np.stack(function(row, max(min(offset, col), -row), col)), dtype)


def from_numpy(ndarray: Any) -> Any:
    """The values of an array as a tensor of its own: later changes of either are not seen by the other."""
    return asarray(ndarray)
