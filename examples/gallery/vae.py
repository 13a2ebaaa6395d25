"""A variational autoencoder: digits on a plane, and digits drawn from the plane.

    python examples/gallery/vae.py [--quick] [--picture vae.png]

D. Kingma and M. Welling, "Auto-encoding variational Bayes", 2014. An encoder gives a normal distribution over two
numbers for an 8×8 image, a decoder the probability of ink for each pixel; the bound on the likelihood is maximized.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from showing import run, tiles

import runnel as rn
from runnel import data, nn, optim
from runnel.nn import functional as F

LATENT, WIDTH, BATCH = 2, 256, 128


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        self.encoder = nn.Sequential(nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2 * LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 64))

    def loss(self, x: rn.Tensor) -> rn.Tensor:
        """The negative bound in nats for one image: what decoding loses, and how far codes are from a unit normal."""
        mean, log_var = rn.chunk(self.encoder(x), 2, axis=-1)
        code = mean + rn.exp(0.5 * log_var) * rn.randn_like(mean)
        lost = F.binary_cross_entropy_with_logits(self.decoder(code), x, reduction="sum")
        distance = 0.5 * (rn.exp(log_var) + mean**2 - 1 - log_var).sum()
        return (lost + distance) / len(x)


def train(steps: int) -> dict[str, Any]:
    digits = data.digits()
    model = Autoencoder()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    order = np.random.default_rng(0)

    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss = model.loss(x)
        loss.backward()
        optimizer.step()
        return loss

    first = float(model.loss(rn.asarray(digits.test_x)))
    for _ in range(steps):
        step(rn.asarray(digits.train_x[order.integers(len(digits.train_x), size=BATCH)]))
    last = float(model.loss(rn.asarray(digits.test_x)))
    line = np.linspace(-2, 2, 12, dtype=np.float32)
    plane = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    images = rn.sigmoid(model.decoder(rn.asarray(plane))).numpy().reshape(-1, 8, 8)
    return {"reached": {"nats before": first, "nats after": last}, "images": images}


def draw(axes: Any, images: np.ndarray) -> None:
    axes.imshow(tiles(images, 12), cmap="gray_r")
    axes.set_axis_off()


if __name__ == "__main__":
    run(__doc__, train, steps=3000, quick=100, draw=draw)
