"""The emulated fused multiply-add rounds once, like exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from runnel.loops.formulas.computed import fused_multiply_add

single = st.floats(width=32, allow_nan=False, allow_infinity=False)
double = st.floats(allow_nan=False, allow_infinity=False)


def exact_double(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else a * b + c
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


def exact_single(a: float, b: float, c: float) -> np.float32:
    """Round the exact value to 24 bits (25 significant bits decide, the rest is sticky)."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact:
        return np.float32(a * b + c)
    with np.errstate(all="ignore"):
        near = np.float32(float(exact))
        around = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    finite = [x for x in around if np.isfinite(x)]
    best = min(finite, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(np.uint32)) & 1))
    limit = Fraction(2) ** 128 - Fraction(2) ** 103
    return np.float32(np.inf if exact > 0 else -np.inf) if abs(exact) >= limit else best


@settings(deadline=None, max_examples=300)
@given(double, double, double)
@example(1.0 + 2**-52, 1.0 - 2**-52, -1.0)
@example(1e-200, 1e-200, 1e-320)
@example(1e300, 1e10, -1e300)
@example(3e-162, 3e-162, 0.0)
@example(0.1, 10.0, -1.0)
def test_double(a: float, b: float, c: float) -> None:
    actual = fused_multiply_add(*(np.array([x]) for x in (a, b, c)))[0]
    assert actual.tobytes() == np.float64(exact_double(a, b, c)).tobytes()


@settings(deadline=None, max_examples=300)
@given(single, single, single)
@example(float(np.float32(1 + 2**-23)), float(np.float32(1 + 2**-12)), float(np.float32(2**-60)))
@example(-0.0, 1.0, -0.0)
def test_single(a: float, b: float, c: float) -> None:
    actual = fused_multiply_add(*(np.array([x], np.float32) for x in (a, b, c)))[0]
    assert actual.dtype == np.float32 and actual.tobytes() == exact_single(a, b, c).tobytes()


def test_double_rounding_is_avoided() -> None:
    """(1 + 2^-23)·(1 + 2^-23) + 2^-60 lies just above a tie that float64 would round onto."""
    a, c = np.array([1 + 2.0**-12], np.float32), np.array([2.0**-60], np.float32)
    twice = (a.astype(np.float64) * a + c).astype(np.float32)
    assert fused_multiply_add(a, a, c)[0] == exact_single(float(a[0]), float(a[0]), float(c[0])) != twice[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_specials(dtype: type) -> None:
    inf, nan = np.inf, np.nan
    rows = [(inf, 1, -inf), (inf, 0, 1), (1, 2, nan), (inf, 2, 1), (-1, inf, 3), (1, 1, -inf)]
    a, b, c = (np.array(column, dtype) for column in zip(*rows, strict=True))
    np.testing.assert_array_equal(fused_multiply_add(a, b, c), np.array([nan, nan, nan, inf, -inf, -inf], dtype))
