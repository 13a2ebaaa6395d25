"""Functions that make tensors from Python numbers, NumPy arrays and other libraries' arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel import ops
from runnel.core import dtypes
from runnel.core.dtypes import DType
from runnel.tensor import tensor as tensors, tracing
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor


def asarray(data: Any, dtype: Any = None, *, copy: bool | None = None) -> Tensor:
    """``data`` as a tensor.

    Args:
        data: a tensor, a NumPy array, a (nested list of) Python numbers, or what has ``__dlpack__`` or ``__array__``.
        dtype: the result's dtype. By default that of ``data``; Python floats become float32, ints int64.
        copy: NumPy arrays are copied unless False is given; then the memory is shared, and must not change any more.
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(data, ArrayMethods):
        tensor = data.read()
        return tensor if wanted is None or wanted is tensor.dtype else tensor.astype(wanted)
    if not isinstance(data, (np.ndarray, np.generic)) and hasattr(data, "__dlpack__"):
        data = np.from_dlpack(data)
        copy = False if copy is None else copy
    if isinstance(data, (list, tuple)) and any(isinstance(x, ArrayMethods) for x in data):
        return _stacked(data, wanted)
    is_numpy = isinstance(data, (np.ndarray, np.generic)) or hasattr(data, "__array__")
    array = np.asarray(data)
    if wanted is None:
        wanted = dtypes.from_numpy(array.dtype)
        if not is_numpy and wanted is dtypes.float64:
            wanted = dtypes.float32
    trace = tracing.ACTIVE.trace
    if trace is not None and isinstance(data, np.ndarray) and id(data) in trace.known_arrays:
        return tensors.traced_array(trace, data, wanted)
    return tensors.from_numpy(array, wanted, copy=copy is not False)


def _stacked(data: Any, dtype: DType | None) -> Tensor:
    stacked: Tensor = ops.stack([asarray(x, dtype) for x in data])
    return stacked


def tensor(data: Any, dtype: Any = None, *, requires_grad: bool = False) -> Tensor:
    """``data`` as a new tensor without a tape, whatever it was: ``asarray`` with a copy, as in PyTorch."""
    made = asarray(data, dtype, copy=True)
    if isinstance(data, ArrayMethods) and (made.is_traced or tracing.ACTIVE.trace is None):
        made = made._twin()  # values never change, so another handle is a copy
    return made.detach().requires_grad_() if requires_grad else made


def from_dlpack(data: Any) -> Tensor:
    """An array of another library, sharing its memory."""
    return tensors.from_numpy(np.from_dlpack(data), dtypes.from_numpy(np.from_dlpack(data).dtype), copy=False)


def full(shape: Any, value: bool | int | float, dtype: Any = None) -> Tensor:
    """A tensor of ``shape`` filled with ``value``; by default bool, int64 or float32, as the value is."""
    wanted = dtypes.of_scalar(value, None) if dtype is None else dtypes.as_dtype(dtype)
    array = np.full(shape, value, wanted.numpy)
    return tensors.from_numpy(array, wanted, copy=False)


def zeros(shape: Any, dtype: Any = dtypes.float32) -> Tensor:
    """A tensor of zeros, of ``shape`` (an int or a tuple)."""
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = dtypes.float32) -> Tensor:
    """A tensor of ones, of ``shape`` (an int or a tuple)."""
    return full(shape, 1, dtype)


def arange(start: float, stop: float | None = None, step: float = 1, dtype: Any = None) -> Tensor:
    """Evenly spaced numbers from ``start`` up to but not including ``stop``; ``arange(n)`` counts from 0. int64
    where all three are ints, else float32."""
    begin, end = (0, start) if stop is None else (start, stop)
    if dtype is None:
        dtype = dtypes.int64 if all(isinstance(v, int) for v in (begin, end, step)) else dtypes.float32
    wanted = dtypes.as_dtype(dtype)
    return tensors.from_numpy(np.arange(begin, end, step).astype(wanted.numpy), wanted, copy=False)


def linspace(start: float, stop: float, num: int, dtype: Any = dtypes.float32, *, endpoint: bool = True) -> Tensor:
    """``num`` evenly spaced numbers from ``start`` to ``stop``."""
    wanted = dtypes.as_dtype(dtype)
    return tensors.from_numpy(np.linspace(start, stop, num, endpoint=endpoint).astype(wanted.numpy), wanted, copy=False)


def eye(n: int, m: int | None = None, dtype: Any = dtypes.float32) -> Tensor:
    """The identity matrix of ``n`` rows and ``m`` (or ``n``) columns."""
    wanted = dtypes.as_dtype(dtype)
    return tensors.from_numpy(np.eye(n, m, dtype=wanted.numpy), wanted, copy=False)


def empty(shape: Any, dtype: Any = dtypes.float32) -> Tensor:
    """A tensor whose values do not matter (they are zeros)."""
    return zeros(shape, dtype)
