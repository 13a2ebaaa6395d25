"""The size of a core's second-level cache, which blocks of matrices are chosen for. Bits never depend on it."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import Final

DEFAULT: Final = 512 << 10  # bytes, where the system does not say
LEAST, MOST = 256 << 10, 4 << 20  # bytes that blocks are chosen for
_SYSTEM: Final = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20}


@functools.cache
def second_level() -> int:
    """Bytes of this machine's cache, as a power of two from LEAST to MOST."""
    return usable(of_folder(_SYSTEM) or of_system() or DEFAULT)


def usable(size: int) -> int:
    """The largest power of two that is not above ``size``, clamped to LEAST and MOST."""
    return min(max(1 << size.bit_length() - 1, LEAST), MOST)


def of_folder(folder: Path) -> int:
    """The size by Linux's folder of caches; 0 if unknown."""
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        number = re.fullmatch(r"(\d+)([KM]?)", size)
        if level == "2" and kind in ("Data", "Unified") and number:
            return int(number[1]) * _UNITS[number[2]]
    return 0


def of_system() -> int:
    """The size by the C library; 0 if unknown."""
    try:
        return max(os.sysconf("SC_LEVEL2_CACHE_SIZE"), 0)
    except (AttributeError, OSError, ValueError):
        return 0
