"""PyTorch's functions that make tensors: sizes as several arguments, ``requires_grad``, ``layout``, ``device``."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.core import dtypes
from runnel.core.avals import Shape
from runnel.core.dtypes import DType, Dtype, as_dtype, float32
from runnel.core.errors import ArgumentError, DTypeError, ShapeError
from runnel.ops import creation_like
from runnel.ops.arguments import Array, as_sizes
from runnel.tensor import creation
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor


def finished(values: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """Convert a new tensor to the requested dtype and device, and make it a leaf if requested."""
    if dtype is not None:
        values = values.astype(dtype)
    if device is not None:
        values = values.to(device=device)
    return values.requires_grad_() if requires_grad else values


def new_tensor(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """Add PyTorch's keyword arguments for new tensors to a function that takes at most ``dtype`` of them."""

    @functools.wraps(function)
    def make(
        *args: Any,
        dtype: Dtype = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        memory_format: Any = None,
        **named: Any,
    ) -> Tensor:
        if layout not in (None, "strided"):
            raise ArgumentError(f"[{function.__name__}] layout must be torch.strided; got {layout!r}.")
        return finished(function(*args, dtype=dtype, **named), None, device, requires_grad)

    own = [p for p in inspect.signature(function).parameters.values() if p.name != "dtype"]
    options = [p for p in inspect.signature(make, follow_wrapped=False).parameters.values() if p.kind is p.KEYWORD_ONLY]
    del make.__wrapped__  # which has other parameters
    make.__signature__ = inspect.Signature([*own, *options], return_annotation="Tensor")  # type: ignore[attr-defined]
    return make


def sizes(size: tuple[Any, ...], shape: Any = None) -> tuple[int, ...]:
    """Return a shape given as several ints, as one sequence, or by keyword."""
    if shape is not None:
        size = (shape,)
    if len(size) == 1 and not hasattr(size[0], "__index__"):
        return tuple(size[0])
    return tuple(size)


@new_tensor
def zeros(*shape: Any, size: Any = None, dtype: Dtype = None) -> Tensor:
    """Return zeros of a shape given as several ints or one sequence; float32 by default."""
    return creation.zeros(sizes(shape, size), dtype=dtype)


@new_tensor
def ones(*shape: Any, size: Any = None, dtype: Dtype = None) -> Tensor:
    """Return ones; the arguments are the same as for :func:`zeros`."""
    return creation.ones(sizes(shape, size), dtype=dtype)


@new_tensor
def empty(*shape: Any, size: Any = None, dtype: Dtype = None) -> Tensor:
    """Return a tensor whose values do not matter (zeros); the arguments are the same as for :func:`zeros`."""
    return creation.zeros(sizes(shape, size), dtype=dtype)


@new_tensor
def full(size: Shape, fill_value: bool | int | float | complex, *, dtype: Dtype = None) -> Tensor:
    """Return a tensor of shape ``size`` filled with ``fill_value``."""
    return creation.full(size, fill_value, dtype)


@new_tensor
def arange(start: float | None = None, end: float | None = None, step: float = 1, *, dtype: Dtype = None) -> Tensor:
    """Return evenly spaced numbers from ``start`` (0 if omitted) up to but excluding ``end``.

    For an integer dtype, all three are rounded towards 0 first.
    """
    if start is None:
        if end is None:
            raise ArgumentError("[arange] end must be a number; it is left out.")
        start = 0
    start, end, step = _of_kind(dtype, start, end, step)
    first, last = (0, start) if end is None else (start, end)
    if (last - first) * step < 0:
        raise ValueError(f"[arange] step must lead from {first} to {last}; got {step}.")
    return creation.arange(start, end, step, dtype)


def _of_kind(dtype: Any, *numbers: Any) -> tuple[Any, ...]:
    """Round numbers towards 0 if ``dtype`` is an integer dtype, as PyTorch does."""
    if dtype is None or not as_dtype(dtype).is_integer:
        return numbers
    return tuple(None if number is None else int(number) for number in numbers)


def range(start: float, end: float | None = None, step: float = 1, *, dtype: Dtype = None, **options: Any) -> Tensor:
    """Return evenly spaced numbers from ``start`` (0 if omitted) up to and including ``end``; float32 by default."""
    first, last = (0, start) if end is None else (start, end)
    if not step or not math.isfinite((last - first) / step):
        raise ValueError(f"[range] start, end and step must be finite, and step not 0; got {first}, {last} and {step}.")
    count = math.floor((last - first) / step) + 1
    return arange(count, dtype=dtypes.float64).mul(step).add(first).astype(dtype or float32)


def empty_strided(size: Shape, stride: Shape, **options: Any) -> Tensor:
    """Return a tensor whose values do not matter (zeros), in row-major order whatever ``stride`` says."""
    return empty(size, **options)


def empty_permuted(size: Shape, physical_layout: Shape, **options: Any) -> Tensor:
    """Return a tensor whose values do not matter (zeros), in row-major order.

    ``physical_layout`` must be a permutation of the axes and has no effect.
    """
    sizes, layout = as_sizes("empty_permuted", size), as_sizes("empty_permuted", physical_layout)
    if sorted(layout) != list(builtins.range(len(sizes))):
        raise ShapeError(
            f"[empty_permuted] physical_layout must order the axes of shape {sizes}; got {physical_layout}."
        )
    return empty(size, **options)


def frombuffer(buffer: Any, *, dtype: Dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Copy ``count`` elements (-1: all) of a buffer, from byte ``offset`` on, into a new tensor."""
    values = np.frombuffer(buffer, dtypes.as_dtype(dtype).numpy, count, offset)
    return finished(creation.asarray(values), None, None, requires_grad)


@new_tensor
def linspace(start: float, end: float, steps: int, *, dtype: Dtype = None) -> Tensor:
    """Return ``steps`` evenly spaced numbers from ``start`` to ``end``.

    For an integer dtype, both ends and then the numbers between are rounded towards 0.
    """
    start, end = _of_kind(dtype, start, end)
    return creation.linspace(start, end, steps, float32 if dtype is None else dtype)


@new_tensor
def logspace(start: float, end: float, steps: int, base: float = 10.0, *, dtype: Dtype = None) -> Tensor:
    """Return ``steps`` numbers from ``base``^``start`` to ``base``^``end``, evenly spaced on a logarithmic scale.

    For an integer dtype, ``start`` and ``end`` are rounded towards 0 first.
    """
    start, end = _of_kind(dtype, start, end)
    as_sizes("logspace", (steps,))
    numbers = np.logspace(float(start), float(end), steps, base=base)
    return creation.asarray(numbers, float32 if dtype is None else dtype)


@new_tensor
def eye(n: int, m: int | None = None, *, dtype: Dtype = None) -> Tensor:
    """Return the identity matrix."""
    return creation.eye(n, m, float32 if dtype is None else dtype)


def tensor(
    data: Any, *, dtype: Dtype = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Return ``data`` as a new tensor without a tape. Tensors in lists are numbers."""
    return creation.tensor(with_numbers("tensor", data), dtype, device=device, requires_grad=requires_grad)


def as_tensor(data: Any, dtype: Dtype = None, device: Any = None) -> Tensor:
    """Return ``data`` as a tensor. Tensors in lists are numbers."""
    return creation.asarray(with_numbers("as_tensor", data), dtype, device=device)


def with_numbers(name: str, data: Any) -> Any:
    """Return nested lists with their tensors, which have one element each, as 0-d tensors."""
    first = data
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if first is data or not isinstance(first, ArrayMethods):
        if isinstance(data, (list, tuple)) and any(isinstance(x, ArrayMethods) for x in data):
            return _with_numbers(name, data)
        return data
    return _with_numbers(name, data)


def _with_numbers(name: str, data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return [_with_numbers(name, x) for x in data]
    if not isinstance(data, ArrayMethods):
        return data
    if data.size != 1:
        raise ArgumentError(
            f"[{name}] tensors in a list must have one element; got shape {data.shape}. Write torch.stack(tensors)."
        )
    return data.reshape(()) if data.ndim else data


def scalar_tensor(s: Any, *, dtype: Dtype = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a number as a 0-d tensor, float32 by default."""
    return creation.tensor(s, float32 if dtype is None else dtype, device=device, requires_grad=requires_grad)


@new_tensor
def zeros_like(input: Array, *, dtype: Dtype = None) -> Tensor:
    """Return zeros in the shape of ``input``, and in its dtype by default."""
    return creation_like.zeros_like(input.without_tape(), dtype)


@new_tensor
def ones_like(input: Array, *, dtype: Dtype = None) -> Tensor:
    """Return ones in the shape of ``input``, and in its dtype by default."""
    return creation_like.ones_like(input.without_tape(), dtype)


@new_tensor
def empty_like(input: Array, *, dtype: Dtype = None) -> Tensor:
    """Return a tensor in the shape of ``input`` whose values do not matter (zeros)."""
    return creation_like.zeros_like(input.without_tape(), dtype)


@new_tensor
def full_like(input: Array, fill_value: bool | int | float | complex, *, dtype: Dtype = None) -> Tensor:
    """Return a tensor in the shape of ``input`` filled with ``fill_value``."""
    return creation_like.full_like(input.without_tape(), fill_value, dtype=dtype)


def get_default_dtype() -> DType:
    """Return float32, the dtype of Python floats."""
    return float32


def set_default_dtype(d: DType) -> None:
    """Raise DTypeError unless ``d`` is float32; use ``module.double()`` to convert a module."""
    if d is not float32:
        raise DTypeError(
            f"[set_default_dtype] new tensors and Parameters must be float32; got {d.name}. Name the dtype where "
            "tensors are made, and convert modules with .double() or .to(dtype)."
        )
