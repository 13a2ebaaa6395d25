"""A U-Net: which pixels of a noisy picture belong to a disc?

    python examples/gallery/unet.py [--quick] [--picture unet.png]

O. Ronneberger, P. Fischer and T. Brox, "U-Net: convolutional networks for biomedical image segmentation", 2015. The
way down halves the picture and doubles the channels, the way up reverses that, and what was seen on the way down is
joined to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from showing import run, tiles

import runnel as rn
from runnel import nn, optim
from runnel.nn import functional as F

SIDE, CHANNELS, DEPTH, BATCH = 32, 16, 2, 16


def twice(inputs: int, outputs: int) -> nn.Sequential:
    """Two convolutions that keep the size."""
    first = nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()
    return nn.Sequential(*first, nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    def __init__(self) -> None:
        widths = [CHANNELS * 2**level for level in range(DEPTH + 1)]
        self.down = nn.ModuleList([twice(a, b) for a, b in zip([1, *widths], widths, strict=False)])
        self.widen = nn.ModuleList([nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1])])
        self.up = nn.ModuleList([twice(2 * w, w) for w in reversed(widths[:-1])])
        self.output = nn.Conv2d(CHANNELS, 1, 1)

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        passed = []
        for level, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if level else x)
            passed.append(x)
        passed.pop()
        for widen, block in zip(self.widen, self.up, strict=True):
            x = block(rn.cat([widen(x), passed.pop()], axis=1))
        return self.output(x)


def pictures(count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Noisy pictures of discs and stripes, and where the discs are."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    centre = generator.uniform(6, SIDE - 6, (2, count, 1, 1))
    radius = generator.uniform(3, 8, (count, 1, 1))
    inside = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < radius**2
    stripe = np.abs(columns - generator.uniform(0, SIDE, (count, 1, 1))) < 2
    noise = generator.normal(0, 0.4, (count, SIDE, SIDE))
    return ((inside | stripe) + noise)[:, None].astype(np.float32), inside[:, None].astype(np.float32)


def train(steps: int) -> dict[str, Any]:
    model = UNet()
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    generator = np.random.default_rng(0)

    @rn.compile
    def step(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(steps):
        step(*map(rn.asarray, pictures(BATCH, generator)))
    model.eval()
    x, y = pictures(64, generator)
    with rn.no_grad():
        marked = model(rn.asarray(x)).numpy() > 0
    overlap = (marked & (y > 0.5)).sum() / (marked | (y > 0.5)).sum()
    return {"reached": {"intersection over union": overlap}, "shown": np.concatenate([x[:6, 0], marked[:6, 0]])}


def draw(axes: Any, shown: np.ndarray) -> None:
    axes.imshow(tiles(shown.clip(0, 1), 6), cmap="gray")
    axes.set_axis_off()


if __name__ == "__main__":
    run(__doc__, train, steps=300, quick=5, draw=draw)
