"""Work is in proportion to the sum of the lengths: counted operations of the plans of compiled functions."""

from __future__ import annotations

from typing import Any

import numpy as np

import runnel as rn
from runnel import nn


def flops(function: Any, x: Any) -> float:
    with rn.no_grad():
        return float(rn.compile(function).program(x).schedule.flops)


def test_a_transformer_computes_no_padding() -> None:
    rn.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True)

    def pooled(x: Any) -> Any:
        return layer(x).mean(1)

    rng = np.random.default_rng(0)

    def batch(*lengths: int) -> rn.Ragged:
        return rn.ragged([rng.normal(size=(n, 32)).astype(np.float32) for n in lengths])

    even, uneven = flops(pooled, batch(16, 16, 16, 16)), flops(pooled, batch(61, 1, 1, 1))
    assert uneven == even
    padded = flops(pooled, batch(61, 1, 1, 1).padded())
    assert 3 < padded / uneven < 6
    assert 1.9 < flops(pooled, batch(32, 32, 32, 32)) / even < 2.5


def test_a_gru_computes_no_padding() -> None:
    rn.manual_seed(0)
    layer = nn.GRU(8, 16, batch_first=True)
    rng = np.random.default_rng(0)

    def batch(*lengths: int) -> rn.Ragged:
        return rn.ragged([rng.normal(size=(n, 8)).astype(np.float32) for n in lengths])

    def states(x: Any) -> Any:
        return layer(x)[0].sum(1)

    even, uneven = flops(states, batch(16, 16, 16, 16)), flops(states, batch(61, 1, 1, 1))
    assert uneven == even and flops(states, batch(61, 1, 1, 1).padded()) > 3 * uneven


def test_a_network_without_attention_is_linear_in_the_total() -> None:
    rn.manual_seed(0)
    model = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))

    def scores(tokens: Any) -> Any:
        return model(tokens).mean(1)

    short, long = (flops(scores, rn.ragged([np.arange(n) % 50 for n in lengths])) for lengths in ((9, 1), (90, 10)))
    assert 9 < long / short < 11
