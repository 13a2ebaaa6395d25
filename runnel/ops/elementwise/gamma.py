"""The error function's relatives, the normal distribution, the gamma function and its derivatives, and zeta.

Errors in float64 are a few units in the last place. float32 and half precision are computed in float64.
"""

from __future__ import annotations

import math
import operator

from runnel.core.dispatch import apply
from runnel.core.dtypes import float32, float64
from runnel.loops.formulas import error, gamma, zeta as zeta_formula
from runnel.ops.arguments import Array, Operand
from runnel.ops.conversion import cast
from runnel.ops.creation_like import iota
from runnel.ops.elementwise.arithmetic import add, divide, multiply, negative, subtract
from runnel.ops.elementwise.exponential import exp, square
from runnel.ops.elementwise.rows import Unary, family_of_floats, function_of_floats, partials
from runnel.ops.promotion import meet_as_floats, unary_float
from runnel.ops.reductions.primitives import sum
from runnel.ops.reductions.statistics import rounded_as, wide_dtype
from runnel.ops.shapes.views import expand_dims

# Functions that derivatives in rows above their own call.
digamma: Unary

_HALF_ROOT_PI = math.sqrt(math.pi) / 2
_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


def _density(x: Array) -> Array:
    """Return the density of the standard normal distribution."""
    return multiply(exp(multiply(square(x), -0.5)), 1 / math.sqrt(2 * math.pi))


# --- error functions and the normal distribution ------------------------------------------------------------------

_, erfc = function_of_floats(
    "erfc", error.erfc, 160, lambda g, out, x: multiply(g, multiply(exp(negative(square(x))), -1 / _HALF_ROOT_PI)),
    "Return 1 - erf(x), with full precision where it is small.",
)  # fmt: skip
_, erfcx = function_of_floats(
    "erfcx", error.erfcx, 120,
    lambda g, out, x: multiply(g, subtract(multiply(multiply(x, out), 2), 1 / _HALF_ROOT_PI)),
    "Return e^(x²) · erfc(x).",
)  # fmt: skip
_, erfinv = function_of_floats(
    "erfinv", error.erfinv, 900, lambda g, out, x: multiply(g, multiply(exp(square(out)), _HALF_ROOT_PI)),
    "Return the inverse of erf: ±∞ at ±1, NaN outside [-1, 1].",
)  # fmt: skip
_, ndtr = function_of_floats(
    "ndtr", error.ndtr, 200, lambda g, out, x: multiply(g, _density(x)),
    "Return the probability that a standard normal variable is below x.",
)  # fmt: skip
_, ndtri = function_of_floats(
    "ndtri", error.ndtri, 900, lambda g, out, p: divide(g, _density(out)),
    "Return the inverse of `ndtr`, the quantiles of the standard normal distribution: NaN outside [0, 1].",
)  # fmt: skip
_, log_ndtr = function_of_floats(
    "log_ndtr", error.log_ndtr, 300,
    lambda g, out, x: multiply(g, exp(subtract(multiply(square(x), -0.5), add(out, _LOG_ROOT_2PI)))),
    "Return the logarithm of `ndtr`, accurate in the lower tail.",
)  # fmt: skip

# --- the gamma function -------------------------------------------------------------------------------------------

_, lgamma = function_of_floats(
    "lgamma", gamma.lgamma, 250, lambda g, out, x: multiply(g, digamma(x)),
    "Return log |Γ(x)|: ∞ at 0, -1, -2, ...",
)  # fmt: skip
_, digamma = function_of_floats(
    "digamma", gamma.digamma, 250, lambda g, out, x: multiply(g, polygamma(1, x)),
    "Return the derivative of log Γ(x): -∞ at 0, NaN at -1, -2, ...",
)  # fmt: skip

_CLOSED = 30  # up to this order, one formula serves arguments of both signs
_HIGHEST = 170  # its factorial is the largest that float64 represents

polygamma_p = family_of_floats("polygamma", "x, *, n", "Return derivative n ≥ 1 of digamma.", gamma.polygamma, 1000)
partials(polygamma_p, lambda g, out, x, *, n: multiply(g, polygamma(n + 1, x)))


def polygamma(n: int, x: Array) -> Array:
    """Return derivative ``n`` of digamma at x: (-1)ⁿ⁺¹·n!·ζ(n + 1, x), and digamma itself for n = 0.

    Raises ValueError unless n is from 0 to 170."""
    order = operator.index(n)
    if not 0 <= order <= _HIGHEST:
        raise ValueError(f"[polygamma] n must be from 0 to {_HIGHEST}; got {n}.")
    if order == 0:
        return digamma(x)
    if order <= _CLOSED:
        return unary_float(polygamma_p, x, n=order)
    own = x if x.dtype.is_float else cast(x, float32)
    factor = float(math.factorial(order)) * (1 if order % 2 else -1)
    return cast(multiply(zeta(order + 1.0, cast(own, float64)), factor), own.dtype)


def polygamma_of(x: Array, n: int) -> Array:
    """Return derivative ``n`` of digamma at x (the method's order of arguments)."""
    return polygamma(n, x)


def mvlgamma(x: Array, p: int) -> Array:
    """Return the logarithm of the multivariate gamma function of dimension ``p``.

    It is p·(p - 1)/4·log π + Σ log Γ(x - j/2) for j from 0 to p - 1."""
    count = operator.index(p)
    if not 1 <= count <= 1 << 16:
        raise ValueError(f"[mvlgamma] the dimension p must be from 1 to 65536; got {p}.")
    wide = cast(x, wide_dtype(x))
    halves = multiply(iota(x, (count,), 0), 0.5)
    total = sum(lgamma(subtract(expand_dims(wide, x.ndim), halves)), -1)
    return rounded_as(add(total, count * (count - 1) / 4 * math.log(math.pi)), x)


# --- zeta ---------------------------------------------------------------------------------------------------------

zeta_p = family_of_floats(
    "zeta", "x, q, *, order", "Return the derivative `order` by x of Σ (q + k)⁻ˣ.", zeta_formula.zeta, 600
)


def zeta(x: Operand, q: Operand) -> Array:
    """Return Hurwitz' zeta function, the sum of (q + k)⁻ˣ for k ≥ 0 (Riemann's for q = 1).

    It is ∞ at x = 1 and at q = 0, -1, ...; NaN for x < 1, and for q < 0 unless x is an integer. It has gradients by q,
    and by x for q > 0."""
    s, a = meet_as_floats(zeta_p, x, q)
    return apply(zeta_p, s, a, order=0)


def _zeta_by_q(g: Array, out: Array, x: Array, q: Array, *, order: int) -> Array:
    """Return -x·ζ(x + 1, q), differentiated by x ("NIST Digital Library of Mathematical Functions", 25.11.17)."""
    above = add(x, 1)
    slope = multiply(negative(x), apply(zeta_p, above, q, order=order))
    if order:
        slope = add(slope, multiply(apply(zeta_p, above, q, order=order - 1), -order))
    return multiply(g, slope)


partials(zeta_p, lambda g, out, x, q, *, order: multiply(g, apply(zeta_p, x, q, order=order + 1)), _zeta_by_q)
