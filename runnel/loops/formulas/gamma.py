"""log Γ and its derivatives.

From 8 on by the asymptotic series (M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions", 6.1.41, 6.3.18 and
6.4.11); below, Γ(x + 1) = x·Γ(x) leads to [1, 2], where (x - 1)(x - 2) and x less the zero of digamma are factors of
sums of Chebyshev polynomials, interpolated in 40 digits; below 0 by the reflection (6.1.17, 6.3.7 and 6.4.7).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from runnel.loops.formulas.log import log
from runnel.loops.formulas.series import chebyshev, in_float64
from runnel.loops.formulas.trig import cos, sin
from runnel.loops.formulas.value import Value, choose

_LGAMMA: Final = (
    0.49141539302938714, -0.07611416167043585, 0.008432324965932778, -0.001079493726328608, 0.00014900748003692963,
    -2.1512399888556784e-05, 3.1979329860862186e-06, -4.851693012139927e-07, 7.47148782116316e-08,
    -1.1638296700170518e-08, 1.829400437118668e-09, -2.8969180607129607e-10, 4.61570140620909e-11,
    -7.392810230497983e-12, 1.1894280008333085e-12, -1.9212068676522805e-13, 3.113975526387164e-14,
    -5.0628432984486114e-15, 8.254150281631144e-16, -1.3490578987574844e-16, 2.209876116782623e-17,
    -3.6274129549239766e-18,
)  # fmt: skip
_DIGAMMA: Final = (
    0.983570260441567, -0.2270640863346444, 0.03336889902393011, -0.005320077271596548, 0.0008788656937820505,
    -0.00014773492650606044, 2.5060543468359146e-05, -4.2721034029993324e-06, 7.302769272465923e-07,
    -1.2502886813559594e-07, 2.1425009322359472e-08, -3.673295918565179e-09, 6.299717236108931e-10,
    -1.080593028883266e-10, 1.853735192053638e-11, -3.18023536582553e-12, 5.456147570322795e-13,
    -9.360993131036438e-14, 1.606064636295075e-14, -2.7555431377438815e-15, 4.727736178601912e-16,
    -8.11148420346509e-17, 1.391707769474154e-17,
)  # fmt: skip
_ROOT: Final = (1.4616321449683622, 9.549995429965697e-17)  # of digamma, as a sum
_INFINITY: Final = float("inf")


def _bernoulli(count: int) -> list[Fraction]:
    """B₂, B₄, … (their recurrence, 23.1.2 of the handbook)."""
    every = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        every.append(-sum((math.comb(m + 1, k) * every[k] for k in range(m)), Fraction(0)) / (m + 1))
    return every[2::2]


BERNOULLI: Final = _bernoulli(12)


def _sine(x: Value) -> tuple[Value, Value]:
    """sin πx and cos πx, up to a common sign: x less the nearest integer is exact."""
    r = (x - x.intrinsic("rint")) * math.pi
    return sin(r), cos(r)


def _stirling(x: Value) -> Value:
    """log Γ(x) for x from 8 on."""
    y = 1.0 / x
    series = (y * y).polynomial([float(b / (2 * k * (2 * k - 1))) for k, b in enumerate(BERNOULLI[:9], 1)])
    return ((x - 0.5) * (log(x) - 1.0) + (0.5 * math.log(2 * math.pi) - 0.5)) + y * series


@in_float64
def lgamma(x: Value) -> Value:
    """log |Γ(x)|; +∞ at 0, -1, -2, … and ±∞."""
    negative = x < 0.0
    a = choose(negative, 1.0 - x, x)
    small = a < 1.0
    factor = choose(small, a, 1.0)
    y = choose(small, a + 1.0, a.at_most(8.0))
    for _ in range(6):
        above = y > 2.0
        factor = choose(above, factor * (y - 1.0), factor)
        y = choose(above, y - 1.0, y)
    below, above = choose(small, a, y - 1.0), choose(small, a - 1.0, y - 2.0)  # a + 1 is rounded
    logarithm = log(factor)
    near = below * above * chebyshev(y * 2.0 - 3.0, _LGAMMA) + choose(small, -logarithm, logarithm)
    positive = choose(a < 8.0, near, _stirling(a.at_least(8.0)))
    sine, _ = _sine(choose(negative, x, 0.5))
    reflected = log(math.pi / abs(sine)) - positive
    result = choose(negative, reflected, positive)
    return choose(abs(x).eq(_INFINITY) | x.eq(0.0), _INFINITY, result)


@in_float64
def digamma(x: Value) -> Value:
    """Return the derivative of log Γ; -∞ at 0, NaN at -1, -2, …"""
    negative = x < 0.0
    a = choose(negative, 1.0 - x, x)
    small = a < 1.0
    shift = choose(small, -1.0 / choose(small, a, 1.0), 0.0)
    y = choose(small, a + 1.0, a.at_most(8.0))
    for _ in range(6):
        above = y > 2.0
        shift = choose(above, shift + 1.0 / (y - 1.0), shift)
        y = choose(above, y - 1.0, y)
    near = ((y - _ROOT[0]) - _ROOT[1]) * chebyshev(y * 2.0 - 3.0, _DIGAMMA) + shift
    b = a.at_least(8.0)
    z = 1.0 / b
    far = log(b) - 0.5 * z - z * z * (z * z).polynomial([float(c / (2 * k)) for k, c in enumerate(BERNOULLI[:9], 1)])
    positive = choose(a < 8.0, near, far)
    sine, cosine = _sine(choose(negative, x, 0.5))
    whole = negative & x.intrinsic("floor").eq(x)
    reflected = choose(whole, float("nan"), positive - cosine / sine * math.pi)
    result = choose(negative, reflected, positive)
    zero = x.constant(-_INFINITY).with_sign_of(-x)
    return choose(x.eq(0.0), zero, choose(x.eq(_INFINITY), _INFINITY, result))


def polygamma(n: int) -> Callable[[Value], Value]:
    """Return the formula of derivative n ≥ 1 of digamma: (-1)ⁿ⁺¹·n!·ζ(n + 1, x), ζ by the sum of Euler and Maclaurin;
    below 0 by the derivatives of cot, which are polynomials of it."""
    terms = 10 + n
    whole, half = float(math.factorial(n)), math.factorial(n) / 2
    weights = [
        float(b * Fraction(math.factorial(n + 2 * k - 1), math.factorial(2 * k))) for k, b in enumerate(BERNOULLI, 1)
    ]

    def power(y: Value, k: int) -> Value:
        result = y
        for _ in range(k - 1):
            result = result * y
        return result

    def of_positive(x: Value) -> Value:
        total: Any = 0.0
        for k in range(terms):
            total = power(1.0 / (x + float(k)), n + 1) + total
        y = 1.0 / (x + float(terms))
        tail = (y * y).polynomial(weights) * power(y, n + 2)
        return total * whole + (power(y, n) * float(math.factorial(n - 1)) + (power(y, n + 1) * half + tail))

    cotangent = _derivative_of_cotangent(n)

    @in_float64
    def rule(x: Value) -> Value:
        negative = x < 0.0
        a = choose(negative, 1.0 - x, x)
        positive = of_positive(choose(a.eq(0.0), 1.0, a))
        sine, cosine = _sine(choose(negative, x, 0.5))
        reflected = (cosine / sine).polynomial(cotangent) * -(math.pi ** (n + 1)) - positive
        result = choose(negative, reflected, positive if n % 2 else -positive)
        return choose(x.eq(0.0), _INFINITY if n % 2 else -_INFINITY, result)

    return rule


def _derivative_of_cotangent(n: int) -> list[float]:
    """Return derivative n of cot u as a polynomial in c = cot u. The derivative of cᵏ is -k·cᵏ⁻¹·(1 + c²)."""
    c = [0, 1]
    for _ in range(n):
        derivative = [0] * (len(c) + 1)
        for k in range(1, len(c)):
            derivative[k - 1] -= k * c[k]
            derivative[k + 1] -= k * c[k]
        c = derivative
    return [float(v) for v in c]
