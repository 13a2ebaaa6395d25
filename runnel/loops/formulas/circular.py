"""tan, the inverse circular functions, the hyperbolic functions with their inverses, and the length of a vector.

atan x = x + x³·A(x²) for |x| ≤ √2 - 1; above, π/4 + atan((x - 1)/(x + 1)); above √2 + 1, π/2 - atan(1/x). asin x = x +
x³·S(x²) for |x| ≤ ½; above, π/2 - 2·asin(√((1 - x)/2)), where 1 - x is exact. A and S are interpolated at Chebyshev's
nodes in 40 digits, and cut where they reach 2⁻⁵⁷.

The hyperbolic functions are arrangements of exp, expm1, log and log1p that neither overflow nor cancel (W. Kahan,
"Branch cuts for complex elementary functions", 1987).
"""

from __future__ import annotations

import math
from typing import Final

from runnel.loops.formulas.exp import exp, expm1
from runnel.loops.formulas.log import log, log1p
from runnel.loops.formulas.series import chebyshev, in_float64, is_negative
from runnel.loops.formulas.trig import cos, sin
from runnel.loops.formulas.value import Value, choose

_ATAN: Final = (
    -0.3175967348755782, 0.015287330953370771, -0.0004353522436798789, 1.3462765939324904e-05,
    -4.3729562445046217e-07, 1.4676633293272413e-08, -5.04229509497806e-10, 1.7629800332933142e-11,
    -6.248787902259656e-13, 2.2391932258678657e-14, -8.096080381010495e-16, 2.9491722837357504e-17,
)  # fmt: skip
_ASIN: Final = (
    0.17726535287862666, 0.011039439954865799, 0.0004619131605105834, 2.2264405673427826e-05, 1.165968385755443e-06,
    6.447934781813683e-08, 3.7057038364795825e-09, 2.1915646752372246e-10, 1.3250884648352295e-11,
    8.154171869458593e-13, 5.090277271226746e-14, 3.2156755788069262e-15, 2.0519310870136845e-16,
    1.320625637468571e-17,
)  # fmt: skip
_EDGE: Final = math.sqrt(2) - 1
_TAIL: Final = 6.123233995736766e-17  # of π/2
_INFINITY: Final = float("inf")


@in_float64
def tan(x: Value) -> Value:
    """sin x / cos x."""
    return sin(x) / cos(x)


def _atan_of_small(x: Value) -> Value:
    z = x * x
    return (x * z).fma(chebyshev(z * (2 / _EDGE**2) - 1.0, _ATAN), x)


def _atan_of_positive(a: Value) -> Value:
    """Return the arctangent of ``a``, which is between 0 and infinity."""
    steep, middle = a > 1 / _EDGE, a > _EDGE
    reduced = choose(steep, -1.0 / a, choose(middle, (a - 1.0) / (a + 1.0), a))
    reduced = choose(a.eq(_INFINITY), 0.0, reduced)
    near = _atan_of_small(reduced)
    return choose(steep, (near + _TAIL) + math.pi / 2, choose(middle, (near + _TAIL / 2) + math.pi / 4, near))


@in_float64
def atan(x: Value) -> Value:
    """Return the angle whose tangent is x, in [-π/2, π/2]."""
    return _atan_of_positive(abs(x)).with_sign_of(x)


@in_float64
def atan2(y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), in [-π, π], with the signs of zeros as IEEE 754 has them."""
    a, b = abs(y), abs(x)
    swaps = a > b
    high, low = choose(swaps, a, b), choose(swaps, b, a)
    both = low.eq(_INFINITY)
    ratio = choose(both, 1.0, choose(high.eq(0.0), 0.0, low / choose(high.eq(0.0), 1.0, high)))
    angle = _atan_of_positive(ratio)
    angle = choose(swaps, (math.pi / 2 - angle) + _TAIL, angle)
    angle = choose(is_negative(x), (math.pi - angle) + 2 * _TAIL, angle)
    return choose(y.compare("uno", x), float("nan"), angle.with_sign_of(y))


def _asin_of_small(x: Value) -> Value:
    z = x * x
    return (x * z).fma(chebyshev(z * 8.0 - 1.0, _ASIN), x)


def _halved(a: Value) -> Value:
    """asin √((1 - a)/2), half of acos a."""
    return _asin_of_small(((1.0 - a) * 0.5).intrinsic("sqrt"))


@in_float64
def asin(x: Value) -> Value:
    """Return the angle in [-π/2, π/2] whose sine is x; NaN outside [-1, 1]."""
    a = abs(x)
    far = math.pi / 2 - (2.0 * _halved(a) - _TAIL)
    return choose(a > 0.5, far.with_sign_of(x), _asin_of_small(x))


@in_float64
def acos(x: Value) -> Value:
    """Return the angle in [0, π] whose cosine is x; NaN outside [-1, 1]."""
    a = abs(x)
    far = 2.0 * _halved(a)
    far = choose(x < 0.0, math.pi - (far - 2 * _TAIL), far)
    return choose(a > 0.5, far, math.pi / 2 - (_asin_of_small(x) - _TAIL))


_LARGE: Final = 700.0  # above, eˣ may overflow where half of it does not
_HUGE: Final = 2.0**28  # above, √(x² ± 1) is x


def _half_exp(a: Value) -> Value:
    """eᵃ/2 of a large a."""
    root = exp(a * 0.5)
    return (root * 0.5) * root


@in_float64
def sinh(x: Value) -> Value:
    """Return (eˣ - e⁻ˣ)/2."""
    a = abs(x)
    t = expm1(a.at_most(_LARGE))
    return choose(a > _LARGE, _half_exp(a), (t + t / (t + 1.0)) * 0.5).with_sign_of(x)


@in_float64
def cosh(x: Value) -> Value:
    """Return (eˣ + e⁻ˣ)/2."""
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
    """Return √(x² + y²) without overflow; infinity if x or y is infinite."""
    a, b = abs(x), abs(y)
    swaps = b > a
    high, low = choose(swaps, b, a), choose(swaps, a, b)
    ratio = low / choose(high.eq(0.0), 1.0, high)
    length = high * ratio.fma(ratio, 1.0).intrinsic("sqrt")
    length = choose(a.compare("uno", b), float("nan"), choose(high.eq(0.0), 0.0, length))
    return choose(a.eq(_INFINITY) | b.eq(_INFINITY), _INFINITY, length)
