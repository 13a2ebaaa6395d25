"""How large the second-level cache of a core is: what blocks of matrices are cut for. Bits never depend on it."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import Final

DEFAULT: Final = 512 << 10  # bytes, where the system does not say
LEAST, MOST = 256 << 10, 4 << 20  # what blocks are made for
_SYSTEM: Final = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20}


@functools.cache
def second_level() -> int:
    """Bytes of this machine's, as a power of two from LEAST to MOST."""
    return usable(of_folder(_SYSTEM) or of_system() or DEFAULT)


def usable(size: int) -> int:
    """The largest power of two that is not above ``size``, held within LEAST and MOST."""
    return min(max(1 << size.bit_length() - 1, LEAST), MOST)


def of_folder(folder: Path) -> int:
    """What Linux says in a folder of caches; 0 if nothing."""
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        found = re.fullmatch(r"(\d+)([KM]?)", size)
        if level == "2" and kind in ("Data", "Unified") and found:
            return int(found[1]) * _UNITS[found[2]]
    return 0


def of_system() -> int:
    """What the C library says; 0 if nothing."""
    try:
        return max(os.sysconf("SC_LEVEL2_CACHE_SIZE"), 0)
    except (AttributeError, OSError, ValueError):
        return 0
