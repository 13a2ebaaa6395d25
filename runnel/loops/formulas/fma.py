"""Fused multiply-add in NumPy, rounded once like the hardware's; the interpreter's Contract uses it.

Method: Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd"
(IEEE Transactions on Computers, 2008), with the error-free sum of Knuth and the error-free product of Dekker.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np

# Outside this range of exponents Dekker's product over- or underflows, and exact rationals are used.
_SAFE_LOW: Final = 2.0**-400
_SAFE_HIGH: Final = 2.0**400
_SPLITTER: Final = float(2**27 + 1)  # Veltkamp's constant for 53 bits


def fused_multiply_add(a: Any, b: Any, c: Any) -> Any:
    """a·b + c with one rounding, element by element; float32 or float64 arrays, broadcast together."""
    a, b, c = np.broadcast_arrays(a, b, c)
    with np.errstate(all="ignore"):
        return _in_float64(a, b, c) if a.dtype == np.float64 else _in_float32(a, b, c)


def _in_float32(a: Any, b: Any, c: Any) -> Any:
    """The product of two float32 is exact in float64, so a sum rounded to odd there rounds correctly to float32."""
    product = a.astype(np.float64) * b.astype(np.float64)
    return sum_to_odd(product, c.astype(np.float64)).astype(np.float32)


def _in_float64(a: Any, b: Any, c: Any) -> Any:
    plain = a * b + c
    high, low = _exact_product(a, b)
    t_high, t_low = _exact_sum(c, low)
    v_high, v_low = _exact_sum(high, t_high)
    fused = v_high + sum_to_odd(t_low, v_low)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    zero_product = (a == 0) | (b == 0)
    result = np.where(finite & ~zero_product, fused, plain)
    for at in np.argwhere(finite & ~zero_product & ~(_safe(a) & _safe(b) & (_safe(c) | (c == 0)))):
        where = tuple(at)
        result[where] = _rational(float(a[where]), float(b[where]), float(c[where]))
    return result


def _safe(x: Any) -> Any:
    size = np.abs(x)
    return (size > _SAFE_LOW) & (size < _SAFE_HIGH)


def _rational(a: float, b: float, c: float) -> float:
    """By exact rational arithmetic: int / int rounds correctly in Python."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact)
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


def _exact_sum(x: Any, y: Any) -> tuple[Any, Any]:
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _exact_product(x: Any, y: Any) -> tuple[Any, Any]:
    product = x * y
    x_high, x_low = _split(x)
    y_high, y_low = _split(y)
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, error


def _split(x: Any) -> tuple[Any, Any]:
    scaled = _SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


def sum_to_odd(x: Any, y: Any) -> Any:
    """x + y in float64; when inexact, of the two neighbours the one whose last bit is odd."""
    total, error = _exact_sum(x, y)
    even = (np.asarray(total).view(np.uint64) & np.uint64(1)) == 0
    inexact = np.isfinite(total) & (error != 0)
    return np.where(even & inexact, np.nextafter(total, np.copysign(np.inf, error)), total)
