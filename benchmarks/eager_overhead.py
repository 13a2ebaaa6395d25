"""The cost of an eager op besides its arithmetic: microseconds of single ops and small compositions, beside PyTorch.

    python benchmarks/eager_overhead.py [--torch peers/torch/bin/python] [--rounds 5] [--seconds 0.2] [--shapes 2000]

Each round is a process of each library in turn, with one thread; a figure is the best of many short blocks of calls, so
that other work on the machine counts as little as possible. ``shapes`` is a call of ``x + x`` with a shape that never
occurred before, and ``grown`` says by how many KB the process grew over the later half of these.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parents[1]
Step = Callable[[], Any]


def loaded(library: str) -> tuple[Any, Any, Callable[[np.ndarray], Any]]:
    """The package, its ``nn``, and the function that makes an array its own; on one thread."""
    package = importlib.import_module(library)
    if library == "torch":
        package.set_num_threads(1)
        return package, package.nn, package.from_numpy
    return package, package.nn, package.asarray


def cases(library: str) -> dict[str, Step]:
    """The programs, which read the same in both libraries."""
    package, nn, own = loaded(library)
    functional = nn.functional
    rng = np.random.default_rng(0)
    x, y, m = (own(rng.random(shape, np.float32)) for shape in (16, 16, (8, 8)))
    p = nn.Parameter(own(rng.random(16, np.float32)))
    logits, labels = own(rng.random((32, 10), np.float32)), own(rng.integers(0, 10, 32))
    rows, weight, bias = (
        own(rng.random((8, 16), np.float32)),
        own(np.ones(16, np.float32)),
        own(np.zeros(16, np.float32)),
    )

    def chain() -> None:
        p.grad = None
        ((p * x + y) * x).sum().backward()

    return {
        "x + y": lambda: x + y,
        "x * 2.0": lambda: x * 2.0,
        "m @ m": lambda: m @ m,
        "relu(x)": lambda: functional.relu(x),
        "x.sum()": lambda: x.sum(),
        "x[3]": lambda: x[3],
        "x[1:3]": lambda: x[1:3],
        "x.reshape(4, 4)": lambda: x.reshape(4, 4),
        "p + x, recorded": lambda: p + x,
        "backward of ((p * x + y) * x).sum()": chain,
        "cross_entropy(logits, labels)": lambda: functional.cross_entropy(logits, labels),
        "layer_norm(rows)": lambda: functional.layer_norm(rows, (16,), weight, bias),
        "a training step of mlp_b32": training(package, nn, own, rng),
    }


def training(package: Any, nn: Any, own: Callable[[np.ndarray], Any], rng: np.random.Generator) -> Step:
    """The eager step of the case ``mlp_b32`` of ``runnel bench``."""
    network = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = package.optim.Adam(network.parameters(), 1e-3)
    x, y = own(rng.random((32, 784), np.float32)), own(rng.integers(0, 10, 32))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x), y).backward()
        optimizer.step()

    return step


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


def measured(library: str, seconds: float, count: int) -> dict[str, float]:
    """All figures of one library, in this process."""
    figures = {name: best(step, seconds) for name, step in cases(library).items()}
    figures["shapes"], figures["grown, KB"] = shapes(library, count)
    return figures


def alone(python: str, library: str, seconds: float, count: int) -> dict[str, float]:
    """Do the same in a separate process."""
    paths = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "RUNNEL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    command = [python, str(Path(__file__).resolve()), "--one", library]
    command += ["--seconds", str(seconds), "--shapes", str(count)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter that has PyTorch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each program and round")
    parser.add_argument("--shapes", type=int, default=2000, help="how many new shapes")
    parser.add_argument("--one", choices=("runnel", "torch"), help="measure one library in this process; print JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.seconds, options.shapes)))
        return 0
    sides = {"runnel": sys.executable} | ({"torch": options.torch} if options.torch else {})
    least: dict[str, dict[str, float]] = {library: {} for library in sides}
    for _ in range(options.rounds):
        for library, python in sides.items():
            for name, figure in alone(python, library, options.seconds, options.shapes).items():
                least[library][name] = min(least[library].get(name, float("inf")), figure)
    print(f"| µs | {' | '.join(sides)} |\n| --- |{' ---: |' * len(sides)}")
    for name in least["runnel"]:
        print(f"| `{name}` | {' | '.join(f'{figures[name]:.2f}' for figures in least.values())} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
