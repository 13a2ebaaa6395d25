"""``runnel bench``: time one case, and first calls in new processes."""

from __future__ import annotations

import argparse
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

import numpy as np

from runnel import ops
from runnel.backends.host import threads
from runnel.cli.bench_cases import CASES, Prepared
from runnel.compile import compile
from runnel.core import switches
from runnel.core.errors import RunnelError
from runnel.inspection.machine import Peak
from runnel.inspection.memory import MemoryReport
from runnel.tensor.creation import asarray

Step = Callable[[], Any]


def measure(step: Step, seconds: float) -> dict[str, float]:
    """Return the best and median time of the calls made in ``seconds`` (0: of one call), and the first.

    Quick steps are timed several at once, because reading the clock costs too.
    """
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
    """Return the time of the first call in a new process, without kernels on disk and with them, in seconds.

    ``bench`` is a command line of ``runnel bench``; it runs with an empty folder for kernels.
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
                raise RunnelError(f"[bench] a new process failed: {done.stderr.strip().splitlines()[-1]}")
            seconds[name] = json.loads(done.stdout.splitlines()[-1])["first_s"]
    return seconds


ADDITION = "add"

EXAMPLES = (
    ("runnel bench mlp_b32", "the time of a training step, and how near the machine's peak it is"),
    ("runnel bench cnn_b64 --threads 1 --seconds 10", "on one thread, measured for ten seconds"),
    ("runnel bench mlp_b32 --first-call --json", "first calls in new processes, too; a line of JSON"),
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("case", choices=(*CASES, ADDITION), help="what to time")
    seconds = float(os.environ.get("SECONDS_PER_CASE", 4))
    command.add_argument("--seconds", type=float, default=seconds, help="how long to measure")
    command.add_argument("--threads", type=int, default=0, help="0: as many as the machine allows")
    command.add_argument("--eager", action="store_true", help="the eager step instead of the compiled one")
    command.add_argument("--first-call", action="store_true", help="time the first call in new processes too")
    command.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    with switches.override(num_threads=arguments.threads or switches.num_threads.value):
        line = timed_addition(arguments) if arguments.case == ADDITION else timed(arguments)
    if arguments.first_call:
        options = ["--eager"] if arguments.eager else []
        line |= first_calls([arguments.case, "--threads", str(arguments.threads), *options])
    if arguments.json:
        print(json.dumps(line))
    else:
        width = max(map(len, line))
        print("\n".join(f"{name:{width}} {value}" for name, value in line.items()))
    return 0


def timed(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the results for a network's step."""
    case, peak = CASES[arguments.case].prepared(), Peak(threads.count())
    peak.measure(0.1)
    compiled = compile(case.step)
    call = case.step if arguments.eager else compiled
    line = {**heading(arguments.case, arguments.eager), **measure(lambda: call(*case.data), arguments.seconds)}
    gflops, highest = case.flops / line["best_ms"] / 1e6, peak.measure(0.3)
    line |= {"gflops": round(gflops, 1), "peak_gflops": round(highest, 1), "share_of_peak": round(gflops / highest, 3)}
    return line if arguments.eager else line | memory(case, compiled.program(*case.data).memory)


def memory(case: Prepared, report: MemoryReport) -> dict[str, int]:
    """Return the bytes that the plan needs for intermediate values, and for everything besides weights and inputs."""
    weights = sum(parameter.nbytes for parameter in case.network.parameters())
    beside = report.total - report.inputs - min(weights, report.variables)
    return {"planned_bytes": report.peak, "lower_bound_bytes": report.lower_bound, "bytes_beside_weights": beside}


def timed_addition(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the results for an eager sum of two vectors of 16 floats, the overhead of an op."""
    x = asarray(np.arange(16, dtype=np.float32))
    return {**heading(ADDITION, True), **measure(lambda: ops.add(x, x), arguments.seconds)}


def heading(case: str, eager: bool) -> dict[str, Any]:
    config = "eager" if eager else "compile"
    return {"peer": "runnel", "case": case, "config": config, "threads": threads.count()}
