"""PyTorch's types: ``Tensor`` with its constructors and ``isinstance``, ``device``, ``dtype`` and ``Size``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from runnel.compat.functions.creation import with_numbers
from runnel.core import dtypes
from runnel.core.devices import Device as PlaceOfMemory, as_device
from runnel.core.dtypes import DType
from runnel.core.errors import UnsupportedError
from runnel.nn.convolution import Convolution
from runnel.nn.hooks import RemovableHandle as RemovableHandle
from runnel.nn.losses import Loss, WeightedLoss
from runnel.nn.normalization import BatchNorm
from runnel.nn.parameter import Parameter
from runnel.optim.lr_scheduler.scheduler import LRScheduler
from runnel.tensor import creation
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor as AnyTensor
from runnel.tensor.torch_methods import is_size
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
        if cls.__module__ != __name__:  # derived by the user
            return type.__instancecheck__(cls, instance)
        return isinstance(instance, ArrayMethods) and cls.kind in (None, instance.dtype)

    def __subclasscheck__(cls, other: type) -> bool:
        return type.__subclasscheck__(cls, other) or (cls is Tensor and issubclass(other, ArrayMethods))

    def __call__(cls, *args: Any, device: Any = None, **options: Any) -> Any:
        if cls.__module__ != __name__:
            raise _derived(cls.__name__)
        kind = cls.kind or dtypes.float32
        if len(args) == 1 and not is_size(args[0]):
            return creation.tensor(with_numbers(cls.__name__, args[0]), kind, device=device)
        return creation.zeros(args or (0,), dtype=kind, device=device)

    def __getattr__(cls, name: str) -> Any:
        return getattr(AnyTensor, name)


class Tensor(metaclass=_TensorKind):
    """The type of all tensors and Parameters, for ``isinstance``; called, it makes a float32 tensor.

    ``Tensor(2, 3)`` takes sizes and ``Tensor([1, 2])`` data. Its attributes are the methods of tensors. Classes derived
    from it can be named and have no instances; classes derived from Parameter have.
    """

    @staticmethod
    def _make_subclass(cls: Any, data: Any, require_grad: bool = False) -> Any:
        """Return a Parameter of class ``cls`` with the value ``data``."""
        if not issubclass(cls, Parameter):
            raise _derived(cls.__name__)
        made = object.__new__(cls)
        Parameter.__init__(made, data, require_grad)
        return made


def _derived(name: str) -> UnsupportedError:
    return UnsupportedError(
        f"[{name}] a class derived from torch.Tensor has no instances; derive it from torch.nn.Parameter, or hold a "
        "tensor as an attribute."
    )


def as_subclass(x: Any, cls: Any) -> Any:
    """Return ``x`` as a ``torch.Tensor``, which it is. UnsupportedError for derived classes."""
    if cls is not Tensor:
        raise _derived(cls.__name__)
    return x


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


_ELSEWHERE = frozenset({"cuda", "hip", "hpu", "ipu", "meta", "mps", "mtia", "privateuseone", "vulkan", "xla", "xpu"})


class ForeignDevice(PlaceOfMemory):
    """A device that does not exist here: it can be named and compared, and raises DeviceError for what is put there."""

    __slots__ = ()

    @property
    def type(self) -> str:
        """The kind of device, such as "cuda"."""
        return self.name.partition(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """The number after the colon; None without one."""
        number = self.name.partition(":")[2]
        return int(number) if number else None

    def __reduce__(self) -> tuple[Any, ...]:
        return _named_device, (self.name,)

    def __repr__(self) -> str:
        return f"device(type={self.type!r}" + ("" if self.index is None else f", index={self.index}") + ")"


@functools.cache
def _named_device(name: str) -> PlaceOfMemory:
    """Return the one object for the device ``name``."""
    kind, colon, number = name.partition(":")
    if kind in _ELSEWHERE and (number.isdecimal() or not colon):
        return ForeignDevice(name)
    return as_device(kind if kind == "cpu" and number.isdecimal() else name)


class _DeviceKind(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, PlaceOfMemory)

    def __call__(cls, type: Any = "cpu", index: int | None = None) -> Any:
        if isinstance(type, int):
            type, index = "cuda", type
        return _named_device(str(type) if index is None else f"{type}:{index}")


class device(metaclass=_DeviceKind):
    """The type of devices. ``device("cpu")`` returns one. ``device("cuda:0")`` is a value, which no tensor can be put
    on."""


def variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
    """Return the tensor itself, as a leaf if ``requires_grad``. As in PyTorch, ``volatile`` has no effect."""
    if isinstance(data, Variable) or not requires_grad:
        return data
    return data.requires_grad_()


def is_lazy(param: Any) -> bool:
    """Return whether a Parameter or buffer has no shape yet."""
    return bool(getattr(param, "is_uninitialized", False))


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
