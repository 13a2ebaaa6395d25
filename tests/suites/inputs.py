"""The inputs of the suites: the samples of the records, laid out in memory in every way a tensor can lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as rn
from runnel.core import dtypes as dt
from runnel.core.dtypes import DType, from_numpy
from runnel.core.tables import Op, lower
from runnel.loops.rules import Elementwise, IotaLike
from tests.ops.records import RECORDS, Case, Record

Array = np.ndarray[Any, Any]
NAMES = sorted(RECORDS)
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1e-40, -2.5]


def _stepped(x: Array) -> Array:
    room = np.zeros(tuple(3 * n for n in x.shape), x.dtype)
    inside = room[(..., *(slice(1, None, 3) for _ in x.shape))]
    inside[...] = x
    return inside


def _offset(x: Array) -> Array:
    room = np.zeros(tuple(n + 3 for n in x.shape), x.dtype)
    inside = room[(..., *(slice(2, n + 2) for n in x.shape))]
    inside[...] = x
    return inside


def _reversed(x: Array) -> Array:
    backwards = (..., *(slice(None, None, -1) for _ in x.shape))
    return x[backwards].copy()[backwards]


def _repeated(x: Array) -> Array:
    """The first row in place of all of them: a stride of 0."""
    return np.broadcast_to(x[:1], x.shape) if x.ndim else x


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "transposed": lambda x: np.array(x.T, order="C").T,
    "stepped": _stepped,
    "offset": _offset,
    "reversed": _reversed,
    "repeated": _repeated,
}


def shared(array: Array) -> rn.Tensor:
    """A tensor over the array's own memory, strides and all."""
    return rn.asarray(array, copy=False)


def main_dtype(record: Record) -> DType:
    """Return the dtype that represents all where dtypes do not matter."""
    return dt.float32 if dt.float32 in record.dtypes else record.dtypes[-1]


def wide_case(name: str) -> Case:
    """A case whose rows hold more than two vectors; the last of the record where shapes and attributes depend on one
    another."""
    record = RECORDS[name]
    shapes, attrs = record.cases[-1]
    if isinstance(lower.get(Op.registry[name]), Elementwise) and name != "cast":
        return ((3, 37),) * len(shapes), attrs
    return shapes, attrs


def is_pointwise(name: str) -> bool:
    return isinstance(lower.get(Op.registry[name]), (Elementwise, IotaLike))


def special_inputs(name: str, dtype: DType) -> list[Array]:
    """Every pair of special values."""
    record = RECORDS[name]
    count = len(record.cases[0][0])
    arguments = record.input_dtypes or (None,) * count
    first, second = (np.array(m).reshape(-1) for m in np.meshgrid(SPECIAL, SPECIAL))
    arrays, k = [], 0
    for fixed in arguments:
        if fixed is dt.bool_:
            arrays.append(np.arange(first.size) % 3 == 0)
            continue
        arrays.append((first, second)[k % 2].astype(dtype.numpy))
        k += 1
    return arrays


def dtype_of(array: Array) -> DType:
    return from_numpy(array.dtype)
