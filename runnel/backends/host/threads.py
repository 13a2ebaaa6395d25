"""The number of threads of a program, and the size of a core's second-level cache.

A switch sets the number of threads; otherwise the affinity mask and the cgroup quota limit it.
Block sizes of matrix products depend on the cache; bits never do.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from runnel.core import switches

LIMIT: Final = switches.MOST_THREADS  # slots in the team's control block
_QuotaReader = Callable[[Path], "float | None"]


def count() -> int:
    """Return the number of threads of a program, at least 1."""
    if switches.num_threads.value > 0:
        return min(switches.num_threads.value, LIMIT)
    allowed = [LIMIT, affinity_count()]
    quota = cgroup_cpus()
    if quota is not None:
        allowed.append(math.ceil(quota))
    return max(1, min(allowed))


def affinity_count() -> int:
    """Return the number of CPUs this process may be scheduled on."""
    if hasattr(os, "sched_getaffinity"):
        try:
            return max(1, len(os.sched_getaffinity(0)))
        except OSError:
            pass
    return os.cpu_count() or 1


def cgroup_cpus(root: Path = Path("/")) -> float | None:
    """Return the tightest CPU quota, in CPUs, of this process's cgroup and those around it; None without one.

    Reads cgroup v2 (``cpu.max``) and v1 (``cpu.cfs_quota_us``), as the Linux kernel's documentation
    "admin-guide/cgroup-v2" and "scheduler/sched-bwc" describe them. ``root`` is the folder of ``/proc`` and ``/sys``.
    """
    quotas: list[float] = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        mount = root / "sys/fs/cgroup"
        if not controllers:
            quotas += _along(mount, path, _quota_v2)
        elif "cpu" in controllers.split(","):
            for name in dict.fromkeys(("cpu", controllers)):
                quotas += _along(mount / name, path, _quota_v1)
    return min(quotas, default=None)


def _along(mount: Path, path: str, quota_of: _QuotaReader) -> list[float]:
    """Return the quotas of the group at ``path`` and of its ancestors up to the mount."""
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    folders = [mount.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]
    return [quota for quota in map(quota_of, folders) if quota is not None]


def _quota_v2(folder: Path) -> float | None:
    words = _read(folder / "cpu.max").split()
    return _ratio(words[0], words[1]) if len(words) == 2 else None


def _quota_v1(folder: Path) -> float | None:
    return _ratio(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))


def _ratio(quota: str, period: str) -> float | None:
    """Return quota over period, or None where either is "max", -1, missing or invalid."""
    try:
        numbers = int(quota), int(period)
    except ValueError:
        return None
    return numbers[0] / numbers[1] if min(numbers) > 0 else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


DEFAULT: Final = 512 << 10  # bytes, where the system does not say
LEAST, MOST = 256 << 10, 4 << 20  # bytes that blocks are chosen for
_SYSTEM: Final = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20}


@functools.cache
def second_level() -> int:
    """Return bytes of this machine's cache, as a power of two from LEAST to MOST."""
    return usable(of_folder(_SYSTEM) or of_system() or DEFAULT)


def usable(size: int) -> int:
    """Return the largest power of two that is not above ``size``, clamped to LEAST and MOST."""
    return min(max(1 << size.bit_length() - 1, LEAST), MOST)


def of_folder(folder: Path) -> int:
    """Return the size by Linux's folder of caches; 0 if unknown."""
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
    """Return the size by the C library; 0 if unknown."""
    try:
        return max(os.sysconf("SC_LEVEL2_CACHE_SIZE"), 0)
    except (AttributeError, OSError, ValueError):
        return 0
