"""PyTorch's process-wide settings and queries, among them ``torch.backends`` and ``torch.version``.

The values of ``torch.backends`` can be read and set; they have no effect on a CPU.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from runnel.backends.context import default_device
from runnel.core import dtypes, switches
from runnel.core.devices import Device
from runnel.core.dtypes import Dtype
from runnel.core.errors import DTypeError
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor


def get_default_device() -> Device:
    """Where new tensors are made."""
    return default_device()


def get_float32_matmul_precision() -> str:
    """ "highest": products of float32 are computed in float32."""
    return "highest"


def are_deterministic_algorithms_enabled() -> bool:
    """Always: results are the same from run to run, on any number of threads."""
    return True


def never(*args: Any) -> bool:
    """Never."""
    return False


def get_num_interop_threads() -> int:
    """1: one program runs at a time, on all threads."""
    return 1


def get_deterministic_debug_mode() -> int:
    """0: results are the same from run to run without it."""
    return 0


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Whether backward passes are to be checked for NaN."""
    switches.check_nans.set(bool(mode and check_nan))


def get_device(x: Tensor) -> int:
    """-1: tensors are on CPUs."""
    return -1


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule of the DLPack protocol over the tensor's memory."""
    return tensor.__dlpack__()


def from_file(filename: str, shared: bool | None = None, size: int = 0, *, dtype: Dtype = None, **options: Any) -> Any:
    """The first ``size`` numbers of a file of bytes, in the machine's order, as a tensor of their own: what is written
    to it does not reach the file, so ``shared`` is refused."""
    if shared:
        raise ValueError("[from_file] tensors are values: numpy.memmap(...) is for changes of a file.")
    kind = dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)
    return asarray(np.fromfile(filename, kind.numpy, size))


def without_effect(*args: Any, **options: Any) -> None:
    """Nothing."""


def set_flush_denormal(mode: bool) -> bool:
    """Denormal numbers stay: False, as PyTorch answers where this cannot be set."""
    return False


def set_default_tensor_type(t: Any) -> None:
    """DTypeError unless ``t`` is ``FloatTensor``."""
    if getattr(t, "kind", t) not in (dtypes.float32, "torch.FloatTensor"):
        raise DTypeError("[set_default_tensor_type] new tensors are float32; name the dtype where they are made.")


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


def typename(obj: Any) -> str:
    """The name of a tensor's type as PyTorch has it, "torch.FloatTensor", or of another object's class."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    return f"{kind.__module__}.{kind.__qualname__}"


# Sizes are Python numbers, and so is what is computed of them.

sym_int, sym_float, sym_max, sym_min, sym_not, sym_sqrt, sym_sum = int, float, max, min, operator.not_, math.sqrt, sum


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """``t`` where ``b`` holds, else ``f``."""
    return t if b else f


__version__ = "2.13.0+runnel"  # the version of PyTorch whose names and meanings these are
git_version = ""
debug = False
cuda = hip = xpu = None  # versions of what there is not

enabled = True
benchmark = deterministic = False
benchmark_limit = 10
allow_tf32 = allow_fp16_reduced_precision_reduction = allow_bf16_reduced_precision_reduction = False
allow_fp16_accumulation = False
fp32_precision = "ieee"  # products of float32 are computed in float32
strategy = "auto"


def is_absent(*args: Any) -> bool:
    """Never: programs are compiled by LLVM, with threads of their own."""
    return False


def is_present() -> bool:
    """Always: attention is computed by its formula, blockwise."""
    return True


def version() -> None:
    """None: there is no such library."""


def get_cpu_capability() -> str:
    """The vector instructions that programs are compiled for: LLVM's choice for this machine."""
    return "DEFAULT"


@contextmanager
def flags(*args: Any, **options: Any) -> Iterator[None]:
    """A block in which nothing is different."""
    yield


class SDPBackend:
    """Ways to compute attention that PyTorch chooses among; the compiler chooses here."""

    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION, OVERRIDEABLE = range(-1, 5)


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """A block in which nothing is different: the compiler chooses how attention is computed."""
    yield
