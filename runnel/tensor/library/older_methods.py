"""PyTorch's older methods, and those about memory and layouts, of which there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.core.dtypes import Dtype
from runnel.ops.arguments import Array
from runnel.ops.library.joining import chunk
from runnel.ops.pieces import narrow
from runnel.tensor.library.likeness import new_zeros


def data_ptr(x: Array) -> int:
    """Where the first element lies in memory. Nobody but the library writes there."""
    return int(x.read().address)


def is_set_to(x: Array, tensor: Array) -> bool:
    """Whether both show the same elements of the same memory."""
    ours, theirs = x.read(), tensor.read()
    same = ours.shape == theirs.shape and ours.strides == theirs.strides and ours.dtype is theirs.dtype
    return bool(same and ours.address == theirs.address)


def is_distributed(x: Array) -> bool:
    """False: there is one process, and tensors are dense."""
    return False


def as_it_is(x: Array, *ignored: Any, **options: Any) -> Array:
    """``x``: tensors are dense, and in the memory of CPUs."""
    return x


def dense_dim(x: Array) -> int:
    """The number of axes."""
    return int(x.ndim)


def sparse_dim(x: Array) -> int:
    """0: tensors are dense."""
    return 0


def dim_order(x: Array, *ignored: Any, **options: Any) -> tuple[int, ...]:
    """The axes from the outermost in memory to the innermost: their order, which results have."""
    return tuple(range(x.ndim))


def unsafe_chunk(x: Array, chunks: int, dim: int = 0) -> tuple[Array, ...]:
    """``chunk``."""
    return tuple(chunk(x, chunks, dim))


def unsafe_split(x: Array, split_size: int | Sequence[int], dim: int = 0) -> tuple[Array, ...]:
    """``split``."""
    parts: tuple[Array, ...] = tuple(x.split(split_size, dim))
    return parts


def narrow_copy(x: Array, dim: int, start: int, length: int) -> Array:
    """``narrow``."""
    return narrow(x, dim, start, length)


def new(x: Array, *args: Any) -> Array:
    """A tensor of the dtype of ``x``: of sizes (zeros), or of data."""
    if len(args) == 1 and not isinstance(args[0], int):
        made: Array = x.new_tensor(args[0])
        return made
    return new_zeros(x, *(args or (0,)))


def new_empty_strided(
    x: Array, size: Sequence[int], stride: Sequence[int], dtype: Dtype = None, device: Any = None
) -> Array:
    """A tensor whose values do not matter (zeros), in row-major order whatever ``stride`` says."""
    return new_zeros(x, size=size, dtype=dtype, device=device)
