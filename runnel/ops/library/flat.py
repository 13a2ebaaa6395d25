"""Elements by their number in row-major order: written, and found in each axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, as_sizes
from runnel.ops.arithmetic import floor_divide, remainder
from runnel.ops.assignment import add_at, put as put_at
from runnel.ops.conversion import cast
from runnel.ops.views import reshape


def put_flat(x: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """``x`` with the elements of ``source`` at the numbers ``index`` in row-major order, or with ``accumulate`` added
    there. Where a number is named several times, the last element counts, or all are added."""
    if index.size != source.size:
        raise ShapeError(f"[put] an index of shape {index.shape} and a source of shape {source.shape} differ in size.")
    flat, numbers, values = reshape(x, (x.size,)), reshape(index, (index.size,)), reshape(source, (source.size,))
    written = (add_at if accumulate else put_at)(flat, (numbers,), values)
    return reshape(written, x.shape)


def unravel_index(indices: Array, shape: int | Sequence[int]) -> tuple[Array, ...]:
    """For numbers of elements in row-major order of ``shape``, their index along each axis."""
    sizes = as_sizes("unravel_index", shape)
    numbers = cast(indices, int64)
    below = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    return tuple(remainder(floor_divide(numbers, max(b, 1)), max(n, 1)) for b, n in zip(below, sizes, strict=True))
