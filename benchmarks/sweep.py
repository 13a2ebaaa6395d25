"""How much memory a process keeps of models that it has dropped: many in turn, with what stays after the first of them.

``python benchmarks/sweep.py --models 200 --first 10`` prints a row for each case: how much more there is after the last
model than after the first ones, in bytes of the process (resident set, after ``malloc_trim``), of tensors and programs
(the allocator's own count), of pages of machine code, and in Python objects; and how many of these objects each of some
more models leaves when the bounded caches are emptied. ``--json`` prints the same as one line.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import functools
import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import runnel as rn
from runnel import nn, optim
from runnel.backends.cpu import link
from runnel.backends.host import memory
from runnel.compile import cache
from runnel.core.errors import RunnelError
from runnel.nn import functional as F

ROWS, INPUTS, CLASSES = 32, 128, 10


def batch(rows: int = ROWS) -> tuple[rn.Tensor, rn.Tensor]:
    drawn = np.random.default_rng(rows)
    return rn.asarray(drawn.standard_normal((rows, INPUTS), np.float32)), rn.asarray(drawn.integers(0, CLASSES, rows))


def network(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(INPUTS, width), nn.ReLU(), nn.Dropout(0.1), nn.LayerNorm(width), nn.Linear(width, CLASSES)
    )


def train(width: int) -> None:
    """A model, its optimizer, a schedule and a compiled step."""
    model, (x, y) = network(width), batch()
    optimizer = optim.Adam(model.parameters(), 1e-3)
    schedule = optim.StepLR(optimizer, 1)

    @rn.compile
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step(x, y)
        schedule.step()


def same(i: int) -> None:
    """Models of one architecture."""
    train(256)


def widths(i: int) -> None:
    """Models of ever other widths."""
    train(128 + 8 * i)


def eager(i: int) -> None:
    """Training without compiling, and losses that nobody differentiates."""
    model, (x, y) = network(256), batch()
    optimizer = optim.SGD(model.parameters(), 0.1, momentum=0.9)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        F.cross_entropy(model(x), y)


class Trainer:
    def __init__(self) -> None:
        self.model = network(256)
        self.predict = rn.compile(self._predict)

    def _predict(self, x: Any) -> Any:
        return self.model(x).detach()


def methods(i: int) -> None:
    """Methods compiled on their objects, which refer to themselves by that."""
    trainer, (x, _) = Trainer(), batch()
    for _ in range(3):
        trainer.predict(x)


@rn.compile
def applied(model: Any, x: Any) -> Any:
    return model(x).detach()


def arguments(i: int) -> None:
    """One compiled function called with ever other models."""
    model, (x, _) = network(256), batch()
    for _ in range(3):
        applied(model, x)


def serve(i: int) -> None:
    """Models that serve, with their weights laid out ahead."""
    model, (x, _) = network(512).eval(), batch(4)
    model.requires_grad_(False)
    predict = rn.compile(lambda x: model(x))
    for _ in range(3):
        predict(x)


@rn.compile
def pure(x: Any) -> Any:
    return rn.softmax(x @ x.T, axis=-1)


def signatures(i: int) -> None:
    """One compiled function and ever other shapes: as many programs as a function keeps, and no more."""
    pure(rn.ones((8 + i, 8)))


def transforms(i: int) -> None:
    """Gradients, loops and checkpoints as closures over a Variable."""
    weight = rn.Variable(np.eye(16, dtype=np.float32), requires_grad=True)

    def looped(y: Any) -> Any:
        return rn.scan(lambda carry, row: (rn.tanh(carry @ weight + row), carry.sum()), y[0], y)[0].sum()

    for function in (looped, lambda y: rn.checkpoint(lambda z: rn.tanh(z @ weight), y).sum()):
        rn.grad(function)(rn.ones((8, 16)))
        rn.compile(lambda y, function=function: rn.grad(function)(y))(rn.ones((8, 16)))


def errors(i: int) -> None:
    """Errors while tracing."""
    model, (x, _) = network(256), batch()
    for wrong in (lambda x: model(x) @ rn.ones((3, 3)), lambda x: float(model(x).sum())):
        try:
            rn.compile(wrong)(x)
        except RunnelError:
            continue


def sources(i: int) -> None:
    """Functions of ever new source text."""
    namespace: dict[str, Any] = {"rn": rn, "model": network(256)}
    exec(f"step = rn.compile(lambda x: model(x).detach() * {i})", namespace)
    namespace["step"](batch()[0])


CASES: dict[str, Callable[[int], None]] = {
    f.__name__: f
    for f in (same, widths, eager, methods, arguments, serve, signatures, transforms, errors, sources)
}  # fmt: skip


def taken() -> dict[str, int]:
    """Return the memory that the process holds; memory that only waits to be used again is freed first."""
    for _ in range(3):  # what goes may let go of more
        gc.collect()
    memory.trim()
    ctypes.CDLL(None).malloc_trim(0)
    resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096
    held = memory.statistics().live
    return {
        "resident": resident,
        "allocated": held,
        "code": link.statistics.nbytes,
        "programs": cache.size()[1],
        "objects": len(gc.get_objects()),
    }


def empty_caches() -> None:
    """Empty Runnel's caches and the bounded caches of its functions (types of arrays, strides)."""
    rn.clear_caches()
    for kept in gc.get_objects():
        if isinstance(kept, functools._lru_cache_wrapper) and kept.cache_info().maxsize is not None:
            kept.cache_clear()


def kinds() -> collections.Counter[str]:
    return collections.Counter(type(x).__name__ for x in gc.get_objects())


def swept(case: Callable[[int], None], models: int, first: int) -> dict[str, Any]:
    """How much more there is after ``models`` than after the ``first`` of them, and of which Python types."""
    for i in range(first):
        case(i)
    before, types = taken(), kinds()
    for i in range(first, models):
        case(i)
    after = taken()
    more = (kinds() - types).most_common(5)
    empty_caches()
    empty = taken()["objects"]
    for i in range(models, models + first):
        case(i)
    empty_caches()
    left = (taken()["objects"] - empty) / first
    return {name: after[name] - before[name] for name in before} | {"left": left, "types": dict(more)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--first", type=int, default=10)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.json:
        counted = f"{'programs':>10}{'objects':>9}{'left':>6}"
        print(f"{'case':<12}{'resident KB':>12}{'allocated KB':>14}{'code KB':>9}{counted}")
    rows = {}
    for name in options.cases:
        rows[name] = row = swept(CASES[name], options.models, options.first)
        if not options.json:
            sizes = f"{row['resident'] / 1024:>12.0f}{row['allocated'] / 1024:>14.1f}{row['code'] / 1024:>9.0f}"
            print(
                f"{name:<12}{sizes}{row['programs']:>10}{row['objects']:>9}{row['left']:>6.0f}  {row['types']}",
                flush=True,
            )
    if options.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
