"""The arguments of ``Module.to``: target device and dtype."""

from __future__ import annotations

from typing import Any

from runnel.core.devices import Device, as_device
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import DType, as_dtype
from runnel.core.errors import ArgumentError, DTypeError


def destination(where: tuple[Any, ...], device: Any, dtype: Any) -> tuple[Device | None, DType | None]:
    """The device and the float dtype that are asked for; None for what stays."""
    for one in where:
        if isinstance(one, TensorLike):
            device, dtype = one.aval.device, one.dtype
        elif isinstance(one, bool) or one is None:
            continue  # PyTorch's non_blocking
        elif is_dtype(one):
            if dtype is not None:
                raise ArgumentError(f"[to] takes one dtype; received {dtype} and {one}.")
            dtype = one
        else:
            if device is not None:
                raise ArgumentError(f"[to] takes one device; received {device} and {one}.")
            device = one
    kind = None if dtype is None else as_dtype(dtype)
    if kind is not None and not kind.is_float:
        raise DTypeError(f"[to] Parameters are floats; received {kind.name}.")
    return None if device is None else as_device(device), kind


def is_dtype(value: Any) -> bool:
    """Whether ``value`` names a dtype."""
    if isinstance(value, Device):
        return False
    try:
        as_dtype(value)
    except (TypeError, ValueError):
        return False
    return True
