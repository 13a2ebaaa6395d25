"""PyTorch's functions that make tensors: sizes as several arguments, ``requires_grad``, ``layout`` and ``device``."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from runnel.core import dtypes
from runnel.core.avals import Shape
from runnel.core.dtypes import DType, Dtype, as_dtype, float32
from runnel.core.errors import DTypeError, ShapeError
from runnel.ops import creation_like
from runnel.ops.arguments import Array, as_sizes
from runnel.tensor import creation
from runnel.tensor.tensor import Tensor


def finished(values: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """A new tensor in a dtype, on a device and as a leaf, where these are asked for."""
    if dtype is not None:
        values = values.astype(dtype)
    if device is not None:
        values = values.to(device=device)
    return values.requires_grad_() if requires_grad else values


def sizes(size: tuple[Any, ...], shape: Any = None) -> tuple[int, ...]:
    """A shape from several ints, from one sequence, or by name."""
    if shape is not None:
        size = (shape,)
    if len(size) == 1 and not hasattr(size[0], "__index__"):
        return tuple(size[0])
    return tuple(size)


def zeros(
    *shape: Any,
    size: Any = None,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Zeros of a shape given by several ints or one sequence; float32 unless another dtype is named."""
    return finished(creation.zeros(sizes(shape, size), dtype=dtype), None, device, requires_grad)


def ones(
    *shape: Any,
    size: Any = None,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Ones; arguments are those of :func:`zeros`."""
    return finished(creation.ones(sizes(shape, size), dtype=dtype), None, device, requires_grad)


def empty(
    *shape: Any,
    size: Any = None,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor whose values do not matter (zeros); arguments are those of :func:`zeros`."""
    return zeros(*shape, size=size, dtype=dtype, device=device, requires_grad=requires_grad)


def full(
    size: Shape,
    fill_value: bool | int | float | complex,
    *,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """``fill_value`` in a shape."""
    return finished(creation.full(size, fill_value, dtype), None, device, requires_grad)


def arange(
    start: float,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Evenly spaced numbers from ``start`` (0, if one number is given) up to but not including ``end``. For an integer
    dtype, all three are made integers first."""
    start, end, step = _of_kind(dtype, start, end, step)
    first, last = (0, start) if end is None else (start, end)
    if (last - first) * step < 0:
        raise ValueError(f"[arange] a step of {step} does not lead from {first} to {last}.")
    return finished(creation.arange(start, end, step, dtype), None, device, requires_grad)


def _of_kind(dtype: Any, *numbers: Any) -> tuple[Any, ...]:
    """Numbers as PyTorch takes them for results of ``dtype``: rounded towards 0 for integers."""
    if dtype is None or not as_dtype(dtype).is_integer:
        return numbers
    return tuple(None if number is None else int(number) for number in numbers)


def range(start: float, end: float | None = None, step: float = 1, *, dtype: Dtype = None, **options: Any) -> Tensor:
    """Evenly spaced numbers from ``start`` (0, if one number is given) up to and including ``end``; float32 by
    default."""
    first, last = (0, start) if end is None else (start, end)
    if not step or not math.isfinite((last - first) / step):
        raise ValueError(
            f"[range] takes finite numbers, and a step that is not 0; received {first}, {last} and {step}."
        )
    count = math.floor((last - first) / step) + 1
    return arange(count, dtype=dtypes.float64).mul(step).add(first).astype(dtype or float32)


def empty_strided(size: Shape, stride: Shape, **options: Any) -> Tensor:
    """A tensor whose values do not matter (zeros), in row-major order whatever ``stride`` says."""
    return empty(size, **options)


def empty_permuted(size: Shape, physical_layout: Shape, **options: Any) -> Tensor:
    """A tensor whose values do not matter (zeros), in row-major order whatever ``physical_layout``, an order of its
    axes, says."""
    sizes, layout = as_sizes("empty_permuted", size), as_sizes("empty_permuted", physical_layout)
    if sorted(layout) != list(builtins.range(len(sizes))):
        raise ShapeError(f"[empty_permuted] {physical_layout} is no order of the axes of shape {sizes}.")
    return empty(size, **options)


def frombuffer(buffer: Any, *, dtype: Dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """The ``count`` elements (-1: all) of a buffer's bytes from ``offset`` on, as a tensor of their own."""
    values = np.frombuffer(buffer, dtypes.as_dtype(dtype).numpy, count, offset)
    return finished(creation.asarray(values), None, None, requires_grad)


def linspace(
    start: float,
    end: float,
    steps: int,
    *,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """``steps`` evenly spaced numbers from ``start`` to ``end``. For an integer dtype, both are made integers first,
    and what lies between is rounded towards 0."""
    start, end = _of_kind(dtype, start, end)
    return finished(
        creation.linspace(start, end, steps, float32 if dtype is None else dtype), None, device, requires_grad
    )


def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """``steps`` numbers from ``base``^``start`` to ``base``^``end``, evenly spaced on a logarithmic scale. For an
    integer dtype, ``start`` and ``end`` are made integers first."""
    start, end = _of_kind(dtype, start, end)
    as_sizes("logspace", (steps,))
    numbers = np.logspace(float(start), float(end), steps, base=base)
    return finished(creation.asarray(numbers, float32 if dtype is None else dtype), None, device, requires_grad)


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """The identity matrix."""
    return finished(creation.eye(n, m, float32 if dtype is None else dtype), None, device, requires_grad)


def tensor(
    data: Any, *, dtype: Dtype = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """``data`` as a new tensor without a tape."""
    return creation.tensor(data, dtype, device=device, requires_grad=requires_grad)


def scalar_tensor(s: Any, *, dtype: Dtype = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A number as a 0-d tensor, float32 unless another dtype is named."""
    return creation.tensor(s, float32 if dtype is None else dtype, device=device, requires_grad=requires_grad)


def zeros_like(
    input: Array,
    *,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Zeros in the shape of ``input``, and in its dtype unless another one is named."""
    return finished(creation_like.zeros_like(input.detach(), dtype), None, device, requires_grad)


def ones_like(
    input: Array,
    *,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Ones in the shape of ``input``."""
    return finished(creation_like.ones_like(input.detach(), dtype), None, device, requires_grad)


def empty_like(
    input: Array,
    *,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor in the shape of ``input`` whose values do not matter (zeros)."""
    return zeros_like(input, dtype=dtype, device=device, requires_grad=requires_grad)


def full_like(
    input: Array,
    fill_value: bool | int | float | complex,
    *,
    dtype: Dtype = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """``fill_value`` in the shape of ``input``."""
    return finished(creation_like.full_like(input.detach(), fill_value, dtype=dtype), None, device, requires_grad)


def get_default_dtype() -> DType:
    """float32: what Python's floats become."""
    return float32


def set_default_dtype(d: DType) -> None:
    """DTypeError unless ``d`` is float32: layers make their Parameters in float32 (``module.double()`` converts)."""
    if d is not float32:
        raise DTypeError(
            f"[set_default_dtype] new tensors and Parameters are float32; received {d.name}. Name the dtype where "
            "tensors are made, and convert modules with .double() or .to(dtype)."
        )
