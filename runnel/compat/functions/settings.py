"""What PyTorch's programs ask about the process, and settings that have no effect here."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.backends.context import default_device
from runnel.core import dtypes
from runnel.core.devices import Device
from runnel.core.errors import DTypeError
from runnel.core.surface import offered
from runnel.tensor.tensor import Tensor


@offered("torch")
def get_default_device() -> Device:
    """Where new tensors are made."""
    return default_device()


@offered("torch")
def get_float32_matmul_precision() -> str:
    """ "highest": products of float32 are computed in float32."""
    return "highest"


@offered("torch")
def are_deterministic_algorithms_enabled() -> bool:
    """Always: results are the same from run to run, on any number of threads."""
    return True


@offered("torch: is_deterministic_algorithms_warn_only_enabled")
def never(*args: Any) -> bool:
    """Never."""
    return False


@offered("torch")
def get_num_interop_threads() -> int:
    """1: one program runs at a time, on all threads."""
    return 1


@offered("torch: set_num_interop_threads set_warn_always set_deterministic_debug_mode init_num_threads")
def without_effect(*args: Any, **options: Any) -> None:
    """Nothing."""


@offered("torch")
def set_flush_denormal(mode: bool) -> bool:
    """Denormal numbers stay: False, as PyTorch answers where this cannot be set."""
    return False


@offered("torch")
def set_default_tensor_type(t: Any) -> None:
    """DTypeError unless ``t`` is ``FloatTensor``."""
    if getattr(t, "kind", t) not in (dtypes.float32, "torch.FloatTensor"):
        raise DTypeError("[set_default_tensor_type] new tensors are float32; name the dtype where they are made.")


@offered("torch")
def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors are shown: NumPy's ``set_printoptions``, which shows them. ``profile`` is "default", "short" or
    "full"."""
    profiles = {
        "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
        "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
        "full": {"precision": 4, "threshold": np.iinfo(np.int32).max, "edgeitems": 3, "linewidth": 80},
    }
    if profile is not None and profile not in profiles:
        raise ValueError(f"[set_printoptions] profile is one of {', '.join(profiles)}; received {profile!r}.")
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options: dict[str, Any] = dict(profiles.get(profile or "", {}))
    options |= {name: value for name, value in given.items() if value is not None}
    if sci_mode is not None:
        options["suppress"] = not sci_mode
    np.set_printoptions(**options)


@offered("torch")
def typename(obj: Any) -> str:
    """The name of a tensor's type as PyTorch has it, "torch.FloatTensor", or of another object's class."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    return f"{kind.__module__}.{kind.__qualname__}"
