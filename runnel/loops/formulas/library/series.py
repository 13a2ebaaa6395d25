"""Helpers of this folder's formulas: evaluation in float64, sums of Chebyshev polynomials."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from runnel.core.dtypes import float32, float64, int32, int64
from runnel.loops.formulas.casts import cast
from runnel.loops.formulas.value import Value

Formula = Callable[..., Value]


def in_float64(formula: Formula) -> Formula:
    """``formula`` for float32, too: computed in float64 and rounded once, so its error is just above half an ULP."""

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
    """Whether the sign bit is set."""
    return x.reinterpret(int64 if x.dtype is float64 else int32) < 0
