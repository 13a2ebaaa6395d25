"""``torch.amp``: mixed precision on CPUs. On other devices nothing is cast."""

from __future__ import annotations

from typing import Any

from runnel.core import switches
from runnel.core.conversion import CASTING
from runnel.core.devices import as_device
from runnel.core.dtypes import DType, Dtype, bfloat16, float16
from runnel.tensor.autocast import autocast as casting

ACCELERATORS = ("cuda", "mps", "xpu")


def autocast(
    device_type: Any = "cpu", dtype: Dtype = None, enabled: bool = True, cache_enabled: bool | None = None
) -> casting:
    """Cast products to ``dtype`` (bfloat16 by default) inside a ``with`` block, like ``rn.autocast``.

    For a device that does not exist, such as "cuda", nothing is cast, as in PyTorch.
    """
    if isinstance(device_type, str):
        if device_type in ACCELERATORS:
            return casting(enabled=False)
        as_device(device_type)
    return casting(enabled=enabled) if dtype is None else casting(dtype, enabled)


class GradScaler:
    """A loss scaler with scale 1: gradients of Parameters are float32 and need no scaling.

    Loops written with ``scale``, ``unscale_``, ``step`` and ``update`` run unchanged.
    """

    def __init__(self, device: Any = "cpu", enabled: bool = True, **options: Any) -> None:
        self._enabled = enabled

    def scale(self, outputs: Any) -> Any:
        """Return ``outputs`` unchanged."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Do nothing."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Return ``optimizer.step()``."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | None = None) -> None:
        """Do nothing."""

    def get_scale(self) -> float:
        """Return 1."""
        return 1.0

    def is_enabled(self) -> bool:
        """Return the constructor's argument."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return an empty dict."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Do nothing."""


def is_autocast_available(device_type: str) -> bool:
    """Return True for "cpu"."""
    return device_type == "cpu"


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return True if products on the device are cast here."""
    return device_type == "cpu" and CASTING.dtype is not None


def is_autocast_cpu_enabled() -> bool:
    """Return ``is_autocast_enabled("cpu")``."""
    return CASTING.dtype is not None


def get_autocast_dtype(device_type: str = "cpu") -> DType:
    """Return the dtype that autocast uses, or would use, on the device."""
    return (CASTING.dtype or bfloat16) if device_type == "cpu" else float16


def is_anomaly_enabled() -> bool:
    """Return True if NaN raises an error."""
    return bool(switches.check_nans.value)


def autocast_on_cpu(enabled: bool = True, dtype: Dtype = None, cache_enabled: bool | None = None) -> casting:
    """Return ``autocast("cpu", ...)``."""
    return autocast("cpu", dtype, enabled)


def get_autocast_gpu_dtype() -> DType:
    """Return float16."""
    return float16


def autocast_on_gpu(enabled: bool = True, dtype: Dtype = None, cache_enabled: bool | None = None) -> casting:
    """Cast nothing, because GPUs are not supported."""
    return casting(enabled=False)
