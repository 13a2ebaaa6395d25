"""What the checks of a call cost: a step of a Trainer with a model, an optimizer, a data set, a history and a figure.

    python benchmarks/guards.py [--blocks 200]

``model`` calls the optimizer's step on a module alone; ``trainer`` does the same as a method of an object, and writes a
counter and a history. ``checks`` is the generated code of the guard as calls have it while the state version stands
still, ``all`` the guard after a tick, ``call`` a whole call. Microseconds, the best of many short blocks.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as rn
from runnel import nn, optim

BLOCK = 500  # calls


class Trainer:
    """All that hangs on ``self`` in an ordinary program; the step reads a part of it."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
        self.optimizer = optim.AdamW(self.model.parameters(), lr=1e-3)
        self.data = np.zeros((10_000, 16), np.float32)
        self.history: list[float] = []
        self.figure = object()
        self.settings = {"smoothing": 0.1, "clip": None}
        self.steps = 0

    def step(self, x: Any, labels: Any) -> Any:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), labels, label_smoothing=self.settings["smoothing"])
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        self.history.append(loss.detach())
        return loss.detach()


def alone() -> Callable[..., Any]:
    """The same step without a Trainer."""
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)

    def step(x: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def best(blocks: int, call: Callable[[], Any]) -> float:
    """Microseconds of a call in the best block."""
    times = []
    for _ in range(blocks):
        begin = time.perf_counter()
        for _ in range(BLOCK):
            call()
        times.append(time.perf_counter() - begin)
    return min(times) / BLOCK * 1e6


def checks(guard: Any, fast: bool) -> Any:
    """The guard as a function of its own."""
    lines = "\n".join(f"    {line}" for line in guard.lines(fast, "None"))
    space = dict(guard.namespace)
    exec(f"def check(fn, args, kwargs):\n{lines}\n    return True", space)
    return space["check"]


def measure(name: str, step: Callable[..., Any], function: Any, first: tuple[Any, ...], blocks: int) -> None:
    x, labels = rn.asarray(np.ones((8, 16), np.float32)), rn.asarray(np.zeros(8, np.int64))
    compiled = rn.compile(step)
    for _ in range(20):
        compiled(x, labels)
    guard = next(one for one in compiled.executables() if one.guard.holds(function, (*first, x, labels), {})).guard
    empty = best(blocks, lambda: None)
    row = [name, str(guard.reads + guard.checks)]
    for fast in (True, False):
        check = checks(guard, fast)
        assert check(function, (*first, x, labels), {})
        row.append(f"{best(blocks, lambda check=check: check(function, (*first, x, labels), {})) - empty:.2f}")
    print(f"{row[0]:<10} {row[1]:>6} {row[2]:>8} {row[3]:>8} {best(blocks, lambda: compiled(x, labels)) - empty:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=200)
    blocks = parser.parse_args().blocks
    rn.manual_seed(0)
    print(f"{'':<10} {'lines':>6} {'checks':>8} {'all':>8} {'call':>8}")
    step = alone()
    measure("model", step, step, (), blocks)
    trainer = Trainer()
    measure("trainer", trainer.step, Trainer.step, (trainer,), blocks)


if __name__ == "__main__":
    main()
