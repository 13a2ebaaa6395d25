"""Random numbers: the known blocks of Philox, determinism, and moments far outside chance if they were wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import runnel.ops as ops
from runnel.core.dtypes import FLOATS, DType, float64
from runnel.core.errors import ShapeError
from runnel.loops import scalar
from runnel.ops.random import philox

from .values import ArrayValue, check_grad

KEY = ArrayValue(np.array([123, 456], np.uint32))

# the known answers published with the Random123 library of the paper's authors
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]  # fmt: skip


@pytest.mark.parametrize("counter, key, block", KNOWN)
def test_known_blocks(counter: Any, key: Any, block: Any) -> None:
    words = [np.array([w], np.uint32) for w in (*counter, *key)]
    actual = philox(
        tuple(words[:4]), (words[4], words[5]), np.uint32, np.add, np.multiply, scalar.mul_high.numpy, np.bitwise_xor
    )
    assert tuple(int(w[0]) for w in actual) == block


def test_numbers_depend_on_key_and_position_alone() -> None:
    flat = ops.random_bits(KEY, 24).array
    np.testing.assert_array_equal(ops.random_bits(KEY, (2, 3, 4)).array.reshape(-1), flat)
    np.testing.assert_array_equal(ops.random_bits(KEY, 10).array, flat[:10])
    keys = ops.split_key(KEY, 3).array
    drawn = [ops.random_bits(ArrayValue(k), 24).array for k in keys]
    drawn += [flat, *(ops.random_bits(ops.fold_in(KEY, n), 24).array for n in (0, 1, 1 << 40))]
    assert len({d.tobytes() for d in drawn}) == len(drawn)
    np.testing.assert_array_equal(ops.fold_in(KEY, 7).array, ops.fold_in(KEY, ArrayValue(np.array(7))).array)


def test_nearby_keys_folded_with_nearby_numbers_differ() -> None:
    seeds = [ArrayValue(np.array([s, 0], np.uint32)) for s in range(4)]
    keys = {ops.fold_in(k, n).array.tobytes() for k in seeds for n in range(4)}
    assert len(keys) == 16


def distance(probabilities: np.ndarray) -> float:
    """The statistic of Kolmogorov and Smirnov, of values for which a distribution function gives ``probabilities``."""
    steps = np.linspace(0, 1, probabilities.size + 1)
    ordered = np.sort(probabilities)
    return float(max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))


def test_distances_from_a_distribution() -> None:
    uniform = np.linspace(0, 1, 1001)
    assert distance(uniform) < 0.002
    assert distance(uniform * 0.9) > 0.09 and distance(uniform**1.2) > 0.05


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_fills_the_interval(dtype: DType) -> None:
    x = ops.uniform(KEY, 20000, dtype)
    assert x.dtype is dtype
    values = x.array.astype(np.float64)
    assert values.min() >= 0 and values.max() < 1
    assert distance(values) < 0.02
    moved = ops.uniform(KEY, 2000, dtype, -2.0, 3.0).array.astype(np.float64)
    assert -2 <= moved.min() < -1.9 and 2.9 < moved.max() <= 3


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_is_normal(dtype: DType) -> None:
    x = ops.normal(KEY, (100, 200), dtype, mean=1.0, std=2.0)
    assert x.dtype is dtype
    values = (x.array.astype(np.float64).reshape(-1) - 1) / 2
    assert np.isfinite(values).all()
    assert distance(scipy.special.ndtr(values)) < 0.02


def test_integers_and_coins() -> None:
    x = ops.randint(KEY, -3, 5, 8000).array
    counts = np.bincount(x + 3, minlength=8)
    assert counts.size == 8 and counts.min() > 850 and counts.max() < 1150
    assert abs(ops.bernoulli(KEY, 0.3, 20000).array.mean() - 0.3) < 0.02


def test_dropout_keeps_the_mean_and_passes_the_gradient() -> None:
    x = ArrayValue(np.ones((100, 100)))
    y = ops.dropout(x, KEY, 0.25).array
    assert set(np.unique(y)) == {0.0, 1 / 0.75}
    assert abs(y.mean() - 1) < 0.03
    assert ops.dropout(x, KEY, 0.0) is x
    assert not ops.dropout(x, KEY, 1.0).array.any()
    check_grad(lambda v: ops.dropout(v, KEY, 0.5), np.arange(6.0))


def test_a_key_is_two_words() -> None:
    with pytest.raises(ShapeError, match="a key is a uint32 array"):
        ops.random_bits(ArrayValue(np.zeros(2)), 3)
    with pytest.raises(ShapeError, match="must hold"):
        ops.randint(KEY, 3, 3)
    assert ops.uniform(KEY, (), float64).shape == ()
