"""A table of memory planners: what each needs for the values of some training steps, and how long planning takes.

    python examples/memory_planners/table.py

The bytes of intermediate values; "at least" is the most that is alive at one moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from buddy import BUDDY
from pools import pools
from separate import separate

import runnel as rn
from runnel import memory, nn, optim

PLANNERS: dict[str, memory.MemoryPlanner] = {
    "search": memory.search,
    "best fit": memory.replay(memory.BestFit),
    "NNVM's pools": pools,
    "buddy": BUDDY,
    "separate": separate,
}


def mlp() -> tuple[nn.Module, tuple[int, ...]]:
    layers = [nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in ((256, 512), (512, 384), (384, 128), (128, 10))]
    return nn.Sequential(*layers), (64, 256)


def cnn() -> tuple[nn.Module, tuple[int, ...]]:
    layers: list[nn.Module] = []
    for a, b in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 16, 10)), (16, 3, 32, 32)


def encoder() -> tuple[nn.Module, tuple[int, ...]]:
    layers = [nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True) for _ in range(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 64, 10)), (8, 32, 64)


PROGRAMS: dict[str, Callable[[], tuple[nn.Module, tuple[int, ...]]]] = {"mlp": mlp, "cnn": cnn, "encoder": encoder}


class Timed:
    """A planner that remembers what it was asked, and how long it took."""

    def __init__(self, planner: memory.MemoryPlanner) -> None:
        self.planner = planner
        self.least = self.peak = 0
        self.seconds = 0.0

    def __call__(self, lifetimes: Sequence[memory.Lifetime]) -> Sequence[int]:
        begin = time.perf_counter()
        offsets = self.planner(lifetimes)
        self.seconds += time.perf_counter() - begin
        self.least = max(self.least, memory.most_alive(lifetimes)[0])
        self.peak = max(self.peak, *(at + x.nbytes for at, x in zip(offsets, lifetimes, strict=True)))
        return offsets


def planned(program: str, planner: memory.MemoryPlanner) -> tuple[Timed, float]:
    """How ``planner`` did for a training step, and the loss of that step."""
    rn.manual_seed(0)
    model, shape = PROGRAMS[program]()
    sgd, timed = optim.SGD(model.parameters(), lr=0.1), Timed(planner)
    rng = np.random.default_rng(0)
    x = rn.asarray(rng.standard_normal(shape).astype(np.float32))
    y = rn.asarray(rng.integers(0, 10, shape[0]))

    @rn.compile(memory_planner=timed)
    def step() -> rn.Tensor:
        sgd.zero_grad()
        loss = rn.cross_entropy(model(x), y)
        loss.backward()
        sgd.step()
        return loss

    return timed, step().item()


def main() -> None:
    for program in PROGRAMS:
        print(f"{program:14}{'bytes':>12}{'at least':>12}{'ratio':>8}{'seconds':>10}  loss")
        for name, planner in PLANNERS.items():
            timed, loss = planned(program, planner)
            ratio = timed.peak / timed.least
            print(f"  {name:12}{timed.peak:12}{timed.least:12}{ratio:8.3f}{timed.seconds:10.4f}  {loss!r}")


if __name__ == "__main__":
    main()
