"""Roots, exponentials, logarithms, powers and trigonometry, elementwise. Integers are converted to float32 first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import FLOATS, bool_, int64
from runnel.core.errors import DTypeError
from runnel.core.tables import Op, reference
from runnel.loops import scalar
from runnel.ops.arguments import Array, Operand
from runnel.ops.conversion import cast
from runnel.ops.creation_like import full_like
from runnel.ops.elementwise.arithmetic import add, divide, multiply, negative, subtract
from runnel.ops.elementwise.comparison import equal, greater_equal, logical_and, where
from runnel.ops.elementwise.rows import NUMBERS, computed_in_numpy, elementwise, partials
from runnel.ops.promotion import binary, common_dtype, unary_float

# --- roots and squares --------------------------------------------------------------------------------------------

sqrt_p = Op("sqrt", "x", "The square root of x.")
elementwise(sqrt_p, scalar.sqrt, FLOATS)
partials(sqrt_p, lambda g, out, x: divide(multiply(g, 0.5), out))


def sqrt(x: Operand) -> Array:
    """The square root; its derivative at 0 is infinite."""
    return unary_float(sqrt_p, x)


def square(x: Operand) -> Array:
    """x · x; of bools int64."""
    if getattr(x, "dtype", None) is bool_:
        x = cast(x, int64)
    return multiply(x, x)


def reciprocal(x: Operand) -> Array:
    """1 / x."""
    return divide(1.0, x)


def rsqrt(x: Operand) -> Array:
    """1 / sqrt(x)."""
    return divide(1.0, sqrt(x))


# --- exponentials and logarithms ----------------------------------------------------------------------------------

exp_p = Op("exp", "x", "e to the power x.")
elementwise(exp_p, scalar.exp, FLOATS)
partials(exp_p, lambda g, out, x: multiply(g, out))


def exp(x: Operand) -> Array:
    """e to the power x."""
    return unary_float(exp_p, x)


expm1_p = Op("expm1", "x", "exp(x) - 1, accurate near 0.")
elementwise(expm1_p, scalar.expm1, FLOATS)
partials(expm1_p, lambda g, out, x: multiply(g, exp(x)))  # where out is near -1, out + 1 has lost its digits


def expm1(x: Operand) -> Array:
    """exp(x) - 1, accurate near 0."""
    return unary_float(expm1_p, x)


log_p = Op("log", "x", "The natural logarithm of x.")
elementwise(log_p, scalar.log, FLOATS)
partials(log_p, lambda g, out, x: divide(g, x))


def log(x: Operand) -> Array:
    """The natural logarithm."""
    return unary_float(log_p, x)


log1p_p = Op("log1p", "x", "log(1 + x), accurate near 0.")
elementwise(log1p_p, scalar.log1p, FLOATS)
partials(log1p_p, lambda g, out, x: divide(g, add(x, 1)))


def log1p(x: Operand) -> Array:
    """log(1 + x), accurate near 0."""
    return unary_float(log1p_p, x)


log2_p = Op("log2", "x", "The binary logarithm of x.")
elementwise(log2_p, scalar.log2, FLOATS)
partials(log2_p, lambda g, out, x: divide(g, multiply(x, math.log(2))))


def log2(x: Operand) -> Array:
    """The binary logarithm."""
    return unary_float(log2_p, x)


def log10(x: Operand) -> Array:
    """The decimal logarithm."""
    return multiply(log(x), 1 / math.log(10))


# --- saturating functions -----------------------------------------------------------------------------------------

tanh_p = Op("tanh", "x", "The hyperbolic tangent of x.")
elementwise(tanh_p, scalar.tanh, FLOATS)
partials(tanh_p, lambda g, out, x: multiply(g, subtract(1, square(out))))


def tanh(x: Operand) -> Array:
    """The hyperbolic tangent."""
    return unary_float(tanh_p, x)


sigmoid_p = Op("sigmoid", "x", "1 / (1 + exp(-x)).")
elementwise(sigmoid_p, scalar.sigmoid, FLOATS)
partials(sigmoid_p, lambda g, out, x: multiply(g, multiply(out, subtract(1, out))))


def sigmoid(x: Operand) -> Array:
    """1 / (1 + exp(-x)), the logistic function."""
    return unary_float(sigmoid_p, x)


erf_p = Op("erf", "x", "The error function of x.")
elementwise(erf_p, scalar.erf, FLOATS)
partials(erf_p, lambda g, out, x: multiply(g, multiply(exp(negative(square(x))), 2 / math.sqrt(math.pi))))


def erf(x: Operand) -> Array:
    """The error function."""
    return unary_float(erf_p, x)


# --- trigonometry -------------------------------------------------------------------------------------------------

sin_p = Op("sin", "x", "The sine of x.")
elementwise(sin_p, scalar.sin, FLOATS)


def sin(x: Operand) -> Array:
    """The sine."""
    return unary_float(sin_p, x)


cos_p = Op("cos", "x", "The cosine of x.")
elementwise(cos_p, scalar.cos, FLOATS)
partials(cos_p, lambda g, out, x: negative(multiply(g, sin(x))))


def cos(x: Operand) -> Array:
    """The cosine."""
    return unary_float(cos_p, x)


partials(sin_p, lambda g, out, x: multiply(g, cos(x)))


# --- power --------------------------------------------------------------------------------------------------------


def _pow_reference(x: Any, y: Any) -> Any:
    if y.dtype.kind != "i":
        return np.power(x, y)
    made = np.power(x, np.maximum(y, 0))
    sign = np.where((x == -1) & (y & 1 == 1), -1, np.where(np.abs(x) == 1, 1, 0))
    return np.where(y < 0, sign, made).astype(x.dtype)


def _pow_by_base(g: Array, out: Array, x: Array, y: Array) -> Array:
    """y·x^(y-1), and 0 for y = 0 even where x^(y-1) is infinite."""
    return where(equal(y, 0), 0, multiply(g, multiply(y, binary(pow_p, x, subtract(y, 1)))))


def _pow_by_exponent(g: Array, out: Array, x: Array, y: Array) -> Array:
    """x^y·log x, and 0 for x = 0, y >= 0, where log x is infinite."""
    vanishes = logical_and(equal(x, 0), greater_equal(y, 0))
    return where(vanishes, 0, multiply(g, multiply(out, log(where(vanishes, 1, x)))))


pow_p = Op("pow", "x, y", "x to the power y; an integer to a negative one is its reciprocal rounded toward 0.")
elementwise(pow_p, scalar.pow_, NUMBERS)
reference.register(pow_p, computed_in_numpy(_pow_reference), replace=True)
partials(pow_p, _pow_by_base, _pow_by_exponent)


def pow(x: Operand, y: Operand) -> Array:
    """x to the power y. A small integer or 0.5 as a Python exponent becomes products or a square root; an integer to
    a negative power of an array is its reciprocal rounded toward 0."""
    if isinstance(x, TensorLike) and isinstance(y, int | float):
        known = _known_power(x, y)
        if known is not None:
            return known
    if isinstance(y, int) and y < 0 and not common_dtype(pow_p, (x, y)).is_inexact:
        raise DTypeError(f"[pow] integers have no power {y}; cast one operand to a float type.")
    return binary(pow_p, x, y)


def _known_power(x: Array, y: int | float) -> Array | None:
    if x.dtype.is_integer and isinstance(y, int) and y >= 0:
        return _repeated_product(x, y)
    if not x.dtype.is_inexact:
        return None
    if y == 0.5:
        return sqrt(x)
    if y in (0, 1, 2, 3, 4):
        return _repeated_product(x, int(y))
    if y in (-1, -2):
        return reciprocal(_repeated_product(x, int(-y)))
    return None


def _repeated_product(x: Array, n: int) -> Array:
    """x^n by repeated squaring."""
    if n == 0:
        return where(full_like(x, True, dtype=bool_), 1, x)  # with a gradient, which is 0
    result: Array = None
    power = x
    while True:
        if n & 1:
            result = power if result is None else multiply(result, power)
        n >>= 1
        if not n:
            return result
        power = square(power)
