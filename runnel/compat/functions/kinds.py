"""PyTorch's types: ``Tensor`` with its constructors and ``isinstance``, ``device``, ``dtype`` and ``Size``."""

from __future__ import annotations

from typing import Any

from runnel.core import dtypes
from runnel.core.devices import Device, as_device
from runnel.core.dtypes import DType
from runnel.tensor import creation
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor as AnyTensor
from runnel.tensor.variable import Variable

Size: type[tuple[Any, ...]] = tuple  # shapes are tuples of ints
dtype = DType
strided = "strided"  # the one layout
layout = str  # of layouts
memory_format = type(None)  # of memory formats
contiguous_format = channels_last = channels_last_3d = preserve_format = legacy_contiguous_format = (
    None  # memory formats: tensors are in row-major order
)


class _TensorKind(type):
    """What ``isinstance(x, Tensor)`` asks, and what ``Tensor(...)`` makes, for a dtype or (None) for any."""

    kind: DType | None = None

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, ArrayMethods) and cls.kind in (None, instance.dtype)

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        kind = cls.kind or dtypes.float32
        if len(args) == 1 and not isinstance(args[0], int):
            return creation.tensor(args[0], kind, device=device)
        return creation.zeros(args or (0,), dtype=kind, device=device)

    def __getattr__(cls, name: str) -> Any:
        return getattr(AnyTensor, name)


class Tensor(metaclass=_TensorKind):
    """``isinstance(x, Tensor)``: whether ``x`` is a tensor, or a Parameter; ``Tensor(2, 3)``, ``Tensor([1, 2])``: a new
    one, float32. Its attributes are the methods of tensors."""


class FloatTensor(Tensor):
    """A float32 tensor, of sizes or of data."""

    kind = dtypes.float32


class DoubleTensor(Tensor):
    """A float64 tensor, of sizes or of data."""

    kind = dtypes.float64


class LongTensor(Tensor):
    """An int64 tensor, of sizes or of data."""

    kind = dtypes.int64


class IntTensor(Tensor):
    """An int32 tensor, of sizes or of data."""

    kind = dtypes.int32


class BoolTensor(Tensor):
    """A bool tensor, of sizes or of data."""

    kind = dtypes.bool_


class ByteTensor(Tensor):
    """A uint8 tensor, of sizes or of data."""

    kind = dtypes.uint8


class HalfTensor(Tensor):
    """A float16 tensor, of sizes or of data."""

    kind = dtypes.float16


class BFloat16Tensor(Tensor):
    """A bfloat16 tensor, of sizes or of data."""

    kind = dtypes.bfloat16


class ShortTensor(Tensor):
    """An int16 tensor, of sizes or of data."""

    kind = dtypes.int16


class CharTensor(Tensor):
    """An int8 tensor, of sizes or of data."""

    kind = dtypes.int8


class _DeviceKind(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Device)

    def __call__(cls, type: Any = "cpu", index: int | None = None) -> Any:
        return as_device(type.partition(":")[0] if isinstance(type, str) and index is None else type)


class device(metaclass=_DeviceKind):
    """``device("cpu")``: where tensors live. DeviceError for "cuda": programs run on CPUs."""


def variable(data: Any, requires_grad: bool = False) -> Any:
    """The tensor itself, as a leaf if ``requires_grad``: PyTorch's Variables became tensors long ago."""
    if isinstance(data, Variable) or not requires_grad:
        return data
    return data.requires_grad_()
