"""``torch.backends`` and ``torch.version``: what PyTorch computes with, as on a machine without a GPU.

The values can be read and set; none has an effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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
