"""A vision transformer: digits as sixteen patches of four pixels each.

    python examples/gallery/vit.py [--quick] [--picture vit.png]

A. Dosovitskiy et al., "An image is worth 16×16 words", 2021: patches become tokens, a separate token collects what the
answer needs, and an encoder from `runnel.nn` attends.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from showing import run

import runnel as rn
from runnel import data, nn, optim
from runnel.nn import functional as F

PATCH, WIDTH, HEADS, BLOCKS, BATCH, TESTED = 2, 64, 4, 2, 64, 359
SIDE = 8 // PATCH


class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        self.patches = nn.Conv2d(1, WIDTH, PATCH, stride=PATCH)
        self.answer = nn.Parameter(rn.zeros(1, 1, WIDTH))
        self.places = nn.Parameter(0.02 * rn.randn(1, SIDE**2 + 1, WIDTH))
        block = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(block, BLOCKS)
        self.output = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10))

    def forward(self, images: rn.Tensor) -> rn.Tensor:
        tokens = self.patches(images).flatten(2).permute(0, 2, 1)
        tokens = rn.cat([self.answer.expand(len(images), 1, WIDTH), tokens], axis=1) + self.places
        return self.output(self.encoder(tokens)[:, 0])


def train(steps: int) -> dict[str, Any]:
    digits = data.digits()
    images = [x.reshape(-1, 1, 8, 8) for x in (digits.train_x, digits.test_x[:TESTED])]
    model = VisionTransformer()
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    order = np.random.default_rng(0)

    @rn.compile
    def step(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for _ in range(steps):
        chosen = order.integers(len(images[0]), size=BATCH)
        losses.append(float(step(rn.asarray(images[0][chosen]), rn.asarray(digits.train_y[chosen]))))
    model.eval()
    with rn.no_grad():
        answers = model(rn.asarray(images[1])).argmax(axis=1).numpy()
    return {
        "reached": {"loss": np.mean(losses[-50:]), "test accuracy": (answers == digits.test_y[:TESTED]).mean()},
        "images": images[1][:24, 0],
        "answers": answers[:24],
    }


def draw(axes: Any, images: np.ndarray, answers: np.ndarray) -> None:
    for number, (image, answer) in enumerate(zip(images, answers, strict=True)):
        left, top = 10 * (number % 6), 12 * (number // 6)
        axes.imshow(image, cmap="gray_r", extent=(left, left + 8, top + 8, top))
        axes.text(left + 4, top + 10.5, str(answer), ha="center", va="center", fontsize=9)
    axes.set(xlim=(0, 60), ylim=(48, 0))
    axes.set_axis_off()


if __name__ == "__main__":
    run(__doc__, train, steps=800, quick=10, draw=draw)
