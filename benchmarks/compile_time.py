"""How long compiling takes: milliseconds an op of chains of several lengths, without kernels or programs on disk.

    python benchmarks/compile_time.py [--ops 1000 2000 5000 10000 20000] [--steps 1000 3000] [--rounds 3]

``chain``: random elementwise ops of two running values, as many as ``--ops`` says. ``gradient``: the gradient of
``--steps`` unrolled steps of ``sin``, each of which is three nodes of the graph. Each figure is the first call of a
separate process, without the import; best of the rounds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import runnel as rn

HERE = Path(__file__).resolve().parents[1]


def chain(count: int) -> Callable[[Any], Any]:
    rng = np.random.default_rng(1)
    draws = [(int(rng.integers(6)), float(np.float32(rng.uniform(0.5, 1.5))), rng.random() < 0.3) for _ in range(count)]

    def computed(x: Any) -> Any:
        y = x
        for which, number, moves_on in draws:
            before = x
            if which == 0:
                x = x * number
            elif which == 1:
                x = x + number
            elif which == 2:
                x = x - y
            elif which == 3:
                x = rn.maximum(x, y)
            elif which == 4:
                x = rn.abs(x)
            else:
                x = x * y
            y = before if moves_on else y
        return x

    return computed


def gradient(count: int) -> Callable[[Any], Any]:
    def unrolled(x: Any) -> Any:
        for _ in range(count):
            x = rn.sin(x)
        return x.sum()

    return rn.grad(unrolled)


KINDS = {"chain": chain, "gradient": gradient}


def measured(kind: str, count: int) -> float:
    """Seconds of the first call, in this process."""
    x = rn.asarray(np.random.default_rng(0).uniform(0.5, 1.5, 1000).astype(np.float32))
    compiled = rn.compile(KINDS[kind](count))
    begun = time.perf_counter()
    compiled(x)
    return time.perf_counter() - begun


def alone(kind: str, count: int) -> float:
    """Do the same in a separate process with an empty cache."""
    with tempfile.TemporaryDirectory(prefix="runnel-compile-") as folder:
        paths = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "RUNNEL_CACHE_DIR": folder, "PYTHONPATH": paths}
        command = [sys.executable, str(Path(__file__).resolve()), "--one", kind, str(count)]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", type=int, nargs="*", default=(1000, 2000, 5000, 10000, 20000))
    parser.add_argument("--steps", type=int, nargs="*", default=(1000, 3000))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("KIND", "COUNT"), help="measure in this process; print seconds")
    options = parser.parse_args()
    if options.one:
        print(measured(options.one[0], int(options.one[1])))
        return 0
    print("| what | ops | s | ms an op |\n| --- | ---: | ---: | ---: |")
    for kind, counts in (("chain", options.ops), ("gradient", options.steps)):
        for count in counts:
            least = min(alone(kind, count) for _ in range(options.rounds))
            print(f"| `{kind}` | {count} | {least:.2f} | {1e3 * least / count:.3f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
