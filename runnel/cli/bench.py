"""``runnel bench``: time one case, as one line of JSON. The cases are those of the peers' scripts in the comparison."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel import nn, ops, optim
from runnel.compile import compile
from runnel.core import switches
from runnel.inspection.peak import Peak
from runnel.runtime import threads
from runnel.tensor import random
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor

Step = Callable[[], Any]

# layers, batch, optimizer
NETWORKS: dict[str, tuple[tuple[int, ...], int, str]] = {
    "mlp_tiny_b8": ((4, 16, 16, 3), 8, "sgd"),
    "mlp_b32": ((784, 256, 128, 10), 32, "adam"),
    "mlp_b256": ((784, 1024, 1024, 10), 256, "adam"),
}
CASES = (*NETWORKS, "add")


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("case", choices=CASES, help="what to time")
    seconds = float(os.environ.get("SECONDS_PER_CASE", 4))
    command.add_argument("--seconds", type=float, default=seconds, help="how long to measure")
    command.add_argument("--threads", type=int, default=0, help="0: as many as the machine allows")
    command.add_argument("--eager", action="store_true", help="the eager step instead of the compiled one")
    command.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    with switches.override(num_threads=arguments.threads or switches.num_threads.value):
        step = addition() if arguments.case == "add" else training_step(arguments.case, arguments.eager)
        eager = arguments.eager or arguments.case == "add"
        peak = Peak(threads.count())
        peak.measure(0.1)
        line: dict[str, Any] = {
            "peer": "runnel",
            "case": arguments.case,
            "config": "eager" if eager else "compile",
            "threads": threads.count(),
            **measure(step, arguments.seconds),
        }
    if arguments.case in NETWORKS:
        line["gflops"] = round(multiplications(arguments.case) / line["best_ms"] / 1e6, 1)
        line["peak_gflops"] = round(peak.measure(0.3), 1)
        line["share_of_peak"] = round(line["gflops"] / line["peak_gflops"], 3)
    if arguments.json:
        print(json.dumps(line))
    else:
        print("\n".join(f"{name:10} {value}" for name, value in line.items()))
    return 0


def training_step(case: str, eager: bool) -> Step:
    """zero_grad, forward, loss, backward and the optimizer's step of a multilayer perceptron."""
    sizes, batch, kind = NETWORKS[case]
    random.manual_seed(0)
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    optimizer: optim.Optimizer
    if kind == "adam":
        optimizer = optim.Adam(model.parameters(), 1e-3)
    else:
        optimizer = optim.SGD(model.parameters(), 0.01, momentum=0.9)
    drawn = np.random.default_rng(0)
    x = asarray(drawn.standard_normal((batch, sizes[0])).astype(np.float32))
    y = asarray(drawn.integers(0, sizes[-1], batch))

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = ops.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    call: Callable[[Tensor, Tensor], Tensor] = step if eager else compile(step)
    return lambda: call(x, y)


def multiplications(case: str) -> int:
    """Floating-point operations of a step's matrix products: forward, by weights, by inputs (but the network's own)."""
    sizes, batch, _ = NETWORKS[case]
    products = [2 * batch * a * b for a, b in itertools.pairwise(sizes)]
    return 3 * sum(products) - products[0]


def addition() -> Step:
    """An eager sum of two vectors of 16 floats: what an op costs besides its arithmetic."""
    x = asarray(np.arange(16, dtype=np.float32))
    return lambda: ops.add(x, x)


def measure(step: Step, seconds: float) -> dict[str, float]:
    """Best and median of the calls made in ``seconds``, and the first. Quick steps are timed several at once, since
    reading the clock costs too."""
    start = time.perf_counter()
    step()
    first = time.perf_counter() - start
    for _ in range(3):
        step()
    start = time.perf_counter()
    step()
    together = max(1, math.floor(20e-6 / max(time.perf_counter() - start, 1e-7)))
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
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
