"""A generative adversarial network: points on a ring of eight clouds, from noise.

    python examples/gallery/gan.py [--quick] [--picture gan.png]

I. Goodfellow et al., "Generative adversarial nets", 2014. One step trains both networks and is one program: the
discriminator on true and false points, then the generator through the discriminator that has just been changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from showing import run

import runnel as rn
from runnel import nn, optim
from runnel.nn import functional as F

NOISE, WIDTH, BATCH, CLOUDS = 8, 128, 256, 8
ANGLES = np.arange(CLOUDS) * 2 * np.pi / CLOUDS
CENTRES = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1).astype(np.float32)


def network(inputs: int, outputs: int) -> nn.Sequential:
    hidden = nn.Linear(inputs, WIDTH), nn.LeakyReLU(0.2), nn.Linear(WIDTH, WIDTH), nn.LeakyReLU(0.2)
    return nn.Sequential(*hidden, nn.Linear(WIDTH, outputs))


def clouds() -> rn.Tensor:
    """A batch of true points."""
    return rn.asarray(CENTRES)[rn.randint(0, CLOUDS, (BATCH,))] + 0.05 * rn.randn(BATCH, 2)


def train(steps: int) -> dict[str, Any]:
    generator, discriminator = network(NOISE, 2), network(2, 1)
    of_generator = optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.9))
    of_discriminator = optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.9))

    @rn.compile
    def step() -> tuple[rn.Tensor, rn.Tensor]:
        of_discriminator.zero_grad()
        false = generator(rn.randn(BATCH, NOISE)).detach()
        telling = F.softplus(-discriminator(clouds())).mean() + F.softplus(discriminator(false)).mean()
        telling.backward()
        of_discriminator.step()
        of_generator.zero_grad()
        fooling = F.softplus(-discriminator(generator(rn.randn(BATCH, NOISE)))).mean()
        fooling.backward()
        of_generator.step()
        return telling.detach(), fooling.detach()

    for _ in range(steps):
        step()
    points = generator(rn.randn(2000, NOISE)).numpy()
    distances = np.linalg.norm(points[:, None] - CENTRES, axis=2)
    close = distances.min(axis=1) < 0.25
    covered = np.unique(distances.argmin(axis=1)[close]).size
    return {"reached": {"clouds covered": covered, "points in a cloud": close.mean()}, "points": points}


def draw(axes: Any, points: np.ndarray) -> None:
    axes.scatter(*points.T, s=2, alpha=0.4)
    axes.scatter(*CENTRES.T, s=60, facecolors="none", edgecolors="tab:red")
    axes.set_aspect("equal")


if __name__ == "__main__":
    run(__doc__, train, steps=4000, quick=50, draw=draw)
