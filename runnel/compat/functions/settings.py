"""PyTorch's process-wide settings and queries, ``torch.backends`` and ``torch.version``.

You can read and set the values of ``torch.backends``; they have no effect on a CPU.
"""

from __future__ import annotations

import enum
import math
import operator
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from runnel.backends.context import default_device
from runnel.core import dtypes, switches
from runnel.core.devices import Device
from runnel.core.dtypes import Dtype
from runnel.core.errors import DTypeError
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor


def get_default_device() -> Device:
    """Return the device of new tensors."""
    return default_device()


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Choose whether NaN raises an error in backward passes."""
    switches.check_nans.set(bool(mode and check_nan))


def to_dlpack(tensor: Any) -> Any:
    """Return a DLPack capsule over the tensor's memory."""
    return tensor.read().__dlpack__()


def from_file(filename: str, shared: bool | None = None, size: int = 0, *, dtype: Dtype = None, **options: Any) -> Any:
    """Read the first ``size`` numbers of a binary file, in native byte order, into a new tensor.

    Later writes do not reach the file, so ``shared`` raises an error.
    """
    if shared:
        raise ValueError("[from_file] shared must be False; got True. Write to the file with numpy.memmap(...).")
    kind = dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)
    return asarray(np.fromfile(filename, kind.numpy, size))


_initialized: Final = False  # no program uses a GPU
default_generators: Final = ()  # of GPUs


def _disabled_torch_function_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Call a function: the ``__torch_function__`` of classes whose instances are not treated specially."""
    return func(*args, **kwargs or {})


def set_default_tensor_type(t: Any) -> None:
    """Raise DTypeError unless ``t`` is ``FloatTensor``."""
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
    """Set how tensors are printed, by NumPy's ``set_printoptions``.

    ``profile`` is "default", "short" or "full".
    """
    profiles = {
        "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
        "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
        "full": {"precision": 4, "threshold": np.iinfo(np.int32).max, "edgeitems": 3, "linewidth": 80},
    }
    if profile is not None and profile not in profiles:
        raise ValueError(f"[set_printoptions] profile must be one of {', '.join(profiles)}; got {profile!r}.")
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options: dict[str, Any] = dict(profiles.get(profile or "", {}))
    options |= {name: value for name, value in given.items() if value is not None}
    if sci_mode is not None:
        options["suppress"] = not sci_mode
    np.set_printoptions(**options)


def typename(obj: Any) -> str:
    """Return the name of a tensor's type as in PyTorch, "torch.FloatTensor", or of another object's class."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    return f"{kind.__module__}.{kind.__qualname__}"


# Sizes are Python numbers, and so is what is computed of them.

sym_int, sym_float, sym_max, sym_min, sym_not, sym_sqrt, sym_sum = int, float, max, min, operator.not_, math.sqrt, sum


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """Return ``t`` if ``b`` is true, else ``f``."""
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
cache_size_limit = 8
engine, supported_engines = "none", ["none"]
options = SimpleNamespace()  # of code generators, each with the values that a program sets
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # of names of files with weights


class OutOfMemoryError(RuntimeError):
    """The error for a full GPU, which is never raised."""


class SDPBackend:
    """Ways to compute attention that PyTorch chooses from; Runnel's compiler chooses by itself."""

    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION, OVERRIDEABLE = range(-1, 5)


@contextmanager
def unchanged(*args: Any, **options: Any) -> Iterator[None]:
    """Run a block unchanged: the choice that PyTorch offers here does not exist on CPUs."""
    yield


def show() -> str:
    """Return a line about the build."""
    return f"PyTorch's names {__version__}, computed by Runnel"


def parallel_info() -> str:
    """Return a line about threads."""
    return f"{switches.num_threads.value} threads"


def home() -> str:
    """Return PyTorch's folder for files of users."""
    return os.environ.get("TORCH_HOME", os.path.expanduser("~/.cache/torch"))


def get_dir() -> str:
    """Return the folder for downloaded weights, where nothing is downloaded."""
    return home() + "/hub"


def host_backend(device: Any) -> str:
    """Return "gloo", the backend of processes on CPUs."""
    return "gloo"


class TrainingMode(enum.Enum):
    """Modes of a model that is written as an ONNX file."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """Kinds of ops in an ONNX file."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def get_rng_state_all() -> list[Any]:
    """Return the generator states of all GPUs: an empty list."""
    return []


def get_arch_list() -> list[str]:
    """Return the GPUs that code was made for: an empty list."""
    return []


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Return an empty dict."""
    return {}


# What functions return that have only one answer on a machine without a GPU, where float32 products are computed in
# float32 and results are the same on any number of threads.
ANSWERS: list[tuple[Any, str]] = [
    (None, """empty_cache synchronize manual_seed manual_seed_all reset_peak_memory_stats set_rng_state_all
        current_accelerator version enable_cudnn_sdp enable_flash_sdp enable_math_sdp enable_mem_efficient_sdp
        use_deterministic_algorithms set_float32_matmul_precision without_effect"""),
    (False, "is_available is_built is_initialized is_bf16_supported set_flush_denormal never"),
    (True, "math_sdp_enabled are_deterministic_algorithms_enabled always"),
    (0, "device_count bytes_of_gpu get_deterministic_debug_mode"),
    (1, "get_num_interop_threads one"),
    (-1, "get_device"),
    ("highest", "get_float32_matmul_precision"),
    ("DEFAULT", "get_cpu_capability"),
]  # fmt: skip


def _answering(name: str, value: Any) -> Callable[..., Any]:
    def answer(*args: Any, **options: Any) -> Any:
        return value

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = f"Return {value!r}: on CPUs {'this has no effect' if value is None else 'the answer is fixed'}."
    return answer


globals().update({name: _answering(name, value) for value, names in ANSWERS for name in names.split()})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
