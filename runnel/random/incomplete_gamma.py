"""The incomplete gamma function, and its derivative by the first argument.

P(a, x) is the probability that a gamma number of shape a is below x, Q = 1 - P. Below a = 100: for x < a + 1 the series
of M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions", 6.5.29, and beyond it the continued fraction 6.5.31
by the method of W. Lentz (1976); each is differentiated term by term. From 100 on the density is integrated by the rule
of Gauss and Legendre between x and where it has vanished (as in W. Press et al., "Numerical Recipes", 2007, 6.2.1).
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from runnel import ops
from runnel.core.dtypes import bool_, float64, int64
from runnel.ops.arguments import Array, Operand
from runnel.ops.elementwise.arithmetic import add_p
from runnel.ops.elementwise.gamma import digamma, lgamma
from runnel.ops.promotion import meet
from runnel.ops.shapes.broadcasting import broadcast_arrays
from runnel.transforms.control import while_loop
from runnel.transforms.custom_vjp import custom_vjp

_LARGE: Final = 100.0
_EPSILON: Final = 2.0**-53
_TINY: Final = 1e-300
_WIDTH: Final = 11.5  # deviations beyond which the density of a large shape adds nothing to float64
_FADED: Final = 40.0  # -log of what adds nothing
_POINTS: Final = tuple(
    (float(p + 1) / 2, float(w) / 2) for p, w in zip(*np.polynomial.legendre.leggauss(32), strict=True)
)


class Part(NamedTuple):
    """The probability on one side of x, and its derivative by a, both over x times the density at x."""

    probability: Any
    slope: Any


def _series(a: Any, x: Any, log_x: Any) -> Part:
    """Below x: Σ xⁿ / ((a + 1)·…·(a + n)) / a."""

    def goes_on(carry: Any) -> Any:
        return ops.any(ops.logical_not(carry[-1]))

    def further(carry: Any) -> Any:
        n, term, slope, total, slopes, is_done = carry
        slope = (slope * x - term * x / (a + n)) / (a + n)
        term = term * x / (a + n)
        ends = ops.logical_and(
            ops.less_equal(term, total * _EPSILON), ops.less_equal(ops.abs(slope), ops.abs(slopes) * _EPSILON)
        )
        return (
            n + 1, term, slope, ops.where(is_done, total, total + term), ops.where(is_done, slopes, slopes + slope),
            ops.logical_or(is_done, ends),
        )  # fmt: skip

    one, zero, begins = ops.ones_like(x), ops.zeros_like(x), ops.full_like(x, 0, dtype=bool_)
    begins = ops.logical_or(begins, ops.isnan(a + x))
    start = (ops.full_like(x, 1, (), int64), one, zero, one, zero, begins)
    _, _, _, total, slopes, _ = while_loop(goes_on, further, start)
    return Part(total / a, (total * (log_x - digamma(a + 1)) + slopes) / a)


def _fraction(a: Any, x: Any, log_x: Any) -> Part:
    """Above x: 1/(x + 1 - a - 1·(1 - a)/(x + 3 - a - 2·(2 - a)/(x + 5 - a - …)))."""

    def goes_on(carry: Any) -> Any:
        return ops.any(ops.logical_not(carry[-1]))

    def further(carry: Any) -> Any:
        i, c, dc, d, dd, h, dh, is_done = carry
        by, b = i * (a - i), x + 1 - a + i * 2
        lower = by * d + b
        dd = -(i * d + by * dd - 1) / (lower * lower)
        d = 1 / lower
        dc = i / c - by * dc / (c * c) - 1
        c = b + by / c
        factor = c * d
        dh_next = dh * factor + h * (dc * d + c * dd)
        ends = ops.logical_and(
            ops.less_equal(ops.abs(factor - 1), _EPSILON * 4),
            ops.less_equal(ops.abs(dh_next - dh), ops.abs(dh_next) * (_EPSILON * 4)),
        )
        return (
            i + 1, c, dc, d, dd, ops.where(is_done, h, h * factor), ops.where(is_done, dh, dh_next),
            ops.logical_or(is_done, ends),
        )  # fmt: skip

    first = x + 1 - a
    zero = ops.zeros_like(x)
    start = (
        ops.full_like(x, 1, (), int64), ops.full_like(x, 1 / _TINY), zero, 1 / first, 1 / (first * first), 1 / first,
        1 / (first * first), ops.isnan(a + x),
    )  # fmt: skip
    _, _, _, _, _, h, dh, _ = while_loop(goes_on, further, start)
    return Part(h, h * (log_x - digamma(a)) + dh)


def _bend(t: Any, mode: Any) -> Any:
    """log of the density at t over that at its mode."""
    apart = t / mode - 1
    return mode * (ops.log1p(apart) - apart)


def _integral(a: Any, x: Any) -> Part:
    """Below x where x is below the mode a - 1, else above it; a is at least 100."""
    mode = a - 1
    root = ops.sqrt(mode)
    beyond = ops.maximum(mode + root * _WIDTH, x + root * (_WIDTH / 2))
    before = ops.maximum(ops.minimum(mode - root * (_WIDTH * 0.65), x - root * (_WIDTH * 0.45)), 0)
    fades = x / ops.maximum(ops.abs(x - mode), 1) * _FADED  # far out the density falls off like e^-t
    end = ops.where(ops.greater(x, mode), ops.minimum(beyond, x + fades), ops.maximum(before, x - fades))
    here = _bend(x, mode)
    centre = 1 / (2 * mode) - 1 / (12 * mode * mode)  # digamma(a) - log(mode)
    probability, slope = ops.zeros_like(x), ops.zeros_like(x)
    for point, weight in _POINTS:
        t = x + (end - x) * point
        share = ops.exp(_bend(t, mode) - here) * weight
        probability = probability + share
        slope = slope + share * (ops.log1p(t / mode - 1) - centre)
    length = ops.abs(end - x) / x
    return Part(probability * length, slope * length)


def _parts(a: Any, x: Any, log_x: Any) -> tuple[Any, Part]:
    """Return whether the part is the integral below x, and the part."""
    is_large, is_small = ops.greater_equal(a, _LARGE), ops.less(x, a + 1)
    takes_series = ops.logical_and(is_small, ops.logical_not(is_large))
    takes_fraction = ops.logical_not(ops.logical_or(is_small, is_large))
    series = _series(ops.where(takes_series, a, 1), ops.where(takes_series, x, 0), ops.where(takes_series, log_x, 0))
    fraction = _fraction(
        ops.where(takes_fraction, a, 1), ops.where(takes_fraction, x, 3), ops.where(takes_fraction, log_x, 0)
    )
    integral = _integral(ops.where(is_large, a, _LARGE), ops.where(is_large, x, _LARGE))
    is_below = ops.where(is_large, ops.less_equal(x, a - 1), is_small)
    part = Part(
        *(ops.where(is_large, i, ops.where(is_small, s, f)) for s, f, i in zip(series, fraction, integral, strict=True))
    )
    return is_below, part


def _weight(a: Any, x: Any, log_x: Any) -> Any:
    """x times the density at x."""
    is_large = ops.greater_equal(a, _LARGE)
    mode = ops.where(is_large, a, _LARGE) - 1
    inverse = 1 / (mode * mode)
    stirling = (1 / 12 - inverse * (1 / 360 - inverse / 1260)) / mode
    apart = ops.where(is_large, x, _LARGE)
    far = apart * ops.exp(_bend(apart, mode) - stirling) / ops.sqrt(mode * (2 * math.pi))
    few = ops.where(is_large, 1, a)
    return ops.where(is_large, far, ops.exp(few * log_x - ops.where(is_large, 0, x) - lgamma(few)))


def log_slope(a: Any, log_x: Any) -> Any:
    """Return the derivative of log x by a along which P(a, x) is constant: how a gamma number moves with its shape
    (M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization gradients", 2018)."""
    is_below, part = _parts(a, ops.exp(log_x), log_x)
    return ops.where(is_below, -part.slope, part.slope)


def _probability(a: Any, x: Any, is_upper: bool) -> Any:
    inside = ops.logical_and(ops.greater(x, 0), ops.isfinite(x))
    safe = ops.where(inside, x, 1)
    log_x = ops.log(safe)
    is_below, part = _parts(a, safe, log_x)
    part_of = part.probability * _weight(a, safe, log_x)
    asked = ops.where(ops.not_equal(is_below, is_upper), part_of, 1 - part_of)
    ends = ops.where(ops.equal(x, 0), float(is_upper), ops.where(ops.equal(x, math.inf), float(not is_upper), math.nan))
    valid = ops.logical_and(ops.greater(a, 0), ops.isfinite(a))
    return ops.where(valid, ops.where(inside, asked, ends), math.nan)


@custom_vjp
def _lower(a: Any, x: Any) -> Any:
    return _probability(a, x, False)


@custom_vjp
def _upper(a: Any, x: Any) -> Any:
    return _probability(a, x, True)


def _pulled(saved: Any, g: Any, sign: float) -> tuple[Any, Any]:
    a, x = saved
    safe = ops.where(ops.greater(x, 0), x, 1)
    log_x = ops.log(safe)
    is_below, part = _parts(a, safe, log_x)
    weight = ops.where(ops.greater(x, 0), _weight(a, safe, log_x), 0)
    by_a = ops.where(is_below, part.slope, -part.slope) * weight
    return g * by_a * sign, g * (weight / safe) * sign


_lower.defvjp(lambda a, x: (_lower.fn(a, x), (a, x)), lambda saved, g: _pulled(saved, g, 1.0))
_upper.defvjp(lambda a, x: (_upper.fn(a, x), (a, x)), lambda saved, g: _pulled(saved, g, -1.0))


def _elementwise(function: Any, a: Operand, x: Operand) -> Array:
    shape, value = meet(add_p, a, x)
    dtype = shape.dtype if shape.dtype.is_float else None
    left, right = broadcast_arrays(ops.cast(shape, float64), ops.cast(value, float64))
    return ops.cast(function(left, right), dtype or "float32")


def gammainc(a: Operand, x: Operand) -> Array:
    """P(a, x) = ∫₀ˣ tᵃ⁻¹·e⁻ᵗ dt / Γ(a), the regularized incomplete gamma function, in float64 with some 14 digits.
    NaN unless a > 0 and x ≥ 0. Gradients flow to both."""
    return _elementwise(_lower, a, x)


def gammaincc(a: Operand, x: Operand) -> Array:
    """Q(a, x) = 1 - P(a, x), with the digits of small ones for x > a + 1."""
    return _elementwise(_upper, a, x)
