"""Timing for ``runnel bench``: many calls of a step, and first calls in new processes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from runnel.core.errors import RunnelError

Step = Callable[[], Any]


def measure(step: Step, seconds: float) -> dict[str, float]:
    """Best and median of the calls made in ``seconds`` (0: of one call), and the first. Quick steps are timed several
    at once, since reading the clock costs too."""
    warming, least = (3, 5) if seconds > 0 else (0, 1)
    start = time.perf_counter()
    step()
    first = time.perf_counter() - start
    for _ in range(warming):
        step()
    start = time.perf_counter()
    step()
    together = max(1, math.floor(20e-6 / max(time.perf_counter() - start, 1e-7)))
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(together):
            step()
        times.append((time.perf_counter() - start) / together)
    times.sort()
    return {
        "first_s": round(first, 3),
        "best_ms": round(times[0] * 1e3, 5),
        "median_ms": round(times[len(times) // 2] * 1e3, 5),
        "runs": len(times) * together,
    }


def first_calls(bench: Sequence[str]) -> dict[str, float]:
    """Seconds of the first call in a new process, without kernels on disk and with those of the process before.

    ``bench`` is a command line of ``runnel bench``; it is given an empty folder for its kernels.
    """
    root = Path(__file__).resolve().parents[2]
    seconds = {}
    with tempfile.TemporaryDirectory(prefix="runnel-first-") as folder:
        paths = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "RUNNEL_CACHE_DIR": folder, "RUNNEL_CACHE": "1", "PYTHONPATH": paths}
        command = [sys.executable, "-m", "runnel.cli", "bench", *bench, "--seconds", "0", "--json"]
        for name in ("first_cold_s", "first_warm_s"):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RunnelError(f"[bench] a process of its own failed: {done.stderr.strip().splitlines()[-1]}")
            seconds[name] = json.loads(done.stdout.splitlines()[-1])["first_s"]
    return seconds
