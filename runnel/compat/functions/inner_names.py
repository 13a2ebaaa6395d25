"""Names of PyTorch's modules that programs use though they are not public there: base classes, sentinels and types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from runnel.core.devices import Device as PlaceOfMemory
from runnel.nn.convolution import Convolution
from runnel.nn.hooks import RemovableHandle as RemovableHandle
from runnel.nn.losses import Loss, WeightedLoss
from runnel.nn.normalization import BatchNorm
from runnel.optim.lr_scheduler.scheduler import LRScheduler

required = object()  # the default of an optimizer's argument that has to be given
_LRScheduler = LRScheduler  # its older name
_Loss, _WeightedLoss, _BatchNorm, _ConvNd = Loss, WeightedLoss, BatchNorm, Convolution
Device = PlaceOfMemory | str | int | None
Number = int | float | bool


def _tuples_of(n: int) -> Callable[[Any], tuple[Any, ...]]:
    def several(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    several.__doc__ = f"A tuple of {n} times ``x``, or the items of ``x``."
    return several


_single, _pair, _triple, _quadruple = map(_tuples_of, range(1, 5))


def to_dlpack(tensor: Any) -> Any:
    """The tensor for another library's ``from_dlpack``."""
    return tensor.read().__dlpack__()
