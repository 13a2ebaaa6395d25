"""Where arrays live. There is one device today, the CPU; more will be rows here and folders of code generation."""

from __future__ import annotations

from typing import Any, Final

from runnel.core.errors import DeviceError


class Device:
    """A place for arrays and programs, known by its ``name``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def __reduce__(self) -> tuple[Any, ...]:
        return as_device, (self.name,)

    def __repr__(self) -> str:
        return f"runnel.device({self.name!r})"

    def __str__(self) -> str:
        return self.name


CPU: Final = Device("cpu")
_DEVICES: Final = {CPU.name: CPU}


def as_device(device: Any) -> Device:
    """The device called ``device``; DeviceError for one that does not exist."""
    if isinstance(device, Device):
        return device
    found = _DEVICES.get(str(device))
    if found is None:
        raise DeviceError(f"[device] there is no device '{device}'; Runnel runs on {', '.join(_DEVICES)}.")
    return found
