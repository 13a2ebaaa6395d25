"""Compositions of elementwise ops: remainders, angles, stable logarithms, replacement of NaN, polar form."""

from __future__ import annotations

import math
from typing import Any

from runnel.core.dispatch import ViewStep
from runnel.core.dtype_info import finfo
from runnel.core.dtypes import DType, bool_, complex128, float32, float64
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array, Operand
from runnel.ops.conversion import cast
from runnel.ops.creation_like import full_like, zeros_like
from runnel.ops.elementwise.arithmetic import (
    abs,
    add,
    add_p,
    divide,
    maximum,
    multiply,
    negative,
    remainder,
    remainder_p,
    round,
    sign,
    subtract,
    trunc,
)
from runnel.ops.elementwise.circular import atan2
from runnel.ops.elementwise.comparison import (
    equal,
    greater,
    greater_equal,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    where,
)
from runnel.ops.elementwise.complex_parts import complex, conj, imag, real
from runnel.ops.elementwise.exponential import cos, exp, log, log1p, pow, sin, sqrt
from runnel.ops.promotion import meet
from runnel.ops.reductions.primitives import all
from runnel.ops.reductions.statistics import clip, rounded_as, wide_dtype
from runnel.ops.shapes.pieces import narrow, stack
from runnel.ops.shapes.views import squeeze


def _floats(*operands: Any) -> list[Array]:
    """Convert the operands to one float dtype and one rank; integers become float32."""
    own = meet(add_p, *operands)
    return own if own[0].dtype.is_float else [cast(x, float32) for x in own]


def _inexact(*operands: Any) -> list[Array]:
    """Convert the operands as :func:`_floats` does, or to one complex dtype."""
    own = meet(add_p, *operands)
    return own if own[0].dtype.is_inexact else [cast(x, float32) for x in own]


def in_float64(x: Array) -> tuple[Array, DType]:
    """Return ``x`` in float64, and the dtype to which the result is rounded once."""
    (own,) = _floats(x)
    return cast(own, float64), own.dtype


# --- remainders and signs -----------------------------------------------------------------------------------------


def rsub(x: Array, y: Operand, alpha: float = 1) -> Array:
    """Return y - alpha·x."""
    return subtract(y, multiply(x, alpha))


def fmod(x: Operand, y: Operand) -> Array:
    """Return the remainder of division rounded toward 0, which has the sign of x (C's fmod); an integer by 0 is 0."""
    a, b = meet(remainder_p, x, y)
    if a.dtype.is_integer:
        rest = remainder(a, b)
        crosses = logical_and(logical_xor(less(a, 0), less(b, 0)), rest)
        return where(crosses, subtract(rest, b), rest)
    size = remainder(where(less(a, 0), negative(a), a), where(less(b, 0), negative(b), b))
    return where(less(a, 0), negative(size), size)


def frac(x: Array) -> Array:
    """Return x - trunc(x), the fraction, with the sign of x."""
    return subtract(x, trunc(x))


def sgn(x: Array) -> Array:
    """Return -1, 0 or 1 by the sign of x."""
    return sign(x)


def positive(x: Array) -> Array:
    """Return x."""
    return x


def heaviside(x: Operand, values: Operand) -> Array:
    """Return 0 where x is negative, 1 where it is positive, ``values`` where it is 0; NaN stays NaN."""
    a, b = meet(add_p, x, values)
    step = where(greater(a, 0), 1, where(less(a, 0), 0, where(equal(a, 0), b, a)))
    return cast(step, a.dtype)


def fmax(x: Operand, y: Operand) -> Array:
    """Return the larger of x and y, or the one that is a number if the other is NaN. If they are equal, x has the
    gradient."""
    a, b = meet(add_p, x, y)
    return where(logical_or(greater_equal(a, b), isnan(b)), a, b)


def fmin(x: Operand, y: Operand) -> Array:
    """Return the smaller of x and y, or the one that is a number if the other is NaN. If they are equal, x has the
    gradient."""
    a, b = meet(add_p, x, y)
    return where(logical_or(less_equal(a, b), isnan(b)), a, b)


# --- angles and powers --------------------------------------------------------------------------------------------


def deg2rad(x: Array) -> Array:
    """Convert degrees to radians."""
    wide, dtype = in_float64(x)
    return cast(multiply(wide, math.pi / 180), dtype)


def rad2deg(x: Array) -> Array:
    """Convert radians to degrees."""
    wide, dtype = in_float64(x)
    return cast(multiply(wide, 180 / math.pi), dtype)


def exp2(x: Array) -> Array:
    """Return 2 to the power x."""
    (own,) = _inexact(x)
    return pow(2.0, own)


def float_power(x: Operand, y: Operand) -> Array:
    """Return x to the power y, in float64 or complex128."""
    a, _ = meet(add_p, x, y)
    wide = complex128 if a.dtype.is_complex else float64
    return pow(*meet(add_p, x, y, dtype=wide))


def ldexp(x: Array, exponent: Operand) -> Array:
    """Return x · 2^exponent."""
    a, b = _inexact(x, exponent)
    return multiply(a, pow(2.0, b))


# --- logarithms ---------------------------------------------------------------------------------------------------


def xlogy(x: Operand, y: Operand) -> Array:
    """Return x · log y, and 0 where x is 0 unless y is NaN."""
    return _times_log(x, y, log, 0, math.inf)


def xlog1py(x: Operand, y: Operand) -> Array:
    """Return x · log(1 + y), and 0 where x is 0 unless y is NaN."""
    return _times_log(x, y, log1p, -1, math.inf)


def _times_log(x: Operand, y: Operand, logarithm: Any, pole: float, top: float) -> Array:
    a, b = _floats(x, y)
    vanishes = logical_and(equal(a, 0), logical_or(less_equal(b, pole), equal(b, top)))
    return where(vanishes, 0, multiply(a, logarithm(where(vanishes, 1, b))))


def logaddexp(x: Operand, y: Operand) -> Array:
    """Return log(eˣ + eʸ), without overflow."""
    a, b = _inexact(x, y)
    if a.dtype.is_complex:
        first = greater_equal(real(a), real(b))
        top = where(first, a, b)
        rest = where(equal(a, b), 0, subtract(where(first, b, a), top))
        return add(top, log1p(exp(rest)))
    gap = abs(where(equal(a, b), 0, subtract(a, b)))
    return add(maximum(a, b), log1p(exp(negative(gap))))


def logaddexp2(x: Operand, y: Operand) -> Array:
    """Return log₂(2ˣ + 2ʸ), without overflow."""
    a, b = _floats(x, y)
    gap = abs(where(equal(a, b), 0, subtract(a, b)))
    return add(maximum(a, b), divide(log1p(pow(2.0, negative(gap))), math.log(2)))


def logit(x: Array, eps: float | None = None) -> Array:
    """Return log(x / (1 - x)), with x limited to [eps, 1 - eps].

    Without ``eps``, the value and the derivative are NaN outside [0, 1]."""
    p = cast(x, wide_dtype(x))
    if eps is not None:
        p = clip(p, eps, 1 - eps)
        return rounded_as(subtract(log(p), log1p(negative(p))), x)
    inside = logical_and(greater_equal(p, 0), less_equal(p, 1))
    return rounded_as(multiply(subtract(log(p), log1p(negative(p))), cast(where(inside, 1.0, math.nan), p.dtype)), x)


def entr(x: Array) -> Array:
    """Return -x · log x: 0 at 0, where the derivative is ∞, and -∞ below 0, where the derivative is NaN."""
    (p,) = _floats(x)
    below, is_zero = less(p, 0), equal(p, 0)
    inside = logical_not(less_equal(p, 0))
    above = negative(multiply(p, log(where(inside, p, 1))))
    minus = log(multiply(where(logical_and(below, greater(p, -math.inf)), p, where(below, -1, 1)), 0))
    return where(inside, above, where(is_zero, sqrt(where(is_zero, p, 1)), minus))


def sinc(x: Array) -> Array:
    """Return sin(πx) / (πx), and 1 at 0."""
    (own,) = _inexact(x)
    wide, dtype = cast(own, complex128 if own.dtype.is_complex else float64), own.dtype
    is_zero = equal(wide, 0)
    safe = where(is_zero, 1, wide)
    turned = subtract(safe, multiply(round(multiply(real(safe), 0.5)), 2))  # exact, so that large x keep their digits
    return cast(where(is_zero, 1, divide(sin(multiply(turned, math.pi)), multiply(safe, math.pi))), dtype)


# --- what is not finite, and what is near -------------------------------------------------------------------------


def nan_to_num(x: Array, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Array:
    """Replace NaN by ``nan`` (0), and infinities by ``posinf`` and ``neginf``.

    These are the largest and the smallest number of the dtype by default. Replaced elements have no gradient."""
    if not x.dtype.is_float:
        return x.handle()
    top = float(finfo(x.dtype).max)
    x = where(isnan(x), 0.0 if nan is None else nan, x)
    x = where(equal(x, math.inf), top if posinf is None else posinf, x)
    return where(equal(x, -math.inf), -top if neginf is None else neginf, x)


def isposinf(x: Array) -> Array:
    """Return whether each element is +∞."""
    return logical_and(isinf(x), greater(x, 0))


def isneginf(x: Array) -> Array:
    """Return whether each element is -∞."""
    return logical_and(isinf(x), less(x, 0))


def isclose(x: Operand, y: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    """Return whether |x - y| ≤ atol + rtol·|y|, elementwise.

    Equal infinities are close; NaN is close to NaN only with ``equal_nan``. ValueError for a negative tolerance."""
    if not (rtol >= 0 and atol >= 0):
        raise ValueError(f"[isclose] tolerances must not be negative; got rtol={rtol!r}, atol={atol!r}.")
    a, b = meet(add_p, x, y)
    if not a.dtype.is_inexact or a.dtype.itemsize < 4:
        wide = float32 if a.dtype.is_float else float64
        a, b = cast(a, wide), cast(b, wide)
    distance = abs(subtract(a, b))
    near = logical_and(less(distance, math.inf), less_equal(distance, add(multiply(abs(b), rtol), atol)))
    near = logical_or(near, equal(a, b))
    return logical_or(near, logical_and(isnan(a), isnan(b))) if equal_nan else near


def allclose(x: Operand, y: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Return whether :func:`isclose` holds everywhere, as a Python bool.

    In a compiled function, use ``rn.all(rn.isclose(x, y))``."""
    return bool(all(isclose(x, y, rtol, atol, equal_nan)))


def array_equal(x: Array, y: Array) -> bool:
    """Return whether shapes and all elements are equal, as a Python bool."""
    return x.shape == y.shape and bool(all(equal(x, y)))


# --- complex numbers of real arrays -------------------------------------------------------------------------------


def isreal(x: Array) -> Array:
    """Return whether the imaginary part of each element is 0, also for NaN."""
    return equal(imag(x), 0) if x.dtype.is_complex else full_like(x, True, dtype=bool_)


def conj_physical(x: Array) -> Array:
    """Return the complex conjugate."""
    return conj(x)


def resolved(x: Array) -> Array:
    """Return ``x``: conjugates and negatives are never delayed."""
    return x


def angle(x: Array) -> Array:
    """Return the angle of complex numbers, in [-π, π]; for real numbers 0 or π by the sign."""
    if x.dtype.is_complex:
        return atan2(imag(x), real(x))
    own = x if x.dtype.is_float else cast(x, float32)
    return where(isnan(own), math.nan, where(less(own, 0), math.pi, zeros_like(own)))


def polar(abs: Array, angle: Array) -> Array:
    """Return the complex numbers with absolute values ``abs`` and angles ``angle``."""
    return complex(multiply(abs, cos(angle)), multiply(abs, sin(angle)))


def view_as_real(x: Array) -> Array:
    """Return the real and imaginary parts of complex numbers along a new last axis of size 2, as a view."""
    view: Array = x.view_by(_AS_REAL)
    return view


def view_as_complex(x: Array) -> Array:
    """Return the complex numbers whose parts lie along the last axis, of size 2."""
    if not x.ndim or x.shape[-1] != 2:
        raise ShapeError(f"[view_as_complex] the last axis holds two parts; got shape {x.shape}.")
    view: Array = x.view_by(_AS_COMPLEX)
    return view


def _joined(x: Array) -> Array:
    return complex(squeeze(narrow(x, -1, 0, 1), -1), squeeze(narrow(x, -1, 1, 1), -1))


def _split(x: Array) -> Array:
    return stack([real(x), imag(x)], -1)


_AS_REAL = ViewStep(_split, lambda x, new: _joined(new), lambda shape, s: ((*shape, 2), (*[2 * n for n in s], 1)))
_AS_COMPLEX = ViewStep(
    _joined, lambda x, new: _split(new), lambda shape, s: (shape[:-1], tuple(n // 2 for n in s[:-1]))
)
