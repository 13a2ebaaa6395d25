"""Diffusion: noise becomes a spiral, in a hundred small steps.

    python examples/gallery/diffusion.py [--quick] [--picture diffusion.png]

J. Ho, A. Jain and P. Abbeel, "Denoising diffusion probabilistic models", 2020. The network learns to tell the noise
that was mixed into a point; drawing takes a little of it away, again and again, in one program with a loop
(`rn.scan`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from showing import run

import runnel as rn
from runnel import nn, optim
from runnel.nn import functional as F

STEPS, WIDTH, BATCH = 100, 128, 256
BETA = np.linspace(1e-4, 0.1, STEPS, dtype=np.float32)
KEPT = np.cumprod(1 - BETA)  # the share of the point's variance that is left after each step


def spiral(count: int, generator: np.random.Generator) -> np.ndarray:
    angle = 3 * np.pi * np.sqrt(generator.uniform(0.05, 1, count))
    points = np.stack([angle * np.cos(angle), angle * np.sin(angle)], axis=1) / (3 * np.pi)
    return (2 * points + generator.normal(0, 0.03, (count, 2))).astype(np.float32)


class Noise(nn.Module):
    """The noise in a point, from the point and the time."""

    def __init__(self) -> None:
        self.time = nn.Embedding(STEPS, WIDTH)
        self.point = nn.Linear(2, WIDTH)
        self.dense = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH), nn.SiLU())
        self.output = nn.Linear(WIDTH, 2)

    def forward(self, x: rn.Tensor, time: rn.Tensor) -> rn.Tensor:
        return self.output(self.dense(self.point(x) + self.time(time)))


def train(steps: int) -> dict[str, Any]:
    model = Noise()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    beta, kept = rn.asarray(BETA), rn.asarray(KEPT)
    generator = np.random.default_rng(0)

    @rn.compile
    def step(points: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        time = rn.randint(0, STEPS, (len(points),))
        noise = rn.randn_like(points)
        share = kept[time][:, None]
        loss = F.mse_loss(model(rn.sqrt(share) * points + rn.sqrt(1 - share) * noise, time), noise)
        loss.backward()
        optimizer.step()
        return loss

    @rn.compile
    def sample(x: rn.Tensor) -> rn.Tensor:
        def backwards(x: rn.Tensor, time: rn.Tensor) -> tuple[rn.Tensor, rn.Tensor]:
            noise = model(x, time.expand(len(x)))
            x = (x - beta[time] / rn.sqrt(1 - kept[time]) * noise) / rn.sqrt(1 - beta[time])
            x = x + rn.where(time > 0, rn.sqrt(beta[time]), 0.0) * rn.randn_like(x)
            return x, x[:1]

        with rn.no_grad():
            return rn.scan(backwards, x, rn.arange(STEPS - 1, -1, -1))[0]

    losses = [float(step(rn.asarray(spiral(BATCH, generator)))) for _ in range(steps)]
    points, truth = sample(rn.randn(1000, 2)).numpy(), spiral(4000, generator)
    nearest = np.linalg.norm(points[:, None] - truth, axis=2).min(axis=1)
    return {"reached": {"loss": np.mean(losses[-100:]), "median distance": np.median(nearest)}, "points": points}


def draw(axes: Any, points: np.ndarray) -> None:
    axes.scatter(*points.T, s=3, alpha=0.5)
    axes.set_aspect("equal")


if __name__ == "__main__":
    run(__doc__, train, steps=4000, quick=20, draw=draw)
