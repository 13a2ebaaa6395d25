"""Functions that make tensors from Python numbers, NumPy arrays and other libraries' arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from copy import copy as another_handle
from typing import Any, TypeAlias

import numpy as np

from runnel import ops
from runnel.backends.context import default_device
from runnel.core import dtypes, switches
from runnel.core.arrays import as_array, can_share, short_repr
from runnel.core.avals import MOST
from runnel.core.conversion import fitting
from runnel.core.devices import Device, as_device
from runnel.core.dispatch import RunTimeNumber
from runnel.core.dtypes import DType, Dtype
from runnel.core.errors import ArgumentError, DTypeError, ShapeError
from runnel.core.lengths import Length, is_static
from runnel.ops.arguments import as_sizes
from runnel.tensor import tensor as tensors, tracing
from runnel.tensor.handle import Record, passed_on
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor

Shape: TypeAlias = int | Sequence[int]


def asarray(data: Any, dtype: Dtype = None, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Convert ``data`` to a tensor.

    A tensor is a value that no other library may change, so arrays are copied unless you pass ``copy=False`` and
    never change them again.

    Args:
        data: a tensor, a NumPy array, (nested lists of) Python numbers, or an object with ``__dlpack__`` or
            ``__array__``.
        dtype: the dtype of the result. By default the dtype of ``data``; Python floats become float32, complex
            numbers complex64, ints int64.
        device: "cpu" or "interpreter". By default the device of a tensor, else ``runnel.device()``.
        copy: None: returns a tensor as it is and copies other data. True: copies tensors also. False: shares memory
            that must not change any more; ValueError where that is impossible (numbers, another dtype).

    Example:
        >>> rn.asarray([[1, 2], [3, 4]], "float32").shape
        (2, 2)
    """
    target = None if dtype is None else dtypes.as_dtype(dtype)
    place = None if device is None else as_device(device)
    if isinstance(data, RunTimeNumber):
        return tensors.constant(data, target or dtypes.float32)
    if isinstance(data, ArrayMethods):
        tensor = data.read()
        if target is not None and target is not tensor.dtype:
            if copy is False:
                raise _unshared(f"a {tensor.dtype.name} tensor", target)
            tensor = tensor.astype(target)
        elif copy:
            tensor = _copied(tensor)
        return tensor if place is None else tensor.to(place)
    if isinstance(data, (list, tuple)) and any(isinstance(x, ArrayMethods) for x in data):
        if copy is False:
            raise _unshared(f"a {type(data).__name__}", target)
        stacked = _stacked(data, target)
        return stacked if place is None else stacked.to(place)
    array, is_numpy = _array(data)
    if target is None:
        target = dtypes.from_numpy(array.dtype)
        if not is_numpy and target in (dtypes.float64, dtypes.complex128):
            target = dtypes.float32 if target.is_float else dtypes.complex64
    elif not is_numpy or isinstance(data, np.generic):
        array = fitting("asarray", array, target)
    trace = tracing.ACTIVE.trace
    if trace is not None and isinstance(data, np.ndarray) and id(data) in trace.known_arrays:
        return tensors.traced_array(trace, data, target)
    if copy is False and not (is_numpy and can_share(array, target)):
        raise _unshared(f"an array of {array.dtype}" if is_numpy else f"a {type(data).__name__}", target)
    return tensors.from_numpy(array, target, copy=copy is not False, device=place)


def _array(data: Any) -> tuple[np.ndarray, bool]:
    """Return ``data`` as a NumPy array, sharing memory if possible, and whether its dtype was chosen by the user."""
    if isinstance(data, (np.ndarray, np.generic)):
        return as_array("asarray", data), True
    if hasattr(data, "__dlpack__"):
        return np.from_dlpack(data), True
    return as_array("asarray", data), hasattr(data, "__array__")


def _unshared(what: str, dtype: DType | None) -> ValueError:
    target = "a tensor" if dtype is None else f"a {dtype.name} tensor"
    return ValueError(f"[asarray] {what} cannot become {target} without a copy; leave copy=False out.")


def _copied(tensor: Tensor) -> Tensor:
    """Return a copy of the value in separate memory, on the same tape."""
    copy = another_handle(tensor)
    copy._leaf = None
    if tensor._storage is not None and not tensor._storage.is_ours and tracing.ACTIVE.trace is None:
        copy = tensors.from_numpy(tensor.numpy(), tensor.dtype, copy=True, device=tensor.aval.device)
    if tensor.requires_grad:
        copy.requires_grad = True
        copy._record = Record(None, (tensor,), {}, passed_on)
    return copy


def _stacked(data: Any, dtype: DType | None) -> Tensor:
    stacked: Tensor = ops.stack([asarray(x, dtype) for x in data])
    return stacked


def tensor(data: Any, dtype: Dtype = None, *, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Create a new tensor from ``data``, without a tape: ``asarray`` with a copy, as in PyTorch."""
    return leaf(asarray(data, dtype, device=device, copy=True).without_tape(), requires_grad)


def leaf(new: Tensor, requires_grad: bool) -> Tensor:
    """Return a tensor that was just created, with ``requires_grad`` set."""
    return new.requires_grad_() if requires_grad else new


def from_dlpack(data: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Convert an array of another library.

    Args:
        data: an object with ``__dlpack__`` whose numbers are in CPU memory.
        device: the device of the result, ``runnel.device()`` by default.
        copy: None: shares memory where possible; it must not change any more. True: copies. False: ValueError if the
            memory cannot be shared.
    """
    array = np.from_dlpack(data)
    return asarray(array, device=device, copy=copy if copy is not None else not can_share(array, None))


def full(
    shape: Shape,
    fill_value: bool | int | float | complex,
    dtype: Dtype = None,
    *,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a tensor of ``shape`` filled with ``fill_value``, on ``runnel.device()`` by default.

    The default dtype is bool, int64, float32 or complex64, by the kind of the value. With ``requires_grad=True`` the
    result is a leaf, as after ``requires_grad_()``; all creation functions take it.
    """
    kind = dtypes.of_scalar(_plain(fill_value), None) if dtype is None else dtype
    return leaf(_filled("full", shape, fill_value, kind, device), requires_grad)


def zeros(shape: Shape, *sizes: Any, dtype: Dtype = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Create a tensor of zeros, float32 by default, on ``device`` (``runnel.device()`` by default).

    The shape is one int, a tuple (which a dtype may follow), or several ints: ``zeros((2, 3), "int64")``, ``zeros(2,
    3)``.
    """
    return leaf(_filled("zeros", *_shape_and_dtype(shape, sizes, 0, dtype), device), requires_grad)


def ones(shape: Shape, *sizes: Any, dtype: Dtype = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Create a tensor of ones. The arguments are the same as for :func:`zeros`."""
    return leaf(_filled("ones", *_shape_and_dtype(shape, sizes, 1, dtype), device), requires_grad)


def _filled(name: str, shape: Any, value: bool | int | float | complex, dtype: Any, device: Any) -> Tensor:
    target, sizes = dtypes.as_dtype(dtype), as_sizes(name, shape)
    if (isinstance(value, RunTimeNumber) and target.is_inexact) or not is_static(sizes):
        filled: Tensor = ops.broadcast_to(tensors.constant(value, target), sizes)
        return filled if device is None else filled.to(as_device(device))
    return _tensor_of(np.full(sizes, fitting(name, value, target)), target, device)


def _tensor_of(array: np.ndarray, dtype: DType, device: Any) -> Tensor:
    """Wrap one of Runnel's own arrays without a copy."""
    place = None if device is None else as_device(device)
    return tensors.from_numpy(array, dtype, copy=False, device=place)


def _shape_and_dtype(shape: Any, sizes: tuple[Any, ...], value: int, dtype: Any) -> tuple[Any, int, Any]:
    """Return the arguments of :func:`_filled` from a shape that may continue in ``sizes``, whose last item may be a
    dtype."""
    if sizes and not hasattr(sizes[-1], "__index__"):
        if dtype is not None:
            raise ArgumentError(f"[zeros] dtype is given twice: {short_repr(sizes[-1])} and {short_repr(dtype)}.")
        dtype, sizes = sizes[-1], sizes[:-1]
    return (shape, *sizes) if sizes else shape, value, dtypes.float32 if dtype is None else dtype


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: Dtype = None,
    *,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Evenly spaced numbers from ``start`` up to but not including ``stop``; ``arange(n)`` counts from 0. int64
    where all three are ints, else float32. The numbers are finite and ``step`` is not 0 (else ValueError)."""
    start, step = _plain(start), _plain(step)
    begin, end = (0, start) if stop is None else (start, _plain(stop))
    if isinstance(end, Length) and step == 1 and isinstance(begin, (int, Length)):
        size = end - begin
        counted = ops.iota(tensors.constant(0, dtypes.int64), (size if size > 0 else 0,))
        positions: Tensor = counted if begin == 0 else ops.add(counted, begin)
        return leaf(positions if dtype is None else positions.astype(dtype), requires_grad)
    if step == 0 or not all(map(math.isfinite, (begin, end, step))):
        raise ValueError(
            f"[arange] counts from {begin} to {end} in steps of {step}; it needs finite numbers and a step."
        )
    if abs((end - begin) / step) >= MOST:
        raise ShapeError(f"[arange] no array has as many elements as there are from {begin} to {end} by {step}.")
    if dtype is None:
        dtype = dtypes.int64 if all(isinstance(v, int) for v in (begin, end, step)) else dtypes.float32
    target = dtypes.as_dtype(dtype)
    return leaf(_tensor_of(fitting("arange", np.arange(begin, end, step), target), target, device), requires_grad)


def linspace(
    start: complex,
    stop: complex,
    num: int,
    dtype: Dtype = None,
    *,
    endpoint: bool = True,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``; float32 by default, complex64 if either is
    complex."""
    begin, end = _plain(start), _plain(stop)
    is_complex = isinstance(begin, complex) or isinstance(end, complex)
    target = (dtypes.complex64 if is_complex else dtypes.float32) if dtype is None else dtypes.as_dtype(dtype)
    if is_complex and not target.is_complex:
        raise DTypeError(f"[linspace] complex numbers are no {target.name}; name a complex dtype.")
    if target is dtypes.bool_:
        raise DTypeError("[linspace] dtype must be a dtype of numbers; got bool. Compare the result with a number.")
    kind = complex if is_complex else float
    (count,) = as_sizes("linspace", num)
    array = np.linspace(kind(begin), kind(end), count, endpoint=endpoint)
    return leaf(_tensor_of(fitting("linspace", array, target), target, device), requires_grad)


def eye(
    n: int,
    m: int | None = None,
    dtype: Dtype = dtypes.float32,
    *,
    k: int = 0,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a matrix of ``n`` rows and ``m`` (or ``n``) columns with 1 on diagonal ``k`` and 0 elsewhere."""
    target = dtypes.as_dtype(dtype)
    rows, columns = as_sizes("eye", (n, n if m is None else m))
    identity = np.eye(rows, columns, operator.index(k), dtype=target.numpy)
    return leaf(_tensor_of(identity, target, device), requires_grad)


def empty(shape: Shape, *sizes: Any, dtype: Dtype = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Create a tensor of unspecified values (zeros). The arguments are the same as for :func:`zeros`."""
    return zeros(shape, *sizes, dtype=dtype, device=device, requires_grad=requires_grad)


def _plain(value: Any) -> Any:
    """Return a NumPy number as a Python number, which has no dtype."""
    if isinstance(value, ArrayMethods):
        return value.read().item()
    return value.item() if isinstance(value, np.generic) else value


def device(name: Any = None) -> Device:
    """Return the device called ``name`` ("cpu", "interpreter"); without a name, the device of new arrays.

    DeviceError if no such device exists. ``runnel.devices()`` lists them.
    """
    return default_device() if name is None else as_device(name)


def set_default_device(device: Any) -> None:
    """Make new arrays on ``device`` from now on, on all threads, where nobody says another. ``RUNNEL_DEVICE`` in the
    environment does the same from the start."""
    switches.device.set(as_device(device).name)
