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

    def __enter__(self) -> Device:
        """Make new arrays on this device in a ``with`` block, on all threads."""
        chosen = as_device(self).name
        _OUTER.append(_default.value)
        _default.set(chosen)
        return self

    def __exit__(self, *error: object) -> None:
        _default.set(_OUTER.pop())

    def __reduce__(self) -> tuple[Any, ...]:
        return as_device, (self.name,)

    def __repr__(self) -> str:
        return f"runnel.device({self.name!r})"

    def __str__(self) -> str:
        return self.name


CPU: Final = Device("cpu")  # machine code that LLVM makes
INTERPRETER: Final = Device("interpreter")  # the same programs, step by step in NumPy
_DEVICES: Final = {row.name: row for row in (CPU, INTERPRETER)}
_OUTER: Final[list[str]] = []  # the defaults around the ``with`` blocks that are running
_default: Any = None  # the switch ``device``


def connect(switch: Any) -> None:
    """Let ``with`` blocks of devices set ``switch``."""
    global _default
    _default = switch


def as_device(device: Any) -> Device:
    """Return the device called ``device``; DeviceError if it does not exist."""
    if type(device) is Device:
        return device
    named = _DEVICES.get(str(device).removesuffix(":0")) if isinstance(device, str) else None
    if named is None:
        shown = str(device) if isinstance(device, Device) else device
        raise DeviceError(f"[device] there is no device {shown!r}; {_instead(device)}.")
    return named


def _instead(device: Any) -> str:
    there_are = f"there are {', '.join(_DEVICES)}"
    if str(device).partition(":")[0] in ("cuda", "gpu", "mps", "tpu", "xpu"):
        return f"{there_are}. Programs run on CPUs, and torch.cuda.is_available() is False"
    return there_are


def devices() -> tuple[Device, ...]:
    """Return all devices of this process, the fastest first."""
    return tuple(_DEVICES.values())
