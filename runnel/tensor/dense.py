"""Dense memory: programs read their inputs row by row, without gaps."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core.dtypes import from_numpy as dtype_from_numpy
from runnel.core.tables import Op
from runnel.ops.shapes.views import contiguous_p, reshape_p
from runnel.tensor import eager
from runnel.tensor.tensor import Tensor, from_numpy, from_storage


def dense(value: Tensor | np.ndarray) -> Tensor:
    """Return a tensor or NumPy array as a tensor that is dense in memory; no copy is made unless it is needed."""
    if not isinstance(value, Tensor):
        value = from_numpy(value, dtype_from_numpy(value.dtype), copy=False)
    if value.is_dense:
        return value
    if value.dtype.is_complex or value._storage is None or not value.size:
        return from_numpy(value.numpy(), value.dtype, copy=True, device=value.aval.device)
    flat = _computed(reshape_p, value, {"shape": (value.size,)})
    if flat.strides != (1,):  # a view
        flat = _computed(contiguous_p, flat, {})
    return from_storage(value.aval, flat._storage, flat._layout[0])


def _computed(op: Op, x: Tensor, attrs: dict[str, Any]) -> Tensor:
    """Return the result of an op now, without a tape, also while a function is traced. NumPy copies transposed arrays
    five times as slowly."""
    result: Tensor = eager.execute(op, (x,), attrs)
    return result
