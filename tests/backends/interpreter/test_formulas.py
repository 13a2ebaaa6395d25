"""Formulas that NumPy computes give the bits of the same formulas as machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.core.conversion import rounded
from runnel.core.dtypes import DType, bfloat16, float16, float32, float64, int32, int64, uint8
from tests.compiler.harness import same_bits

FLOATS = (float32, float64, float16, bfloat16)
UNARY = ("exp", "expm1", "log", "log1p", "log2", "tanh", "sigmoid", "erf", "sin", "cos", "sqrt")
BINARY = ("pow", "floor_divide", "remainder", "maximum", "minimum")


def numbers(dtype: DType, seed: int) -> np.ndarray:
    """Ordinary numbers, large and small ones, and every special case beside each other."""
    rng = np.random.default_rng(seed)
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -3.0, np.inf, -np.inf, np.nan, 1e-40, 1e-310, 1e5, 3e7, 1e300]
    samples = np.concatenate([rng.normal(size=60) * 4, np.exp(rng.uniform(-200, 200, 60)), rng.permutation(edges)])
    with np.errstate(all="ignore"):
        return np.asarray(rounded(samples * rng.choice([-1, 1], samples.size), dtype))


def on_both(function: Any, *arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    cpu, interpreter = (
        function(*(rn.tensor(a, device=device) for a in arrays)).numpy() for device in ("cpu", "interpreter")
    )
    return cpu, interpreter


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("name", UNARY)
def test_of_one_argument(name: str, dtype: DType) -> None:
    assert same_bits(*on_both(getattr(ops, name), numbers(dtype, 1)))


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("name", BINARY)
def test_of_two_arguments(name: str, dtype: DType) -> None:
    assert same_bits(*on_both(getattr(ops, name), numbers(dtype, 2), numbers(dtype, 3)))


@pytest.mark.parametrize("dtype", [int32, int64, uint8], ids=lambda d: d.name)
@pytest.mark.parametrize("name", [name for name in BINARY if name != "pow"])
def test_of_integers(name: str, dtype: DType) -> None:
    rng = np.random.default_rng(4)
    limits = np.iinfo(dtype.numpy)
    edges = np.array([limits.min, limits.max, 0, 1, limits.min + 1], dtype.numpy)
    x, y = (rng.permutation(np.concatenate([rng.integers(-9 if limits.min else 0, 9, 80).astype(dtype.numpy), edges]))
            for _ in range(2))  # fmt: skip
    assert same_bits(*on_both(getattr(ops, name), x, y))


@pytest.mark.parametrize("source", [*FLOATS, int64, uint8], ids=lambda d: d.name)
@pytest.mark.parametrize("dtype", [*FLOATS, int32, uint8], ids=lambda d: d.name)
def test_conversions(source: DType, dtype: DType) -> None:
    rng = np.random.default_rng(5)
    x = numbers(source, 6) if source.is_float else rng.integers(0, 200, 50).astype(source.numpy)
    assert same_bits(*on_both(lambda t: t.astype(dtype), x))
