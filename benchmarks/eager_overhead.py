"""The cost of an eager op besides its arithmetic: microseconds of the programs of ``eager_programs.py``, in Runnel, in
its names of PyTorch, and in PyTorch.

    python benchmarks/eager_overhead.py [--torch peers/torch/bin/python] [--rounds 5] [--seconds 0.1] [--only TEXT]

Each round is a process of each library in turn, with one thread; a figure is the best of many short blocks of calls, so
that other work on the machine counts as little as possible. ``shapes`` is a call of ``x + x`` with a shape that never
occurred before, and ``grown`` says by how many KB the process grew over the later half of these.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from eager_programs import Step, loaded, programs

HERE = Path(__file__).resolve().parents[1]
OURS = ("runnel", "runnel.compat.torch")


def best(step: Step, seconds: float) -> float:
    """Microseconds of a call, in the best of the blocks that fit into ``seconds``; a block takes about 0.1 ms."""
    for _ in range(20):
        step()
    begun = time.perf_counter()
    step()
    calls = max(1, int(1e-4 / max(time.perf_counter() - begun, 1e-7)))
    least, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun = time.perf_counter()
        for _ in range(calls):
            step()
        least = min(least, (time.perf_counter() - begun) / calls)
    return least * 1e6


def shapes(library: str, count: int) -> tuple[float, float]:
    """Microseconds of a call of ``x + x`` with ever other shapes, and by how many KB the process grew in the end."""
    _, _, own = loaded(library)
    arrays = [own(np.ones((1 + i % 150, 1 + i // 150), np.float32)) for i in range(count)]
    took, before = 0.0, 0
    for i, x in enumerate(arrays):
        if i == count // 2:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begun = time.perf_counter()
        x + x
        took += time.perf_counter() - begun
    return took / count * 1e6, float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def measured(library: str, seconds: float, count: int, only: str) -> dict[str, float]:
    """All figures of one library, in this process."""
    figures = {name: best(step, seconds) for name, step in programs(library).items() if only in name}
    if count:
        figures["shapes"], figures["grown, KB"] = shapes(library, count)
    return figures


def alone(python: str, library: str, options: argparse.Namespace) -> dict[str, float]:
    """Do the same in a separate process."""
    paths = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "RUNNEL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    command = [python, str(Path(__file__).resolve()), "--one", library, "--only", options.only]
    command += ["--seconds", str(options.seconds), "--shapes", str(options.shapes)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter that has PyTorch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each program and round")
    parser.add_argument("--shapes", type=int, default=2000, help="how many new shapes")
    parser.add_argument("--only", default="", help="measure only programs whose names contain this")
    parser.add_argument("--one", choices=(*OURS, "torch"), help="measure one library in this process; print JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.seconds, options.shapes, options.only)))
        return 0
    sides = dict.fromkeys(OURS, sys.executable) | ({"torch": options.torch} if options.torch else {})
    least: dict[str, dict[str, float]] = {library: {} for library in sides}
    for _ in range(options.rounds):
        for library, python in sides.items():
            for name, figure in alone(python, library, options).items():
                least[library][name] = min(least[library].get(name, float("inf")), figure)
    show(least)
    return 0


def show(least: dict[str, dict[str, float]]) -> None:
    """Print the table, with the ratio of the slower of Runnel's sides to PyTorch, and its geometric mean."""
    peer = least.get("torch")
    print(f"| µs | {' | '.join(least)} |{' ratio |' if peer else ''}\n| --- |{' ---: |' * (len(least) + bool(peer))}")
    ratios: list[float] = []
    for name in least["runnel"]:
        row = [f"{figures[name]:.2f}" for figures in least.values()]
        if peer and name != "grown, KB":
            ratios.append(max(least[library][name] for library in OURS) / peer[name])
            row.append(f"{ratios[-1]:.2f}")
        print(f"| `{name}` | {' | '.join(row)} |")
    if ratios:
        print(f"\nGeometric mean of {len(ratios)} ratios: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")


if __name__ == "__main__":
    sys.exit(main())
