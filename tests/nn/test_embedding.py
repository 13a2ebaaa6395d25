"""Embedding and EmbeddingBag against NumPy: values, gradients, padding, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import ShapeError

LABELS = np.array([[0, 2, 2, 4], [1, 2, 0, 0]])


def table_of(layer: nn.Embedding | nn.EmbeddingBag) -> np.ndarray:
    return layer.weight.numpy().astype(np.float64)


def gradient_of(layer: nn.Embedding | nn.EmbeddingBag, result: rn.Tensor, seed: np.ndarray) -> np.ndarray:
    layer.weight.grad = None
    rn.sum(result * rn.asarray(seed)).backward()
    return layer.weight.grad.numpy()


def test_padding_begins_as_zero_and_stays() -> None:
    layer = nn.Embedding(5, 3, padding_idx=-3)
    assert layer.padding_idx == 2
    assert not layer.weight.numpy()[2].any()
    layer.weight.assign(layer.weight.value + 1)
    seed = np.random.default_rng(0).standard_normal((2, 4, 3)).astype(np.float32)
    result = layer(rn.asarray(LABELS))
    np.testing.assert_array_equal(result.numpy(), layer.weight.numpy()[LABELS])
    expected = np.zeros((5, 3), np.float32)
    np.add.at(expected, LABELS[LABELS != 2], seed[LABELS != 2])
    np.testing.assert_array_equal(gradient_of(layer, result, seed), expected)


@pytest.mark.parametrize("padding", [None, 0])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_that_are_rows(mode: str, padding: int | None) -> None:
    layer = nn.EmbeddingBag(5, 3, mode=mode, padding_idx=padding)
    rows = [table_of(layer)[[label for label in bag if label != padding]] for bag in LABELS]
    expected = np.stack([getattr(np, mode)(bag, 0) for bag in rows])
    result = layer(rn.asarray(LABELS))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6, atol=1e-6)
    seed = np.random.default_rng(1).standard_normal(expected.shape).astype(np.float32)
    slopes = np.zeros((5, 3))
    for bag, labels, g in zip(rows, LABELS, seed, strict=True):
        for label in labels[labels != padding]:
            row = table_of(layer)[label]
            chosen = (row == bag.max(0)) / (bag == bag.max(0)).sum(0) if mode == "max" else np.ones(3)
            slopes[label] += g * chosen / (len(bag) if mode == "mean" else 1)
    np.testing.assert_allclose(gradient_of(layer, result, seed), slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_by_offsets(mode: str) -> None:
    """The third bag is empty, and the last label of the second is padding."""
    layer = nn.EmbeddingBag(6, 3, mode=mode, padding_idx=5)
    labels, offsets = np.array([1, 2, 0, 3, 5, 4]), np.array([0, 2, 5, 5])
    parts = [labels[a:b] for a, b in zip(offsets, [*offsets[1:], None], strict=True)]
    rows = [table_of(layer)[part[part != 5]] for part in parts]
    expected = [getattr(np, mode)(r, 0) if len(r) else np.zeros(3) for r in rows]
    result = layer(rn.asarray(labels), rn.asarray(offsets))
    np.testing.assert_allclose(result.numpy(), np.stack(expected), rtol=1e-6, atol=1e-6)
    compiled = rn.compile(layer.forward)(rn.asarray(labels), rn.asarray(offsets))
    np.testing.assert_array_equal(compiled.numpy(), result.numpy())


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
