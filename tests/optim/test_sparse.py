"""Gradients that name few rows: SparseAdam against its formula, other rows left alone, optimizers that refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops, optim
from runnel.core import switches

ROWS, WIDTH = 40, 9
RNG = np.random.default_rng(0)
BATCHES = [RNG.zipf(1.4, 12) % ROWS for _ in range(6)]
SEEDS = [RNG.standard_normal((12, WIDTH)).astype(np.float32) for _ in BATCHES]


def trained(kind: Any, how: str, threads: int = 2, **options: Any) -> tuple[nn.Embedding, optim.Optimizer]:
    rn.manual_seed(3)
    layer = nn.Embedding(ROWS, WIDTH, sparse=True)
    optimizer = kind(layer.parameters(), **options)

    def step(labels: Any, seed: Any) -> None:
        optimizer.zero_grad()
        rn.sum(layer(labels) * seed).backward()
        optimizer.step()

    with switches.override(num_threads=threads):
        run = step if how == "eager" else rn.compile(step)
        for labels, seed in zip(BATCHES, SEEDS, strict=True):
            run(rn.asarray(labels), rn.asarray(seed))
    return layer, optimizer


def sparse_adam(start: np.ndarray, lr: float, beta1: float, beta2: float, eps: float) -> np.ndarray:
    p, m, v = start.astype(np.float64), np.zeros(start.shape), np.zeros(start.shape)
    for t, (labels, seed) in enumerate(zip(BATCHES, SEEDS, strict=True), 1):
        g = np.zeros(p.shape)
        np.add.at(g, labels, seed)
        rows = np.unique(labels)
        m[rows] = beta1 * m[rows] + (1 - beta1) * g[rows]
        v[rows] = beta2 * v[rows] + (1 - beta2) * g[rows] ** 2
        p[rows] -= lr * np.sqrt(1 - beta2**t) / (1 - beta1**t) * m[rows] / (np.sqrt(v[rows]) + eps)
    return p


def start() -> np.ndarray:
    rn.manual_seed(3)
    return nn.Embedding(ROWS, WIDTH).weight.numpy()


def test_sparse_adam_is_its_formula() -> None:
    layer, optimizer = trained(optim.SparseAdam, "compiled", lr=0.05, betas=(0.8, 0.95), eps=1e-6)
    expected = sparse_adam(start(), 0.05, 0.8, 0.95, 1e-6)
    np.testing.assert_allclose(layer.weight.numpy(), expected, rtol=2e-5, atol=2e-6)
    unnamed = np.setdiff1d(np.arange(ROWS), np.concatenate(BATCHES))
    assert unnamed.size
    np.testing.assert_array_equal(layer.weight.numpy()[unnamed], start()[unnamed])
    for state in optimizer.state[layer.weight].values():
        assert not state.numpy()[unnamed].any()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (optim.SparseAdam, {}),
        (optim.SGD, {"lr": 0.1}),
        (optim.Adagrad, {"lr": 0.1}),
        (optim.SparseAdam, {"maximize": True}),
    ],
)
def test_every_way_of_running_gives_the_same_bits(kind: Any, options: dict[str, Any]) -> None:
    eager = trained(kind, "eager", **options)[0].weight.numpy()
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(trained(kind, "compiled", threads, **options)[0].weight.numpy(), eager)
    assert (eager != start()).any()


@pytest.mark.parametrize(
    ("kind", "options", "why"),
    [
        (optim.Adam, {}, "it changes every row"),
        (optim.AdamW, {}, "it changes every row"),
        (optim.RMSprop, {}, "it changes every row"),
        (optim.SGD, {"momentum": 0.9}, "its momentum changes every row"),
        (optim.SGD, {"weight_decay": 0.1}, "its weight_decay changes every row"),
        (optim.Adagrad, {"weight_decay": 0.1}, "its weight_decay changes every row"),
    ],
)
def test_refused(kind: Any, options: dict[str, Any], why: str) -> None:
    layer = nn.Embedding(4, 2, sparse=True)
    with pytest.raises(ValueError, match=rf"\[{kind.__name__}\] cannot update .* sparse: {why}. Use SparseAdam"):
        kind(layer.parameters(), **options)
    kind(nn.Embedding(4, 2).parameters(), **options)


def test_a_dense_gradient_is_never_stored() -> None:
    """The sums of rows are computed inside the update's kernel."""
    layer = nn.Embedding(300, 64)
    optimizer = optim.AdamW(layer.parameters())

    @rn.compile
    def step(labels: Any) -> None:
        optimizer.zero_grad()
        rn.sum(ops.square(layer(labels))).backward()
        optimizer.step()

    program = step.program(rn.asarray(np.arange(20) % 7))
    assert program.plan.arena.peak < 300 * 64 * 4


@pytest.mark.parametrize("kind", [optim.SparseAdam, optim.SGD, optim.Adagrad])
def test_rows_that_rest_are_passed_over(kind: Any) -> None:
    layer = nn.Embedding(300, 64, sparse=True)
    optimizer = kind(layer.parameters())

    @rn.compile
    def step(labels: Any) -> None:
        optimizer.zero_grad()
        rn.sum(ops.square(layer(labels))).backward()
        optimizer.step()

    program = step.program(rn.asarray(np.arange(20) % 7))
    assert program.plan.arena.peak < 300 * 64 * 4
    update = next(k for k in program.kernels if "segment_sums" in str(k) or "s0_first" in str(k))
    assert "for turn in 0..named" in str(update)
