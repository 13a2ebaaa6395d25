"""``torch.backends`` and ``torch.version``: what PyTorch computes with, as on a machine without a GPU.

The values can be read and set; none has an effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from runnel.core.surface import offered, offered_names

__version__ = "2.13.0+runnel"  # the version of PyTorch whose names and meanings these are
git_version = ""
debug = False
cuda = hip = xpu = None  # versions of what there is not
offered_names("torch", "__version__")
offered_names("torch.version", "__version__", "cuda", "debug", "git_version", "hip", "xpu")

enabled = True
benchmark = deterministic = False
benchmark_limit = 10
allow_tf32 = allow_fp16_reduced_precision_reduction = allow_bf16_reduced_precision_reduction = False
allow_fp16_accumulation = False
fp32_precision = "ieee"  # products of float32 are computed in float32
strategy = "auto"
offered_names("torch.backends", "fp32_precision")
offered_names("torch.backends.cudnn", "allow_tf32", "benchmark", "benchmark_limit", "deterministic", "enabled")
offered_names("torch.backends.cudnn", "fp32_precision")
offered_names("torch.backends.mkldnn", "allow_tf32", "deterministic", "enabled", "fp32_precision")
offered_names("torch.backends.cuda.matmul", "allow_tf32", "allow_fp16_accumulation", "fp32_precision")
offered_names("torch.backends.cuda.matmul", "allow_fp16_reduced_precision_reduction")
offered_names("torch.backends.cuda.matmul", "allow_bf16_reduced_precision_reduction")
offered_names("torch.backends.opt_einsum", "enabled", "strategy")


@offered(
    "torch.backends.cuda: flash_sdp_enabled mem_efficient_sdp_enabled cudnn_sdp_enabled",
    "torch.backends.cudnn: is_acceptable",
    "torch.backends.mkl: is_available",
    "torch.backends.opt_einsum: is_available",
    "torch.backends.openmp: is_available",
)
def is_absent(*args: Any) -> bool:
    """Never: programs are compiled by LLVM, with threads of their own."""
    return False


@offered("torch.backends.cuda: math_sdp_enabled")
def is_present() -> bool:
    """Always: attention is computed by its formula, blockwise."""
    return True


@offered("torch.backends.cudnn")
def version() -> None:
    """None: there is no such library."""


@offered("torch.backends.cpu")
def get_cpu_capability() -> str:
    """The vector instructions that programs are compiled for: LLVM's choice for this machine."""
    return "DEFAULT"


@offered("torch.backends.cuda: sdp_kernel", "torch.backends.cudnn: flags", "torch.backends.mkldnn: flags")
@contextmanager
def flags(*args: Any, **options: Any) -> Iterator[None]:
    """A block in which nothing is different."""
    yield


@offered("torch.nn.attention")
class SDPBackend:
    """Ways to compute attention that PyTorch chooses among; the compiler chooses here."""

    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION, OVERRIDEABLE = range(-1, 5)


@offered("torch.nn.attention")
@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """A block in which nothing is different: the compiler chooses how attention is computed."""
    yield
