"""A training step whose backward() is called outside the compiled forward, beside the same step compiled whole.

    python benchmarks/apart.py mlp_b32 cnn_b64 encoder_b8_t128 --rounds 50

The two take turns in one process, some steps each (a step of the one is news to the other, which looks at everything
again); the best step counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as rn
from runnel import ops
from runnel.cli.bench_cases import CASES, training
from runnel.core import switches

TURN = 10  # steps


def made(name: str) -> tuple[Any, Any, tuple[Any, ...]]:
    """The network of a case, its optimizer and its data."""
    case = CASES[name]
    if case.y is None or case.optimizer is None:
        raise SystemExit(f"{name} is not trained; choose a case that is.")
    rn.manual_seed(0)
    network, rng = case.network(), np.random.default_rng(0)
    return network, case.optimizer(network.parameters()), tuple(rn.asarray(draw(rng)) for draw in (case.x, case.y))


def whole(name: str) -> Callable[[], Any]:
    network, optimizer, data = made(name)
    step = rn.compile(training(network, optimizer))
    return lambda: step(*data)


def apart(name: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Forward and backward; and the optimizer's step, which is a program too."""
    network, optimizer, data = made(name)
    loss_of = rn.compile(lambda x, y: ops.cross_entropy(network(x), y))

    def gradients() -> None:
        optimizer.zero_grad()
        loss_of(*data).backward()

    return gradients, optimizer.step


def seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+", choices=[name for name, case in CASES.items() if case.optimizer])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--threads", type=int, default=0, help="0: as many as the machine allows")
    arguments = parser.parse_args()
    with switches.override(num_threads=arguments.threads or switches.num_threads.value):
        for name in arguments.cases:
            step, (gradients, update) = whole(name), apart(name)
            best = [float("inf")] * 3
            for number in range(arguments.rounds // TURN + 1):
                one = [seconds(step) for _ in range(TURN)]
                other = [(seconds(gradients), seconds(update)) for _ in range(TURN)]
                if number:  # at first something is traced or bound again
                    taken = min(one), min(g for g, _ in other), min(g + u for g, u in other)
                    best = [min(pair) for pair in zip(best, taken, strict=True)]
            shown = ", ".join(f"{1e3 * x:.4g} ms" for x in best)
            ratios = ", ".join(f"{x / best[0]:.3f}" for x in best[1:])
            print(f"{name}: whole, forward and backward, with the optimizer: {shown}; ratios {ratios}")


if __name__ == "__main__":
    main()
