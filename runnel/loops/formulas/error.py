"""erfc, its scaled form erfcx x = e^(x²)·erfc x, the normal distribution's functions, and their inverses.

For x ≥ 0, (1 + 2x)·erfcx x is a sum of Chebyshev polynomials in (x - 4)/(x + 4) (M. Shepherd, J. Laframboise,
"Chebyshev approximation of (1 + 2x)exp(x²)erfc x in 0 ≤ x < ∞", 1981), interpolated in 40 digits. e^(-x²) is
e^(-z²)·e^(-(x-z)(x+z)) with z the float32 next to x, whose square is exact. Inverses are
Newton's iterations for the logarithm of erfc, which is nearly a parabola.
"""

from __future__ import annotations

import math
from typing import Final

from runnel.core.dtypes import float32, float64
from runnel.loops.formulas.casts import cast
from runnel.loops.formulas.exp import erf as erf_formula, exp
from runnel.loops.formulas.log import log, log1p
from runnel.loops.formulas.series import chebyshev, in_float64
from runnel.loops.formulas.value import Value, choose

_ERFCX: Final = (
    1.1774832005374487, -0.007260796620301901, -0.081265123236185, 0.06009212804122225, -0.02875393558027666,
    0.01059566336347286, -0.003136927294554264, 0.0007456494372536184, -0.0001369696503010054, 1.7183861600300937e-05,
    -7.158364623450346e-07, -2.4261399442449534e-07, 5.5765709395703566e-08, -2.1057869513809494e-09,
    -1.1717889351884961e-09, 1.9098355172456613e-10, 1.4088717642087164e-11, -6.901108320481867e-12,
    9.167958364011476e-14, 2.1454508286473374e-13, -1.4716575027528233e-14, -6.668675118925522e-15,
    7.504598512152113e-16, 2.2200930124491255e-16, -3.1704898105009496e-17, -8.193569299843946e-18,
)  # fmt: skip
_END: Final = 27.3  # beyond, erfc is 0
_INFINITY: Final = float("inf")
_STEPS: Final = 4


def _erfcx_of_positive(a: Value) -> Value:
    far = a > 1e8  # there erfcx a rounds to 1/(√π·a)
    b = a.at_most(1e8)
    near = chebyshev((b - 4.0) / (b + 4.0), _ERFCX) / b.fma(2.0, 1.0)
    return choose(far, (1 / math.sqrt(math.pi)) / a, near)


def _gauss(x: Value, scale: float, factor: Value | float = 1.0) -> Value:
    """e^(scale·x²)·factor; halves of the exponent, so that subnormal results are rounded once."""
    z = cast(cast(x, float32), float64)
    root = exp(z * z * (scale / 2))
    return (exp((x - z) * (x + z) * scale) * factor * root) * root


@in_float64
def erfc(x: Value) -> Value:
    """Return 1 - erf x, with full precision where the result is small."""
    a = abs(x).at_most(_END + 1.0)
    tail = choose(a > _END, 0.0, _gauss(a, -1.0, _erfcx_of_positive(a)))
    return choose(abs(x) < 0.5, 1.0 - erf_formula(x), choose(x < 0.0, 2.0 - tail, tail))


@in_float64
def erfcx(x: Value) -> Value:
    """e^(x²)·erfc x."""
    a = abs(x)
    positive = _erfcx_of_positive(a)
    return choose(x < 0.0, 2.0 * _gauss(a.at_most(_END), 1.0) - positive, positive)


def _inverse_tail(q: Value) -> Value:
    """y with erfc y = q, for q in (0, ½]: y ← y + (log erfc y - log q)·erfcx(y)·√π/2."""
    log_q = log(q)
    y = (-(log_q + 0.5 * log(log_q * -math.pi))).at_least(0.2).intrinsic("sqrt")
    for _ in range(_STEPS):
        scaled = _erfcx_of_positive(y)
        y = y + (log(scaled) - y * y - log_q) * scaled * (math.sqrt(math.pi) / 2)
    return y


# M. Giles, "Approximating the erfinv function", 2010: the middle, to single precision
_MIDDLE: Final = (
    1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06, -3.5233877e-06,
    3.43273939e-07, 2.81022636e-08,
)  # fmt: skip


def _inverse_middle(x: Value) -> Value:
    """y with erf y = x, for |x| ≤ ½: an approximation, and Newton's steps."""
    w = -log1p(-(x * x)) - 2.5
    y = x * w.polynomial(_MIDDLE)
    for _ in range(2):
        y = y - (erf_formula(y) - x) * exp(y * y) * (math.sqrt(math.pi) / 2)
    return y


@in_float64
def erfinv(x: Value) -> Value:
    """y with erf y = x; ±∞ at ±1, NaN beyond."""
    a = abs(x)
    q = 1.0 - a
    far = _inverse_tail(choose(q > 0.0, q, 0.5)).with_sign_of(x)
    inside = choose(a > 0.5, far, _inverse_middle(x.at_most(0.5).at_least(-0.5)))
    edge = choose(a.eq(1.0), x.constant(_INFINITY).with_sign_of(x), float("nan"))
    return choose(a < 1.0, inside, edge)


@in_float64
def ndtri(p: Value) -> Value:
    """Return the quantile function of the normal distribution; ∓∞ at 0 and 1, NaN beyond."""
    lower = p < 0.5
    q = choose(lower, p, 1.0 - p)
    tail = _inverse_tail(choose(q > 0.0, q + q, 0.5)) * math.sqrt(2)
    tail = choose(lower, -tail, tail)
    middle = _inverse_middle((p + p - 1.0).at_most(0.5).at_least(-0.5)) * math.sqrt(2)
    inside = choose(abs(p - 0.5) < 0.25, middle, tail)
    edge = choose(p.eq(0.0), -_INFINITY, choose(p.eq(1.0), p.constant(_INFINITY), float("nan")))
    return choose((p > 0.0) & (p < 1.0), inside, edge)


@in_float64
def ndtr(x: Value) -> Value:
    """Return the distribution function of the normal distribution."""
    a = abs(x).at_most(40.0)
    tail = _gauss(a, -0.5, _erfcx_of_positive(a * math.sqrt(0.5)) * 0.5)
    near = 0.5 + 0.5 * erf_formula(x * math.sqrt(0.5))
    return choose(abs(x) < 0.7, near, choose(x < 0.0, tail, 1.0 - tail))


@in_float64
def log_ndtr(x: Value) -> Value:
    """Return the logarithm of :func:`ndtr`, accurate in the lower tail, too."""
    a = abs(x)
    scaled = _erfcx_of_positive(a * math.sqrt(0.5)) * 0.5
    tail = _gauss(a.at_most(40.0), -0.5, scaled)
    below = log(scaled) - 0.5 * a * a
    return choose(x < -1.0, below, choose(x < 0.0, log(tail), log1p(-tail)))
