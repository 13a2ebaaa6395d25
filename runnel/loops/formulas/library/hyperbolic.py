"""sinh, cosh, their inverses, and the length of a vector: arrangements of exp, expm1, log and log1p that neither
overflow nor cancel (W. Kahan, "Branch cuts for complex elementary functions", 1987)."""

from __future__ import annotations

import math
from typing import Final

from runnel.loops.formulas.exp import exp, expm1
from runnel.loops.formulas.library.series import in_float64
from runnel.loops.formulas.log import log, log1p
from runnel.loops.formulas.value import Value, choose

_LARGE: Final = 700.0  # above, eˣ may overflow where half of it does not
_HUGE: Final = 2.0**28  # above, √(x² ± 1) is x
_INFINITY: Final = float("inf")


def _half_exp(a: Value) -> Value:
    """eᵃ/2 of a large a."""
    root = exp(a * 0.5)
    return (root * 0.5) * root


@in_float64
def sinh(x: Value) -> Value:
    """(eˣ - e⁻ˣ)/2."""
    a = abs(x)
    t = expm1(a.at_most(_LARGE))
    return choose(a > _LARGE, _half_exp(a), (t + t / (t + 1.0)) * 0.5).with_sign_of(x)


@in_float64
def cosh(x: Value) -> Value:
    """(eˣ + e⁻ˣ)/2."""
    a = abs(x)
    e = exp(a.at_most(_LARGE))
    return choose(a > _LARGE, _half_exp(a), e * 0.5 + 0.5 / e)


@in_float64
def asinh(x: Value) -> Value:
    """log(x + √(x² + 1))."""
    a = abs(x)
    b = a.at_most(_HUGE)
    square = b * b
    near = log1p(b + square / ((square + 1.0).intrinsic("sqrt") + 1.0))
    return choose(a > _HUGE, log(a) + math.log(2), near).with_sign_of(x)


@in_float64
def acosh(x: Value) -> Value:
    """log(x + √(x² - 1)); NaN below 1."""
    t = x.at_most(_HUGE) - 1.0
    near = log1p(t + (t + t + t * t).intrinsic("sqrt"))
    return choose(x < 1.0, float("nan"), choose(x > _HUGE, log(x) + math.log(2), near))


@in_float64
def atanh(x: Value) -> Value:
    """log((1 + x)/(1 - x))/2; ±∞ at ±1, NaN beyond."""
    a = abs(x)
    return (0.5 * log1p((a + a) / (1.0 - a))).with_sign_of(x)


@in_float64
def hypot(x: Value, y: Value) -> Value:
    """√(x² + y²), without overflow; infinite where one of them is."""
    a, b = abs(x), abs(y)
    swaps = b > a
    high, low = choose(swaps, b, a), choose(swaps, a, b)
    ratio = low / choose(high.eq(0.0), 1.0, high)
    length = high * ratio.fma(ratio, 1.0).intrinsic("sqrt")
    length = choose(a.compare("uno", b), float("nan"), choose(high.eq(0.0), 0.0, length))
    return choose(a.eq(_INFINITY) | b.eq(_INFINITY), _INFINITY, length)
