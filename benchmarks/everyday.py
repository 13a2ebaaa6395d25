"""Everyday workloads in Runnel (compiled), PyTorch (eager) and JAX (jitted), interleaved in one run, as a table.

    python benchmarks/everyday.py --env torch=peers/torch/bin/python --env jax=peers/jax/bin/python
    python benchmarks/everyday.py gcn ppo --rounds 4 --threads 1

The networks are in ``workloads/``: Runnel and PyTorch run the same code. Every side is a process that stays alive, and
they take their turns for several rounds. *Best* is the fastest peer's best over Runnel's; *paired* is the median, over
the rounds, of the ratio to the peer that is harder by it. First calls are measured with an empty cache and with the
cache that this has left. Needs only the standard library; see README.md.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = Path(__file__).parent / "workloads"
SCRIPTS = {"runnel": "side.py", "torch": "side.py", "jax": "jax_side.py"}
PAUSE = 0.2  # until the threads of the turn before sleep


class Side:
    """A process that serves one workload."""

    def __init__(self, name: str, python: str, workload: str, options: argparse.Namespace, cache: str) -> None:
        variables = {**os.environ, "WORKLOADS_IN": name, "RUNNEL_CACHE_DIR": cache}
        variables.pop("PYTHONPATH", None)
        if name == "runnel":
            variables["PYTHONPATH"] = str(options.checkout)
        if options.threads:
            variables |= {"WORKLOADS_THREADS": str(options.threads), "RUNNEL_NUM_THREADS": str(options.threads)}
            if name == "jax" and options.threads == 1:
                variables["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        if options.cpu_time:
            variables["WORKLOADS_CLOCK"] = "cpu"
        self.name, self.timeout = name, options.timeout
        command = [python, str(WORKLOADS / SCRIPTS[name]), workload]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables
        )

    def read(self) -> dict[str, Any]:
        """Return the next line, or an error where the process ends or is silent for too long."""
        timer = threading.Timer(self.timeout, self.process.kill)
        timer.start()
        try:
            for line in self.process.stdout or ():
                if line.startswith("{"):
                    return dict(json.loads(line))
        finally:
            timer.cancel()
        last = (self.process.stderr.read() if self.process.stderr else "").strip().splitlines()[-1:]
        return {"error": last[0] if last else f"no answer after {self.timeout:g} s"}

    def turn(self, seconds: float) -> dict[str, Any]:
        if self.process.stdin and self.process.poll() is None:
            self.process.stdin.write(f"{seconds}\n")
            self.process.stdin.flush()
        return self.read()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def measured(workload: str, pythons: Mapping[str, str], options: argparse.Namespace) -> dict[str, Any]:
    """Measure a workload on every side: first calls, milliseconds turn by turn, errors."""
    result: dict[str, Any] = {"workload": workload, "first_s": {}, "ms": {}, "errors": {}}
    sides: list[Side] = []

    def start(name: str, label: str) -> Side:
        side = Side(name, pythons[name], workload, options, cache)
        line = side.read()
        if "error" in line:
            result["errors"][name] = line["error"]
        elif "first_s" in line:
            result["first_s"][label] = line["first_s"]
        return side

    with tempfile.TemporaryDirectory() as cache:
        try:
            if "runnel" in pythons:
                start("runnel", "runnel").end()
            labels = {name: "runnel, cached" if name == "runnel" else name for name in pythons}
            sides += [start(name, label) for name, label in labels.items()]
            alive = [side for side in sides if labels[side.name] in result["first_s"]]
            for number in range(options.rounds):
                for side in alive[number % len(alive) :] + alive[: number % len(alive)] if alive else ():
                    time.sleep(PAUSE)
                    line = side.turn(options.seconds)
                    if "ms" in line:
                        result["ms"].setdefault(side.name, []).append(line["ms"])
                    elif "error" in line:
                        result["errors"][side.name] = line["error"]
        finally:
            for side in sides:
                side.end()
    return {**result, **ratios(result["ms"])}


def ratios(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the ratio of the best times, and the median of the ratios turn by turn."""
    ours, peers = times.get("runnel"), [turns for name, turns in times.items() if name != "runnel"]
    if not ours or not peers:
        return {}
    paired = min(statistics.median(t / o for t, o in zip(turns, ours, strict=False)) for turns in peers)
    return {"best": min(map(min, peers)) / min(ours), "paired": paired}


def row(result: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    def cell(value: float | None) -> str:
        return "–" if value is None else f"{value:.4g}"

    times = ["failed" if n in result["errors"] else cell(min(result["ms"].get(n, [None]))) for n in names]
    first = [cell(result["first_s"].get(label)) for label in ("runnel", "runnel, cached")]
    return [f"`{result['workload']}`", *times, *(cell(result.get(key)) for key in ("best", "paired")), *first]


def printed(cells: Sequence[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def every_workload() -> list[str]:
    """Return the names in the lists of the modules, without importing them: they need a framework."""
    return [
        element.id
        for path in (WORKLOADS / f"{name}.py" for name in ("text", "images", "control", "science"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.DictComp)
        for element in getattr(node.generators[0].iter, "elts", ())
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help="all, unless named")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=PYTHON", help="a peer: torch or jax")
    parser.add_argument(
        "--environments", type=Path, default=Path("peers"), metavar="DIR", help="where they are, unless named"
    )
    parser.add_argument("--checkout", type=Path, default=ROOT, help="of Runnel (this one)")
    parser.add_argument("--runnel-only", action="store_true")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each turn")
    parser.add_argument("--threads", type=int, default=0, help="for every side (all cores)")
    parser.add_argument("--cpu-time", action="store_true", help="of each process, not of the clock on the wall")
    parser.add_argument("--timeout", type=float, default=300, help="seconds after which a side has failed")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    found = {name: options.environments / name / "bin" / "python" for name in ("torch", "jax")}
    peers = {name: str(path) for name, path in found.items() if path.exists()} | dict(
        e.split("=", 1) for e in options.env
    )
    pythons = {"runnel": sys.executable, **({} if options.runnel_only else peers)}
    unknown = set(options.workloads) - set(every_workload())
    if unknown:
        parser.error(f"no such workload: {', '.join(sorted(unknown))}")
    printed(["workload", *pythons, "best", "paired", "first call, s", "cached"])
    printed(["---", *["---:"] * (len(pythons) + 4)])
    results = []
    for workload in options.workloads or every_workload():
        results.append(measured(workload, pythons, options))
        printed(row(results[-1], list(pythons)))
        for name, text in results[-1]["errors"].items():
            print(f"{workload}, {name}: {text}", file=sys.stderr)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1) + "\n")
    for key in ("best", "paired"):
        values = [result[key] for result in results if key in result]
        print(f"Geometric mean, {key}: {mean(values):.2f} over {len(values)} workloads.")
    return int(any("runnel" in result["errors"] for result in results))


if __name__ == "__main__":
    raise SystemExit(main())
