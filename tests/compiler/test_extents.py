"""Extents are arguments of kernels: a program for another batch size or length runs machine code that is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.backends.host.objects import statistics
from runnel.core import switches

pytestmark = pytest.mark.suite


WORDS, WIDTH = 40, 24


class Attention(nn.Module):
    """Every kind of kernel whose extents a batch of sentences sets."""

    def __init__(self) -> None:
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.mix = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.dropout = nn.Dropout(0.1)
        self.out = nn.Linear(WIDTH, WORDS)

    def forward(self, words: Any) -> Any:
        x = self.norm(self.embedding(words))
        query, key, value = rn.split(self.mix(x), WIDTH, -1)
        weights = rn.softmax(query @ rn.permute(key, (0, 2, 1)) * WIDTH**-0.5, -1)
        return self.out(x + self.dropout(weights @ value))


def training_step() -> Any:
    rn.manual_seed(1)
    model = Attention()
    optimizer = optim.AdamW(model.parameters())

    @rn.compile
    def step(words: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        scores = model(words)
        loss = nn.functional.cross_entropy(rn.reshape(scores, (-1, WORDS)), rn.reshape(labels, (-1,)))
        loss.backward()
        optimizer.step()
        return loss

    return step


def sentences(rng: np.random.Generator, batch: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    words = rng.integers(0, WORDS, (batch, length + 1))
    return np.ascontiguousarray(words[:, :-1]), np.ascontiguousarray(words[:, 1:])


def kernels_made() -> int:
    return statistics.compiled + statistics.loaded


def test_other_lengths_compile_nothing() -> None:
    """Axes of size 1, sums of more than TILE_K products and sums of several blocks have separate kernels: these are
    met first."""
    rng = np.random.default_rng(0)
    step = training_step()
    with switches.override(verify=False):
        warm = [(1, 1), (1, 7), (7, 1), (3, 7), (20, 30), (1, 300), (300, 1), (29, 59)]
        for batch, length in warm:
            step(*sentences(rng, batch, length))
        before = kernels_made()
        shapes = {(int(rng.integers(1, 30)), int(rng.integers(1, 60))) for _ in range(24)}
        for batch, length in sorted(shapes):
            step(*sentences(rng, batch, length))
            assert kernels_made() == before, f"batch {batch}, length {length} needed a new kernel"
