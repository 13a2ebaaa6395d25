"""A model with everything on it and its trainer, for copies; importable, so that other processes find the classes."""

from __future__ import annotations

from typing import Any

import numpy as np

import runnel as rn
from runnel import nn, optim

PATIENCE = {"best": 3}


class Net(nn.Module):
    """Tied weights, a buffer, a frozen Parameter, a list of modules, and attributes of many kinds."""

    def __init__(self) -> None:
        self.first = nn.Linear(4, 4)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.3)) for _ in range(2)])
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.first.weight
        self.norm = nn.BatchNorm1d(4)
        self.frozen = nn.Parameter(np.full(4, 0.5, np.float32), requires_grad=False)
        self.register_buffer("mask", np.eye(4, dtype=np.float32), persistent=False)
        self.config = {"depth": 2, "sizes": [4, 4], "patience": PATIENCE, "names": ("a", "b")}
        self.table = np.arange(6.0).reshape(2, 3)
        self.also = self.blocks[0]
        self.generator = rn.Generator(9)
        self.infer = rn.compile(self.evaluate)

    def forward(self, x: Any) -> Any:
        x = self.first(x) @ self.mask
        for block in self.blocks:
            x = block(x)
        return self.norm(self.tied(x)) * self.frozen

    def evaluate(self, x: Any) -> Any:
        return self.first(x) * 2.0


class Trainer:
    """Model, optimizer, schedule and counters in one object; the step is compiled."""

    def __init__(self, kind: type[optim.Optimizer] = optim.Adam) -> None:
        rn.manual_seed(0)
        self.model = Net()
        self.optimizer = kind([p for p in self.model.parameters() if p.requires_grad], lr=0.05)  # type: ignore[call-arg]
        self.schedule = optim.StepLR(self.optimizer, 2, 0.5)
        self.epoch = 0
        self.best = float("inf")

    def update(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    compiled = rn.compile(update)

    def train(self, steps: int, compiled: bool) -> list[float]:
        """The losses of some steps on data of the epoch's number; the schedule goes on after each."""
        losses = []
        for _ in range(steps):
            numbers = np.random.default_rng(self.epoch)
            x, y = (rn.asarray(numbers.standard_normal((8, 4)).astype(np.float32)) for _ in range(2))
            losses.append(float(self.compiled(x, y) if compiled else self.update(x, y)))
            self.schedule.step()
            self.epoch += 1
        return losses


@rn.compile
def tripled(x: Any) -> Any:
    return x * 3.0


def doubled(x: Any) -> Any:
    return x * 2.0


renamed = rn.compile(doubled, name="another name", keep_grads=True)


def summed(model: Any, x: Any) -> float:
    """Compute in a worker process from the object sent to it."""
    return float(model(x).sum())
