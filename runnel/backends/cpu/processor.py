"""What the operating system says of the processor where LLVM does not ask: whether an Arm one has bfloat16 products."""

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


def _of_macos(name: str) -> bool:
    found, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    status = ctypes.CDLL(None).sysctlbyname(name.encode(), ctypes.byref(found), ctypes.byref(size), None, 0)
    return status == 0 and found.value == 1
