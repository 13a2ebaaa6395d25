"""The cost of the checks of a call: a step of a Trainer with a model, an optimizer, a data set, a history and a figure.

    python benchmarks/guards.py [--blocks 200] [--programs [PATTERN]]

``model`` calls the optimizer's step on a module alone; ``trainer`` does the same as a method of an object, and writes a
counter and a history. ``checks`` is the generated code of the guard as calls have it while the state version stands
still, ``all`` the guard after a tick, ``call`` a whole call. Microseconds, the best of many short blocks.

``--programs`` measures the everyday programs of tests/compile/programs instead, those that run as programs and whose
names contain PATTERN: ``checks`` and ``all`` as above, ``call`` and ``90 %`` the median and the 90th percentile of
calls while the program's state goes on, with the number of traces. The most expensive come first.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import statistics
import sys
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import runnel as rn
from runnel import nn, optim

BLOCK = 500  # calls
ROOT = Path(__file__).resolve().parent.parent
CALLS = 128  # of an everyday program


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
    """Return the guard as a separate function."""
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


def everyday(pattern: str) -> dict[str, str]:
    """Return the programs of tests/compile/programs that must run without a warning, by name."""
    sys.path.append(str(ROOT))
    sources = {}
    for path in sorted((ROOT / "tests/compile/programs").glob("test_*.py")):
        module = importlib.import_module(f"tests.compile.programs.{path.stem}")
        for table in vars(module).values():
            rows = table if isinstance(table, list) else []
            found = {row.id: row.values[0] for row in rows if hasattr(row, "values") and not row.marks}
            sources.update({name: one.source for name, one in found.items() if one.eager is None and pattern in name})
    return sources


def costs(source: str) -> tuple[float, float, float, float, int]:
    """Return the columns of a program."""
    from tests.compile import stories

    world = types.ModuleType("user_program")
    sys.modules["user_program"] = world
    exec(stories._NAMES, vars(world))
    vars(world).update(tensor=stories.tensor)
    exec(source, vars(world))
    function = vars(world)["step"]
    step = rn.compile(function)
    arguments = vars(world).get("arguments", lambda _: (stories.tensor(1.0, -2.0, 3.0),))
    times, fast, slow = [], [], []
    for number in range(CALLS):
        args = arguments(number)
        if number > CALLS // 2 and isinstance(function, types.FunctionType):
            for one in step.executables():
                if one.native is not None and one.guard.holds(function, args, {}) is not None:
                    for kept, is_fast in ((fast, True), (slow, False)):
                        check = checks(one.guard, is_fast)
                        kept.append(min(timed(check, function, args, {}) for _ in range(20)))
                    break
        times.append(timed(step, *args))
    steady = sorted(times[CALLS // 2 :])
    known = [statistics.median(kept) if kept else float("nan") for kept in (fast, slow)]
    return *known, statistics.median(steady), steady[len(steady) * 9 // 10], step.statistics["traces"]


def timed(call: Callable[..., Any], *args: Any) -> float:
    """Microseconds of one call; a program that raises is timed up to there."""
    begin = time.perf_counter()
    with contextlib.suppress(Exception):
        call(*args)
    return (time.perf_counter() - begin) * 1e6


def measure_programs(pattern: str) -> None:
    rows = []
    for name, source in everyday(pattern).items():
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows.append((name, *costs(source)))
    rows.sort(key=lambda row: -row[4])
    print(f"{'':<48} {'checks':>8} {'all':>8} {'call':>8} {'90 %':>8} {'traces':>6}")
    for name, fast, slow, call, late, traces in rows:
        print(f"{name:<48} {fast:8.2f} {slow:8.2f} {call:8.2f} {late:8.2f} {traces:6}")
    known = sorted(row[1] for row in rows if row[1] == row[1])
    over = sum(one > 10 for one in known)
    ninety = known[len(known) * 9 // 10]
    print(f"checks of {len(known)} programs: median {statistics.median(known):.2f}, 90 % {ninety:.2f}, {over} over 10")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--programs", nargs="?", const="", metavar="PATTERN")
    options = parser.parse_args()
    blocks = options.blocks
    rn.manual_seed(0)
    if options.programs is not None:
        measure_programs(options.programs)
        return
    print(f"{'':<10} {'lines':>6} {'checks':>8} {'all':>8} {'call':>8}")
    step = alone()
    measure("model", step, step, (), blocks)
    trainer = Trainer()
    measure("trainer", trainer.step, Trainer.step, (trainer,), blocks)


if __name__ == "__main__":
    main()
