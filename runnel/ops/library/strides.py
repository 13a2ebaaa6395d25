"""Elements that shapes and strides name: windows and lines of an array as if it lay in row-major order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.core.avals import Shape
from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, as_shape, as_sizes
from runnel.ops.assignment import put
from runnel.ops.indexing import take
from runnel.ops.views import reshape


def as_strided(x: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Array:
    """result[i, j, …] = the element number storage_offset + i·stride[0] + j·stride[1] + … of ``x`` in row-major order,
    in the shape ``size``. An element may be named more than once; its gradient is the sum then.

    A tensor is a value and has no memory of its own to look at, so numbers are those of a contiguous array, whatever
    made ``x``. ShapeError for a number outside of it.
    """
    numbers = _numbers("as_strided", x, size, stride, storage_offset)
    return take(reshape(x, (x.size,)), x.lift(numbers, int64), 0)


def as_strided_scatter(
    x: Array, src: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Array:
    """``x`` with ``src`` in place of the elements that :func:`as_strided` names, each once."""
    numbers = _numbers("as_strided_scatter", x, size, stride, storage_offset)
    if src.shape != numbers.shape:
        raise ShapeError(f"[as_strided_scatter] a source of shape {src.shape} does not fit size {numbers.shape}.")
    if len(np.unique(numbers)) != numbers.size:
        raise ShapeError(f"[as_strided_scatter] strides {tuple(stride)} of size {numbers.shape} name an element twice.")
    written = put(reshape(x, (x.size,)), (x.lift(numbers.ravel(), int64),), reshape(src, (src.size,)))
    return reshape(written, x.shape)


def _numbers(name: str, x: Array, size: Any, stride: Any, offset: int | None) -> np.ndarray[Any, Any]:
    """The number of each element in row-major order."""
    shape: Shape = as_sizes(name, size)
    steps = as_shape(name, stride)
    if len(shape) != len(steps) or min(steps, default=0) < 0:
        raise ShapeError(f"[{name}] size {shape} has a stride from 0 up for each axis; received {steps}.")
    first = 0 if offset is None else int(offset)
    last = first + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    if 0 not in shape and not 0 <= first <= last < x.size:
        raise ShapeError(
            f"[{name}] size {shape} with strides {steps} from element {first} on reaches element {last}; shape "
            f"{x.shape} has {x.size}."
        )
    numbers = np.full(shape, first, np.int64)
    for axis, (n, step) in enumerate(zip(shape, steps, strict=True)):
        numbers += (np.arange(n) * step).reshape(n, *(1,) * (len(shape) - axis - 1))
    return numbers
