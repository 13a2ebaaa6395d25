"""Evaluation in float64, sums of Chebyshev polynomials, and signs and neighbors of floats from their bits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from runnel.core.dtypes import by_name, float32, float64, int32, int64
from runnel.loops.formulas.casts import HALVES, cast, widen
from runnel.loops.formulas.value import Value, choose

Formula = Callable[..., Value]


def in_float64(formula: Formula) -> Formula:
    """Extend ``formula`` to float32: compute in float64 and round once, so the error is just above half an ULP."""

    @functools.wraps(formula)
    def rule(*args: Value) -> Value:
        if args[0].dtype is float64:
            return formula(*args)
        return cast(formula(*(cast(x, float64) for x in args)), float32)

    return rule


def chebyshev(t: Value, coefficients: Sequence[float]) -> Value:
    """Σ c[k]·Tₖ(t) for t in [-1, 1] (C. Clenshaw, "A note on the summation of Chebyshev series", 1955)."""
    twice = t + t
    above: Any = 0.0
    here = t.constant(coefficients[-1])
    for c in reversed(coefficients[1:-1]):
        here, above = twice.fma(here, c - above), here
    return t.fma(here, coefficients[0] - above)


def is_negative(x: Value) -> Value:
    """Return whether the sign bit is set."""
    return x.reinterpret(int64 if x.dtype is float64 else int32) < 0


def _whole(x: Value) -> Value:
    return x.reinterpret(by_name(f"int{x.dtype.itemsize * 8}"))


def _wide(x: Value) -> Value:
    """Convert to float32 at least: LLVM cannot lower some operations on the sign of a bfloat16."""
    return widen(x) if x.dtype in HALVES else x


def signbit(x: Value) -> Value:
    """Return whether the sign bit is set; of integers, whether they are negative."""
    if x.dtype.is_float:
        return _whole(_wide(x)) < 0
    return x < 0


def copysign(x: Value, y: Value) -> Value:
    """Return |x| with the sign of y."""
    if x.dtype in HALVES:
        differs = (_whole(widen(x)) ^ _whole(widen(y))) < 0
        return choose(differs, (x.bits() ^ (1 << 15)).reinterpret(x.dtype), x)
    sign = 1 << (x.dtype.itemsize * 8 - 1)
    return ((x.bits() & (sign - 1)) | (y.bits() & sign)).reinterpret(x.dtype)


def nextafter(x: Value, y: Value) -> Value:
    """Return the float next to x on the way to y."""
    a, b = (widen(v) if v.dtype in HALVES else v for v in (x, y))
    up = a < b
    bits = _whole(x)
    sign = -1 << (x.dtype.itemsize * 8 - 1)
    away = (bits < 0) ^ up
    moved = choose(away, bits + 1, bits - 1)
    first = choose(up, bits.constant(1), sign + 1)
    stepped = choose(a.eq(0.0), first, moved)
    result = choose(a.eq(b), _whole(y), stepped)
    nan = choose(a.is_nan(), bits, _whole(y))
    return choose(a.compare("uno", b), nan, result).reinterpret(x.dtype)
