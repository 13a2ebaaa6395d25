"""Devices: a name for each backend (``runnel.backends``)."""

from __future__ import annotations

from typing import Any, Final

from runnel.core.errors import DeviceError


class Device:
    """A place for arrays and programs, known by its ``name``. There is one object for each; compare with ``is``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: Final = name

    @property
    def type(self) -> str:
        """The kind of device, as PyTorch calls it: the name, as there is one of each."""
        return self.name

    @property
    def index(self) -> None:
        """Which one of its kind: None, as there is one of each."""
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        return as_device, (self.name,)

    def __repr__(self) -> str:
        return f"runnel.device({self.name!r})"

    def __str__(self) -> str:
        return self.name


CPU: Final = Device("cpu")  # machine code that LLVM makes
INTERPRETER: Final = Device("interpreter")  # the same programs, step by step in NumPy
_DEVICES: Final = {row.name: row for row in (CPU, INTERPRETER)}


def as_device(device: Any) -> Device:
    """Return the device called ``device``; DeviceError if it does not exist."""
    if isinstance(device, Device):
        return device
    named = _DEVICES.get(device) if isinstance(device, str) else None
    if named is None:
        raise DeviceError(f"[device] there is no device {device!r}; {_instead(device)}.")
    return named


def _instead(device: Any) -> str:
    there_are = f"there are {', '.join(_DEVICES)}"
    if str(device).partition(":")[0] in ("cuda", "gpu", "mps", "tpu", "xpu"):
        return f"{there_are}. Programs run on CPUs, and torch.cuda.is_available() is False"
    return there_are


def devices() -> tuple[Device, ...]:
    """Return all devices of this process, the fastest first."""
    return tuple(_DEVICES.values())
