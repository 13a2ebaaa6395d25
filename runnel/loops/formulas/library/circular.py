"""tan and the inverse circular functions.

atan x = x + x³·A(x²) for |x| ≤ √2 - 1; above, π/4 + atan((x - 1)/(x + 1)); above √2 + 1, π/2 - atan(1/x).
asin x = x + x³·S(x²) for |x| ≤ ½; above, π/2 - 2·asin(√((1 - x)/2)), where 1 - x is exact. A and S are interpolated at
Chebyshev's nodes in 40 digits, and cut where they reach 2⁻⁵⁷.
"""

from __future__ import annotations

import math
from typing import Final

from runnel.loops.formulas.library.series import chebyshev, in_float64, is_negative
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
    """Of a from 0 to infinity."""
    steep, middle = a > 1 / _EDGE, a > _EDGE
    reduced = choose(steep, -1.0 / a, choose(middle, (a - 1.0) / (a + 1.0), a))
    reduced = choose(a.eq(_INFINITY), 0.0, reduced)
    near = _atan_of_small(reduced)
    return choose(steep, (near + _TAIL) + math.pi / 2, choose(middle, (near + _TAIL / 2) + math.pi / 4, near))


@in_float64
def atan(x: Value) -> Value:
    """The angle whose tangent is x, in [-π/2, π/2]."""
    return _atan_of_positive(abs(x)).with_sign_of(x)


@in_float64
def atan2(y: Value, x: Value) -> Value:
    """The angle of the point (x, y), in [-π, π], with the signs of zeros as IEEE 754 has them."""
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
    """The angle in [-π/2, π/2] whose sine is x; NaN outside of [-1, 1]."""
    a = abs(x)
    far = math.pi / 2 - (2.0 * _halved(a) - _TAIL)
    return choose(a > 0.5, far.with_sign_of(x), _asin_of_small(x))


@in_float64
def acos(x: Value) -> Value:
    """The angle in [0, π] whose cosine is x; NaN outside of [-1, 1]."""
    a = abs(x)
    far = 2.0 * _halved(a)
    far = choose(x < 0.0, math.pi - (far - 2 * _TAIL), far)
    return choose(a > 0.5, far, math.pi / 2 - (_asin_of_small(x) - _TAIL))
