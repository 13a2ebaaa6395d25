"""Features of the processor by the operating system, where LLVM does not detect them or is not loaded."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


def has_arm_bf16() -> bool:
    """Whether this processor has the extension FEAT_BF16 of Armv8.6, as Linux or macOS says."""
    if sys.platform == "darwin":
        return _of_macos("hw.optional.arm.FEAT_BF16")
    try:
        return lists_bf16(_CPUINFO.read_text())
    except OSError:
        return False


def lists_bf16(cpuinfo: str) -> bool:
    """Whether Linux's description of an Arm machine lists the extension for every processor."""
    lists = [line.split(":", 1)[1].split() for line in cpuinfo.splitlines() if line.startswith("Features")]
    return bool(lists) and all("bf16" in names for names in lists)


def features() -> frozenset[str]:
    """The names of instruction sets that Linux lists for every processor of an x86 machine, as LLVM spells them."""
    try:
        lines = _CPUINFO.read_text().splitlines()
    except OSError:
        return frozenset()
    lists = [line.split(":", 1)[1].split() for line in lines if line.startswith("flags")]
    common = set.intersection(*map(set, lists)) if lists else set()
    return frozenset(name.replace("_", "") for name in common)


def _of_macos(name: str) -> bool:
    value, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    status = ctypes.CDLL(None).sysctlbyname(name.encode(), ctypes.byref(value), ctypes.byref(size), None, 0)
    return status == 0 and value.value == 1
