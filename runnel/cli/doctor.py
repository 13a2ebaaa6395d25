"""``runnel doctor``: check the machine, the packages, the cache and the speed, and advise what to do."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from runnel.backends.host import objects, threads
from runnel.backends.host.own_folder import open_own_folder
from runnel.compile.compiled import compile
from runnel.core import switches
from runnel.core.errors import RunnelError
from runnel.core.records import asdict, record
from runnel.inspection import machine, schedule, tables
from runnel.inspection.machine import Peak
from runnel.tensor.creation import asarray

FINE, WARNING, PROBLEM = "ok", "warning", "problem"
LEAST: Final = {"numpy": "2.2", "llvmlite": "0.45", "ml_dtypes": "0.5"}  # as pyproject.toml says
EXTRAS: Final = {
    "rich": "progress bars: extra demo",
    "sklearn": "the digits of the demo: extra demo",
    "PIL": "images in files: extra data",
    "pyarrow": "tables in files: extra data",
    "matplotlib": "pictures of the gallery: extra gallery",
    "einops": "runnel.compat.einops: extra einops",
    "tensorboard": "shows event files",
}
_PORTS: Final = 2  # units for multiply-adds of vectors in a core of today
_POOR: Final = 0.5  # of what is expected
_SLOW_MEMORY: Final = 3e9  # bytes a second and thread, below which something is wrong
_LITTLE_SPACE: Final = 1 << 28


@record
class Finding:
    """The result of a check. ``advice`` says what to do, or is empty."""

    topic: str
    state: str
    text: str
    advice: str = ""
    figures: dict[str, Any] | None = None


Check = Callable[[], Iterator[Finding]]


def versions() -> Iterator[Finding]:
    """Check Python and the required packages."""
    named = {name: _version(name) for name in ("runnel", *LEAST)}
    wrong = [f"'{name}>={least}'" for name, least in LEAST.items() if _numbers(named[name]) < _numbers(least)]
    text = f"Python {platform.python_version()}, " + ", ".join(f"{n} {v or '(none)'}" for n, v in named.items())
    advice = f"pip install {' '.join(wrong)}" if wrong else ""
    yield Finding("versions", PROBLEM if wrong else FINE, text, advice, {"python": sys.version.split()[0], **named})
    there = [name for name in EXTRAS if importlib.util.find_spec(name)]
    absent = [f"{name} ({what})" for name, what in EXTRAS.items() if name not in there]
    yield Finding("extras", FINE, f"{', '.join(there) or 'none'}; not installed: {', '.join(absent) or 'none'}")


def processor() -> Iterator[Finding]:
    """Check the machine, and the instruction set of programs."""
    physical, logical = cores()
    figures = {"processor": model_name(), "cores": physical, "cpus": logical, "architecture": platform.machine()}
    counts = f"{_counted(physical, 'core')}, {_counted(logical, 'CPU')} for this process"
    text = f"{model_name()}, {counts}, {platform.machine()}"
    yield Finding("machine", FINE, text, "", figures)
    target = schedule.in_force()
    best = next(iter(schedule.runnable()), "")
    chosen = {"target": target.name, "best": best}
    if not best:
        yield Finding(
            "target", PROBLEM, f"{target.name}: this processor runs none of {', '.join(schedule.NAMES)}",
            "Use rn.device('interpreter'), or a processor with AVX2 or NEON.", chosen,
        )  # fmt: skip
    elif target.name != best:
        yield Finding(
            "target",
            WARNING,
            f"{target.name}, though {best} runs here",
            f"Unset {schedule.VARIABLE} to use {best}.",
            chosen,
        )
    else:
        yield Finding("target", FINE, f"{target.name}, the best one that runs here", "", chosen)


def team() -> Iterator[Finding]:
    """Compare the number of threads of a program with the available CPUs."""
    count, allowed, quota = threads.count(), threads.affinity_count(), threads.cgroup_cpus()
    load = os.getloadavg()[0]
    figures = {"threads": count, "allowed": allowed, "quota": quota, "load": load}
    limit = f", of which a quota allows {quota:g}" if quota is not None else ""
    text = f"{count} a program; allowed: {_counted(allowed, 'CPU')}{limit}; load {load:.1f}"
    if count > allowed:
        advice = f"Set {switches.num_threads.variable}={allowed}, or unset it: threads without a CPU hold up the rest."
        yield Finding("threads", WARNING, text, advice, figures)
    elif load > 1.2 * allowed and count > 1:
        advice = f"Other programs run; fewer threads ({switches.num_threads.variable}=1) may be quicker."
        yield Finding("threads", WARNING, text, advice, figures)
    else:
        yield Finding("threads", FINE, text, "", figures)


def cache_folder() -> Iterator[Finding]:
    """Check that the folder of compiled kernels is used, trusted, writable and not full."""
    if not switches.cache.value:
        advice = f"Unset {switches.cache.variable}, so that later processes start in tenths of a second."
        yield Finding("cache", WARNING, "off: each process compiles again", advice)
        return
    cache = objects.current()
    if cache is None:
        yield Finding("cache", PROBLEM, "no folder: this user has no home", f"Set {switches.cache_dir.variable}.")
        return
    figures: dict[str, Any] = {"folder": str(cache.folder), "limit": cache.limit}
    elsewhere = f"or set {switches.cache_dir.variable} to another folder of yours"
    try:
        os.close(open_own_folder(cache.folder, create=True))
    except PermissionError as error:
        yield Finding(
            "cache", PROBLEM, f"{cache.folder}: {error.strerror}", f"Fix its permissions, {elsewhere}.", figures
        )
        return
    except OSError as error:
        yield Finding("cache", PROBLEM, f"{cache.folder}: {error.strerror}", f"Fix it, {elsewhere}.", figures)
        return
    if not _keeps(cache):
        yield Finding(
            "cache", PROBLEM, f"{cache.folder}: what is written there cannot be read again",
            f"Free some space, {elsewhere}.", figures,
        )  # fmt: skip
        return
    used = sum(entry.stat().st_size for entry in os.scandir(cache.folder) if entry.is_file(follow_symlinks=False))
    free = shutil.disk_usage(cache.folder).free
    figures |= {"bytes": used, "free": free}
    text = f"{cache.folder}: private, writable, {tables.size(used)} of {tables.size(cache.limit)}"
    if free < _LITTLE_SPACE:
        text += f"; {tables.size(free)} are free on its disk"
        yield Finding("cache", WARNING, text, f"Free some space, {elsewhere}.", figures)
    else:
        yield Finding("cache", FINE, text, "", figures)


def _keeps(cache: objects.ObjectCache) -> bool:
    """Return True if a stored entry is found again."""
    key, body = secrets.token_hex(32), secrets.token_bytes(64)
    cache.put(key, body)
    try:
        return cache.get(key) == body
    finally:
        cache.drop(key)


def programs() -> Iterator[Finding]:
    """Check that a compiled program computes the same as NumPy."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 64, 64)).astype(np.float32)
    before = objects.statistics.compiled

    @compile
    def product(x: Any, w: Any) -> Any:
        return (x @ w).relu().sum()

    value = product(asarray(x), asarray(w)).item()
    expected = float(np.maximum(x.astype(np.float64) @ w, 0).sum())
    is_right = abs(value - expected) <= 1e-4 * abs(expected)
    compiled = objects.statistics.compiled - before
    text = f"a product of matrices is right; {compiled} kernels compiled" if is_right else f"{value} and not {expected}"
    advice = "" if is_right else "Please report it with the output of runnel doctor --json."
    yield Finding("programs", FINE if is_right else PROBLEM, text, advice, {"value": value, "expected": expected})


def rates() -> Iterator[Finding]:
    """Measure arithmetic and memory, and compare with expectations."""
    target, count = schedule.in_force(), threads.count()
    hertz = clock()
    lanes = target.vector_bytes // 4
    physical = min(count, cores()[0])
    peak = Peak(count)
    measured = machine.measured(count)
    flops = max(measured.flops, peak.measure(0.05) * 1e9)
    expected = None if hertz is None else hertz * lanes * 2 * _PORTS * physical
    share = None if expected is None else flops / expected
    figures = {"flops": flops, "expected": expected, "threads": count}
    text = f"{flops / 1e9:.0f} GF/s on {count} threads"
    if share is not None and hertz is not None:
        text += f", {share:.0%} of what {_counted(physical, 'core')} at {hertz / 1e9:.1f} GHz can do"
    poor = share is not None and share < _POOR
    advice = "Is the machine busy, throttled, or shared? Measure again when nothing else runs." if poor else ""
    yield Finding("arithmetic", WARNING if poor else FINE, text, advice, figures)
    size, read, write = measured.levels[-1]
    near_size, near, _ = measured.levels[0]
    slow = read < _SLOW_MEMORY * min(count, 2)
    text = (
        f"{read / 1e9:.1f} GB/s read and {write / 1e9:.1f} GB/s written in {tables.size(size)}; "
        f"{near / 1e9:.0f} GB/s read in {tables.size(near_size)}"
    )
    advice = "Other programs may use the memory; measure again when nothing else runs." if slow else ""
    figures = {"read": read, "write": write, "bytes": size, "read_cached": near}
    yield Finding("memory", WARNING if slow else FINE, text, advice, figures)


CHECKS: Final[tuple[Check, ...]] = (versions, processor, team, cache_folder, programs, rates)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def model_name() -> str:
    """Return the name of the processor."""
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cores() -> tuple[int, int]:
    """Return (physical cores, logical CPUs) available to this process."""
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    groups = set()
    for cpu in cpus:
        siblings = _lines(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        groups.add(siblings[0] if siblings else str(cpu))
    return len(groups), len(cpus)


def clock() -> float | None:
    """Return the processor's highest clock in Hz according to Linux, else the current one, else None."""
    highest = _lines("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    if highest and highest[0].isdigit():
        return float(highest[0]) * 1e3
    now = [float(x.partition(":")[2]) for x in _lines("/proc/cpuinfo") if x.startswith("cpu MHz")]
    return max(now) * 1e6 if now else None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _numbers(version: str | None) -> tuple[int, ...]:
    """Return the first two numbers of a version, none for a package that is missing."""
    return tuple(int(part) for part in (version or "").split(".")[:2] if part.isdigit())


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


EXAMPLES = (
    ("runnel doctor", "look at everything; takes about a second"),
    ("runnel doctor --json", "the same for programs, and for reports of faults"),
    ("runnel doctor && python train.py", "go on only if nothing is broken: the exit status is 1 for a problem"),
)
_SIGNS = {FINE: "ok     ", WARNING: "warning", PROBLEM: "PROBLEM"}


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    findings: list[Finding] = []
    for check in CHECKS:
        try:
            for finding in check():
                findings.append(finding)
                if not arguments.json:
                    _show(finding)
        except (RunnelError, OSError) as error:
            findings.append(Finding(check.__name__, PROBLEM, f"the check failed: {error}"))
            if not arguments.json:
                _show(findings[-1])
    problems = sum(finding.state == PROBLEM for finding in findings)
    if arguments.json:
        print(json.dumps({"problems": problems, "findings": [asdict(finding) for finding in findings]}))
    else:
        warnings = sum(finding.state == WARNING for finding in findings)
        print(f"{_counted(problems, 'problem')}, {_counted(warnings, 'warning')}")
    return int(problems > 0)


def _show(finding: Finding) -> None:
    print(f"{_SIGNS[finding.state]}  {finding.topic:<10}  {finding.text}", flush=True)
    if finding.advice:
        print(f"{'':9}{'':12}→ {finding.advice}", flush=True)
