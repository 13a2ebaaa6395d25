"""Random recursive programs over random samples: values and gradients, batched and one sample after another.

``RUNNEL_FUZZ_UNEVEN=2000 pytest tests/fuzz/test_uneven.py`` runs as many.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import runnel as rn
from runnel import nn

PROGRAMS = int(os.environ.get("RUNNEL_FUZZ_UNEVEN", "4"))
WIDTH = 4


class Cell(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.linear = nn.Linear(inputs * WIDTH, 2 * WIDTH)

    def forward(self, *xs):
        a, b = rn.chunk(self.linear(rn.concat(xs)), 2)
        return rn.tanh(a) * rn.sigmoid(b)


class Program:
    """A function of a tree: which cell, op or reading each node applies depends on its number and kind."""

    def __init__(self, rng):
        self.cells = [Cell(count) for count in (1, 2, 3)]
        self.table, self.weight = nn.Embedding(9, WIDTH), nn.Parameter(rng.normal(size=WIDTH).astype(np.float32))
        self.kinds = rng.integers(0, 7, 6).tolist()
        self.looks = bool(rng.random() < 0.2)

    @property
    def parameters(self):
        return [self.weight, *(p for m in (self.table, *self.cells) for p in m.parameters())]

    def __call__(self, tree):
        x = self.of(tree)
        return (x * self.weight).sum(), {"root": x}

    def of(self, tree):
        if not isinstance(tree, tuple):
            return self.table(tree) if tree.dtype is rn.int64 else tree
        number, *children = tree
        xs = [self.of(child) for child in children]
        kind = self.kinds[number]
        if kind == 0:
            return rn.stack(xs).sum(0)
        if kind == 1:
            return rn.concat([xs[0][1:], xs[-1][:1]]) + self.weight
        if kind == 2:
            return rn.stack(xs).max(dim=0).values * 0.5
        if kind == 3 and self.looks and xs[0].sum().item() > 0:
            return -xs[0]
        used = xs if kind < 6 else xs[:1]
        return self.cells[len(used) - 1](*used) + xs[0]


def sample(rng, depth):
    if depth == 0 or rng.random() < 0.25:
        if rng.random() < 0.6:
            return rn.asarray(int(rng.integers(0, 9)))
        return rn.asarray(rng.normal(size=WIDTH).astype(np.float32))
    return int(rng.integers(0, 6)), *(sample(rng, depth - 1) for _ in range(rng.integers(1, 4)))


def compare(seed):
    rng = np.random.default_rng(seed)
    rn.manual_seed(seed)
    program = Program(rng)
    batched = rn.autobatch(lambda tree: program(tree))
    samples = [sample(rng, 4) for _ in range(rng.integers(1, 9))]
    answers = []
    for run in (batched.one_by_one, batched):
        losses, rest = run(samples)
        losses.sum().backward()
        answers.append((losses, rest["root"], [p.grad for p in program.parameters]))
        for p in program.parameters:
            p.grad = None
    (a, b, gradients), (c, d, of_batch) = answers
    np.testing.assert_array_equal(a.numpy(), c.numpy())
    np.testing.assert_array_equal(b.numpy(), d.numpy())
    for g, h in zip(gradients, of_batch, strict=True):
        if g is None:
            assert h is None or not abs(h).max().item()  # read only by values that lead to no result
        else:
            np.testing.assert_allclose(h.numpy(), g.numpy(), rtol=1e-4, atol=1e-5 * (1 + float(abs(g).max())))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs(seed):
    compare(seed)
