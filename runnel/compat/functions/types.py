"""PyTorch's types: ``Tensor`` with its constructors and ``isinstance``, ``device``, ``dtype`` and ``Size``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from runnel.core import dtypes
from runnel.core.devices import Device as PlaceOfMemory, as_device
from runnel.core.dtypes import DType
from runnel.nn.convolution import Convolution
from runnel.nn.hooks import RemovableHandle as RemovableHandle
from runnel.nn.losses import Loss, WeightedLoss
from runnel.nn.normalization import BatchNorm
from runnel.optim.lr_scheduler.scheduler import LRScheduler
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
    """The metaclass that makes ``isinstance(x, Tensor)`` and ``Tensor(...)`` work, for one dtype or (None) for any."""

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
    """The type of all tensors and Parameters, for ``isinstance``; called, it makes a float32 tensor.

    ``Tensor(2, 3)`` takes sizes and ``Tensor([1, 2])`` data. Its attributes are the methods of tensors.
    """


class FloatTensor(Tensor):
    """The kind of float32 tensors, made from sizes or data; the classes below are the same for other dtypes."""

    kind = dtypes.float32


class DoubleTensor(Tensor):
    kind = dtypes.float64


class LongTensor(Tensor):
    kind = dtypes.int64


class IntTensor(Tensor):
    kind = dtypes.int32


class BoolTensor(Tensor):
    kind = dtypes.bool_


class ByteTensor(Tensor):
    kind = dtypes.uint8


class HalfTensor(Tensor):
    kind = dtypes.float16


class BFloat16Tensor(Tensor):
    kind = dtypes.bfloat16


class ShortTensor(Tensor):
    kind = dtypes.int16


class CharTensor(Tensor):
    kind = dtypes.int8


class _DeviceKind(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, PlaceOfMemory)

    def __call__(cls, type: Any = "cpu", index: int | None = None) -> Any:
        return as_device(type.partition(":")[0] if isinstance(type, str) and index is None else type)


class device(metaclass=_DeviceKind):
    """The type of devices; ``device("cpu")`` returns one, and ``device("cuda")`` raises DeviceError."""


def variable(data: Any, requires_grad: bool = False) -> Any:
    """Return the tensor itself, as a leaf if ``requires_grad``."""
    if isinstance(data, Variable) or not requires_grad:
        return data
    return data.requires_grad_()


# --- private names of PyTorch that programs use

required = object()  # the default of an optimizer's argument that must be given
_LRScheduler = LRScheduler  # its older name
_Loss, _WeightedLoss, _BatchNorm, _ConvNd = Loss, WeightedLoss, BatchNorm, Convolution
Device = PlaceOfMemory | str | int | None
Number = int | float | bool


def _tuples_of(n: int) -> Callable[[Any], tuple[Any, ...]]:
    def several(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    several.__doc__ = f"Return a tuple of {n} times ``x``, or the items of ``x``."
    return several


_single, _pair, _triple, _quadruple = map(_tuples_of, range(1, 5))
