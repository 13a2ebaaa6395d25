"""Embedding and EmbeddingBag beyond the cases recorded from PyTorch: padding, an empty bag, errors."""

from __future__ import annotations

import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import ShapeError


def test_padding_starts_as_zero_and_stays() -> None:
    layer = nn.Embedding(5, 3, padding_idx=-3)
    assert layer.padding_idx == 2
    assert not layer.weight.numpy()[2].any()
    layer.weight.assign(layer.weight.value + 1)
    layer(rn.asarray([[0, 2, 2, 4], [1, 2, 0, 0]])).sum().backward()
    assert layer.weight.grad.tolist() == [[n] * 3 for n in (3.0, 1.0, 0.0, 0.0, 1.0)]


def test_an_empty_bag_has_no_maximum() -> None:
    layer = nn.EmbeddingBag(3, 2, mode="max", padding_idx=1)
    assert layer(rn.asarray([[1, 1]])).tolist() == [[0.0, 0.0]]


def test_refused() -> None:
    with pytest.raises(TypeError, match="weight must be a Variable for max_norm"):
        nn.functional.embedding(rn.asarray([0]), rn.ones((3, 2)), max_norm=1.0)
    with pytest.raises(ValueError, match="padding_idx must be one of the 3 rows; got 3"):
        nn.Embedding(3, 2, padding_idx=3)
    with pytest.raises(ValueError, match="got 'median'"):
        nn.EmbeddingBag(3, 2, mode="median")
    with pytest.raises(ShapeError, match="without offsets"):
        nn.EmbeddingBag(3, 2)(rn.asarray([0, 1]))
    with pytest.raises(ShapeError, match="per_sample_weights must have the shape"):
        nn.EmbeddingBag(3, 2, mode="max")(rn.asarray([0, 1]), rn.asarray([0]), rn.ones(2))
