"""How far the compiled functions are from the true values, in units in the last place, against the bounds they promise.

The oracle is NumPy in long double where that has 64 digits or more, which leaves the oracle's own error (about 0.001
ULP of a float64) aside; elsewhere float64 functions are held to the C library's float64 within one unit more. An error
is counted in units in the last place of the true value, so a half is the best there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import compiled

from runnel.core.dtypes import DType, bfloat16, float16, float32, float64
from runnel.loops import scalar
from runnel.loops.formulas.table import ULP_BOUNDS
from runnel.loops.scalar import ScalarOp

Array = np.ndarray[Any, Any]
Real = np.longdouble
SLACK = 0.01 if np.finfo(Real).nmant >= 63 else 1.0
UNARY = [op for op in ULP_BOUNDS if op.arity == 1]
EDGES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-30, -1e-30]


def erf(x: Array) -> Array:
    """2/√π·e^(-x²)·Σ 2ⁿ·x^(2n+1)/(2n+1)!!, a sum without cancellation (Abramowitz and Stegun, 7.1.6)."""
    a = np.minimum(np.abs(x), Real(7))
    term, total = a, a
    for n in range(1, 260):
        term = term * 2 * a * a / (2 * n + 1)
        total = total + term
    two_over_sqrt_pi = 2 / np.sqrt(np.arccos(Real(-1)))
    return np.copysign(total * np.exp(-a * a) * two_over_sqrt_pi, x)


def sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


TRUE: dict[ScalarOp, Callable[..., Array]] = {
    op: op.numpy for op in ULP_BOUNDS
} | {scalar.erf: erf, scalar.sigmoid: sigmoid}  # fmt: skip


def digits(dtype: DType) -> tuple[int, int]:
    info = np.finfo(dtype.numpy)
    return int(info.nmant), int(info.minexp)


def errors(actual: Array, true: Array, dtype: DType) -> Array:
    """Each value's error in units in the last place; infinite where a NaN, an infinity or a zero's sign is wrong."""
    mantissa, lowest = digits(dtype)
    with np.errstate(all="ignore"):
        rounded = true.astype(dtype.numpy)
        unit = np.ldexp(Real(1), np.maximum(np.frexp(np.abs(true))[1] - 1, lowest) - mantissa)
        ulps = np.abs(actual.astype(Real) - true) / unit
    special = ~np.isfinite(rounded) | ~np.isfinite(actual) | ((rounded == 0) & (actual == 0))
    agrees = (np.isnan(rounded) & np.isnan(actual)) | (
        (rounded == actual) & (np.signbit(rounded) == np.signbit(actual))
    )
    return np.where(special, np.where(agrees, 0.0, np.inf), ulps)


def worst(actual: Array, true: Array, dtype: DType, *arguments: Array) -> tuple[float, Any]:
    ulps = errors(actual, true, dtype)
    at = int(np.argmax(ulps))
    return float(ulps[at]), (*(x[at] for x in arguments), actual[at], true[at])


def region(op: ScalarOp) -> tuple[float, float]:
    """Where the function's values are neither trivial nor overflowing."""
    if op in (scalar.log, scalar.log2, scalar.sqrt):
        return 0.4, 3.0
    if op is scalar.log1p:
        return -1.0, 2.0
    return -12.0, 12.0


def float32_points(op: ScalarOp) -> Array:
    strided = np.arange(0, 1 << 32, 21467, dtype=np.uint64).astype(np.uint32).view(np.float32)
    info = np.finfo(np.float32)
    edges = np.array([*EDGES, info.max, -info.max, info.smallest_normal, info.smallest_subnormal], np.float32)
    dense = [np.linspace(*region(op), 100_000), np.linspace(-105, 90, 50_000)]
    return np.concatenate([strided, edges, *(x.astype(np.float32) for x in dense)])


def float64_points(op: ScalarOp) -> Array:
    rng = np.random.default_rng(3)
    any_bits = rng.integers(0, 1 << 64, 10_000, dtype=np.uint64).view(np.float64)
    magnitudes = np.exp2(rng.uniform(-60, 40, 10_000)) * rng.choice([-1, 1], 10_000)
    info = np.finfo(np.float64)
    edges = [*EDGES, info.max, -info.max, info.smallest_normal, info.smallest_subnormal]
    return np.concatenate(
        [any_bits, magnitudes, edges, rng.uniform(*region(op), 10_000), rng.uniform(-750, 712, 10_000)]
    )


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("op", UNARY, ids=str)
def test_error_of_unary_functions(op: ScalarOp, dtype: DType) -> None:
    x = float32_points(op) if dtype is float32 else float64_points(op)
    actual = compiled(op, (dtype,), dtype)(x)
    with np.errstate(all="ignore"):
        true = TRUE[op](x.astype(Real))
    error, where = worst(actual, true, dtype, x)
    assert error <= ULP_BOUNDS[op][dtype] + (SLACK if dtype is float64 else 0), where


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("op", [*ULP_BOUNDS], ids=str)
def test_one_lane_gives_the_bits_of_sixteen(op: ScalarOp, dtype: DType) -> None:
    x = float32_points(op)[::7] if dtype is float32 else float64_points(op)
    arguments = (x, x[::-1].copy())[: op.arity]
    signature = (dtype,) * op.arity
    one = compiled(op, signature, dtype, 1)(*arguments)
    many = compiled(op, signature, dtype, 16)(*arguments)
    assert np.array_equal(np.isnan(one), np.isnan(many))
    integers = f"u{dtype.itemsize}"
    assert np.array_equal(np.nan_to_num(one).view(integers), np.nan_to_num(many).view(integers))


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_error_of_pow(dtype: DType) -> None:
    rng = np.random.default_rng(4)
    size = 60_000
    bits = f"u{dtype.itemsize}"
    x = rng.integers(0, np.iinfo(bits).max, size, bits, endpoint=True).view(dtype.numpy)
    x[::3] = np.exp2(rng.uniform(-2, 2, x[::3].size))
    x[::7] = 1 + rng.normal(size=x[::7].size) * 1e-4
    with np.errstate(all="ignore"):
        reach = np.log2(np.abs(x.astype(np.float64)))
        y = (rng.uniform(-1, 1, size) * 1080 / np.where(reach == 0, 1, reach)).astype(dtype.numpy)
        y[::2] = np.rint(y[::2])
        true = np.power(x.astype(Real), y.astype(Real))
    actual = compiled(scalar.pow_, (dtype, dtype), dtype)(x, y)
    error, where = worst(actual, true, dtype, x, y)
    assert error <= ULP_BOUNDS[scalar.pow_][dtype] + (SLACK if dtype is float64 else 0), where


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_special_cases_of_pow(dtype: DType) -> None:
    info = np.finfo(dtype.numpy)
    values = [
        *EDGES,
        3.0,
        -3.0,
        0.75,
        -0.5,
        -2.0,
        1e5 + 1,
        -1e5 - 1,
        info.max,
        -info.max,
        info.smallest_subnormal,
        2.0**60,
    ]
    x, y = (a.ravel().astype(dtype.numpy) for a in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(Real)
    actual = compiled(scalar.pow_, (dtype, dtype), dtype)(x, y)
    error, where = worst(actual, expected, dtype, x, y)
    assert error <= ULP_BOUNDS[scalar.pow_][dtype] + 1, where


@pytest.mark.parametrize("op", [scalar.sin, scalar.cos], ids=str)
def test_angles_close_to_multiples_of_a_quarter_turn(op: ScalarOp) -> None:
    """6381956970095103·2^797 is the float64 closest to a multiple of π/2 (J.-M. Muller, "Elementary Functions")."""
    quarter = np.arange(1, 3_000_000, 997, dtype=np.float64) * (math.pi / 2)
    x = np.concatenate([[math.ldexp(6381956970095103.0, 797)], quarter, -quarter])
    for dtype in (float32, float64):
        points = x[1:].astype(np.float32) if dtype is float32 else x
        actual = compiled(op, (dtype,), dtype)(points)
        error, where = worst(actual, TRUE[op](points.astype(Real)), dtype, points)
        assert error <= ULP_BOUNDS[op][dtype] + (SLACK if dtype is float64 else 0), where


@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=str)
@pytest.mark.parametrize("op", UNARY, ids=str)
def test_all_values_of_the_halves(op: ScalarOp, dtype: DType) -> None:
    """Computed in float32 and rounded: the result is the true value's or one beside it where that is nearly a tie."""
    with np.errstate(all="ignore"):
        x = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
        wide = x.astype(np.float32)
        actual = compiled(op, (dtype,), dtype)(x).astype(np.float32)
        expected = compiled(op, (float32,), float32)(wide).astype(dtype.numpy).astype(np.float32)
    assert np.array_equal(actual, expected, equal_nan=True)
