"""Where new arrays are made: the default device."""

from __future__ import annotations

from typing import Any

from runnel.backends.context import default_device
from runnel.core import switches
from runnel.core.devices import Device, as_device


def device(name: Any = None) -> Device:
    """The device called ``name`` ("cpu", "interpreter"); without a name the one on which new arrays are made.

    DeviceError for a device that does not exist. ``runnel.devices()`` lists them."""
    return default_device() if name is None else as_device(name)


def set_default_device(device: Any) -> None:
    """Make new arrays on ``device`` from now on, on all threads, where nobody says another. ``RUNNEL_DEVICE`` in the
    environment does the same from the start."""
    switches.device.set(as_device(device).name)
