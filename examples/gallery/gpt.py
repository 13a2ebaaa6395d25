"""A small GPT that learns to sort: six digits, then the same digits in order.

    python examples/gallery/gpt.py [--quick] [--picture gpt.png]

A. Radford et al., "Language models are unsupervised multitask learners", 2019. The model reads "5 2 0 2 1 4" and
writes "0 1 2 2 4 5", a digit at a time; the loss counts what it writes. `shakespeare_transformer.py` is the same on
text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from showing import run

import runnel as rn
from runnel import nn, optim
from runnel.nn import functional as F

LENGTH, SYMBOLS, WIDTH, HEADS, BLOCKS, BATCH, TESTED = 6, 8, 64, 4, 2, 128, 500
WINDOW = 2 * LENGTH - 1


class Block(nn.Module):
    def __init__(self) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.merge = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.dense = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        size, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(size, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(attended.permute(0, 2, 1, 3).reshape(size, length, WIDTH))
        return x + self.dense(self.norm2(x))


class GPT(nn.Module):
    def __init__(self) -> None:
        self.symbols, self.places = nn.Embedding(SYMBOLS, WIDTH), nn.Embedding(WINDOW, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm, self.output = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, SYMBOLS)

    def forward(self, tokens: rn.Tensor) -> rn.Tensor:
        x = self.symbols(tokens) + self.places(rn.arange(tokens.shape[1]))
        return self.output(self.norm(self.blocks(x)))


def problems(count: int, generator: np.random.Generator) -> np.ndarray:
    """Rows of digits and, behind them, the same in order."""
    digits = generator.integers(SYMBOLS, size=(count, LENGTH))
    return np.concatenate([digits, np.sort(digits, axis=1)], axis=1)


def train(steps: int) -> dict[str, Any]:
    model = GPT()
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    generator = np.random.default_rng(0)

    @rn.compile
    def step(rows: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        logits = model(rows[:, :-1])[:, LENGTH - 1 :]
        loss = F.cross_entropy(logits.flatten(0, 1), rows[:, LENGTH:].flatten())
        loss.backward()
        optimizer.step()
        return loss

    losses = [float(step(rn.asarray(problems(BATCH, generator)))) for _ in range(steps)]
    rows = problems(TESTED, generator)
    tokens = rn.asarray(rows[:, :LENGTH])
    for _ in range(LENGTH):
        tokens = rn.cat([tokens, model(tokens)[:, -1:].argmax(axis=-1)], axis=1)
    right = (tokens.numpy() == rows).all(axis=1).mean()
    return {"reached": {"rows sorted": right}, "losses": losses}


def draw(axes: Any, losses: list[float]) -> None:
    axes.semilogy(losses)
    axes.set(xlabel="step", ylabel="nats a digit")


if __name__ == "__main__":
    run(__doc__, train, steps=800, quick=20, draw=draw)
