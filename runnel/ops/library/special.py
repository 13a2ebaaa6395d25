"""Special functions: error functions, Γ and its relatives, modified Bessel functions.

Errors in float64 are a few units in the last place; float32 and half precision are computed in float64.
"""

from __future__ import annotations

import math
import operator

from runnel.core.dtypes import float32, float64
from runnel.loops.formulas.special import bessel, error, gamma
from runnel.ops.arguments import Array, Operand
from runnel.ops.arithmetic import add, divide, multiply, negative, sign, subtract
from runnel.ops.comparison import equal
from runnel.ops.conversion import cast
from runnel.ops.creation_like import iota
from runnel.ops.family import partials
from runnel.ops.library.scalars import function_of_floats, functions_of_floats
from runnel.ops.library.zeta import zeta
from runnel.ops.logic import where
from runnel.ops.promotion import unary_float
from runnel.ops.reductions import sum
from runnel.ops.statistics import rounded_as, wide_dtype
from runnel.ops.transcendental import exp, square
from runnel.ops.views import expand_dims

_HALF_ROOT_PI = math.sqrt(math.pi) / 2

erfc_p = function_of_floats("erfc", "x", "1 - erf x.", error.erfc, 160)
erfcx_p = function_of_floats("erfcx", "x", "e^(x²)·erfc x.", error.erfcx, 120)
erfinv_p = function_of_floats("erfinv", "x", "The y with erf y = x.", error.erfinv, 900)
ndtr_p = function_of_floats("ndtr", "x", "The probability that a normal number is below x.", error.ndtr, 200)
ndtri_p = function_of_floats("ndtri", "p", "The x with ndtr x = p.", error.ndtri, 900)
log_ndtr_p = function_of_floats("log_ndtr", "x", "log ndtr x.", error.log_ndtr, 300)
lgamma_p = function_of_floats("lgamma", "x", "log |Γ(x)|.", gamma.lgamma, 250)
digamma_p = function_of_floats("digamma", "x", "The derivative of log Γ.", gamma.digamma, 250)
i0_p = function_of_floats("i0", "x", "I₀(x).", bessel.i0, 120)
i0e_p = function_of_floats("i0e", "x", "e^-|x|·I₀(x).", bessel.i0e, 100)
i1_p = function_of_floats("i1", "x", "I₁(x).", bessel.i1, 120)
i1e_p = function_of_floats("i1e", "x", "e^-|x|·I₁(x).", bessel.i1e, 100)

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


def _density(x: Array) -> Array:
    """Of a normal number."""
    return multiply(exp(multiply(square(x), -0.5)), 1 / math.sqrt(2 * math.pi))


def over(out: Array, x: Array) -> Array:
    """I₁(x)/x, ½ at 0."""
    is_zero = equal(x, 0)
    return where(is_zero, 0.5, divide(out, where(is_zero, 1, x)))


# --- polygamma ----------------------------------------------------------------------------------------------------

_CLOSED = 30  # up to which there is a formula for arguments of both signs
_HIGHEST = 170  # whose factorial float64 has

polygamma_p = functions_of_floats("polygamma", "x, *, n", "The derivative n ≥ 1 of digamma.", gamma.polygamma, 1000)


# --- functions ----------------------------------------------------------------------------------------------------


def erfc(x: Operand) -> Array:
    """1 - erf x, with all digits where it is small."""
    return unary_float(erfc_p, x)


def erfcx(x: Operand) -> Array:
    """e^(x²) · erfc x."""
    return unary_float(erfcx_p, x)


def erfinv(x: Operand) -> Array:
    """The y with erf y = x: ±∞ at ±1, NaN beyond."""
    return unary_float(erfinv_p, x)


def ndtr(x: Operand) -> Array:
    """The probability that a normal number of mean 0 and deviation 1 is below x."""
    return unary_float(ndtr_p, x)


def ndtri(p: Operand) -> Array:
    """The x below which a normal number of mean 0 and deviation 1 lies with probability p."""
    return unary_float(ndtri_p, p)


def log_ndtr(x: Operand) -> Array:
    """The logarithm of :func:`ndtr`, far below, too."""
    return unary_float(log_ndtr_p, x)


def lgamma(x: Operand) -> Array:
    """log |Γ(x)|; infinite at 0, -1, -2, …"""
    return unary_float(lgamma_p, x)


def digamma(x: Operand) -> Array:
    """The derivative of log Γ: -∞ at 0, NaN at -1, -2, …"""
    return unary_float(digamma_p, x)


def polygamma(n: int, x: Array) -> Array:
    """The derivative ``n`` of digamma, from 0 to 170 (else ValueError): (-1)ⁿ⁺¹·n!·ζ(n + 1, x)."""
    order = operator.index(n)
    if not 0 <= order <= _HIGHEST:
        raise ValueError(f"[polygamma] n lies from 0 to {_HIGHEST}; received {n}.")
    if order == 0:
        return digamma(x)
    if order <= _CLOSED:
        return unary_float(polygamma_p, x, n=order)
    own = x if x.dtype.is_float else cast(x, float32)
    factor = float(math.factorial(order)) * (1 if order % 2 else -1)
    return cast(multiply(zeta(order + 1.0, cast(own, float64)), factor), own.dtype)


def polygamma_of(x: Array, n: int) -> Array:
    """The derivative ``n`` of digamma."""
    return polygamma(n, x)


def mvlgamma(x: Array, p: int) -> Array:
    """The logarithm of the multivariate Γ of dimension ``p``: p·(p - 1)/4·log π + Σ log Γ(x - j/2) over j < p."""
    count = operator.index(p)
    if not 1 <= count <= 1 << 16:
        raise ValueError(f"[mvlgamma] the dimension p is 1 at least; received {p}.")
    wide = cast(x, wide_dtype(x))
    halves = multiply(iota(x, (count,), 0), 0.5)
    total = sum(lgamma(subtract(expand_dims(wide, x.ndim), halves)), -1)
    return rounded_as(add(total, count * (count - 1) / 4 * math.log(math.pi)), x)


def i0(x: Operand) -> Array:
    """The modified Bessel function I₀."""
    return unary_float(i0_p, x)


def i0e(x: Operand) -> Array:
    """e^-|x| · I₀(x)."""
    return unary_float(i0e_p, x)


def i1(x: Operand) -> Array:
    """The modified Bessel function I₁."""
    return unary_float(i1_p, x)


def i1e(x: Operand) -> Array:
    """e^-|x| · I₁(x)."""
    return unary_float(i1e_p, x)


# --- derivatives --------------------------------------------------------------------------------------------------

partials(erfc_p, lambda g, out, x: multiply(g, multiply(exp(negative(square(x))), -1 / _HALF_ROOT_PI)))
partials(erfcx_p, lambda g, out, x: multiply(g, subtract(multiply(multiply(x, out), 2), 1 / _HALF_ROOT_PI)))
partials(erfinv_p, lambda g, out, x: multiply(g, multiply(exp(square(out)), _HALF_ROOT_PI)))
partials(ndtr_p, lambda g, out, x: multiply(g, _density(x)))
partials(ndtri_p, lambda g, out, p: divide(g, _density(out)))
partials(log_ndtr_p, lambda g, out, x: multiply(g, exp(subtract(multiply(square(x), -0.5), add(out, _LOG_ROOT_2PI)))))
partials(lgamma_p, lambda g, out, x: multiply(g, digamma(x)))
partials(digamma_p, lambda g, out, x: multiply(g, polygamma(1, x)))
partials(i0_p, lambda g, out, x: multiply(g, i1(x)))
partials(i0e_p, lambda g, out, x: multiply(g, subtract(i1e(x), multiply(sign(x), out))))
partials(i1_p, lambda g, out, x: multiply(g, subtract(i0(x), over(out, x))))
partials(i1e_p, lambda g, out, x: multiply(g, subtract(i0e(x), add(over(out, x), multiply(sign(x), out)))))
partials(polygamma_p, lambda g, out, x, *, n: multiply(g, polygamma(n + 1, x)))
