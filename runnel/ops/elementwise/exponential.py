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
from runnel.ops.elementwise.rows import NUMBERS, Unary, computed_in_numpy, elementwise, partials, unary_function
from runnel.ops.promotion import binary, common_dtype, unary_float

# Functions that derivatives in rows above their own call.
cos: Unary

# --- roots and squares --------------------------------------------------------------------------------------------

sqrt_p, sqrt = unary_function(
    "sqrt", scalar.sqrt, FLOATS, lambda g, out, x: divide(multiply(g, 0.5), out),
    "Return the square root of x, with an infinite derivative at 0; NaN below 0.", through=unary_float,
)  # fmt: skip


def square(x: Operand) -> Array:
    """Return x · x; the result is int64 for bools."""
    if getattr(x, "dtype", None) is bool_:
        x = cast(x, int64)
    return multiply(x, x)


def reciprocal(x: Operand) -> Array:
    """Return 1 / x."""
    return divide(1.0, x)


def rsqrt(x: Operand) -> Array:
    """Return 1 / sqrt(x)."""
    return divide(1.0, sqrt(x))


# --- exponentials and logarithms ----------------------------------------------------------------------------------

exp_p, exp = unary_function(
    "exp", scalar.exp, FLOATS, lambda g, out, x: multiply(g, out),
    "Return e to the power x.", through=unary_float,
)  # fmt: skip
expm1_p, expm1 = unary_function(
    "expm1", scalar.expm1, FLOATS, lambda g, out, x: multiply(g, exp(x)),  # out + 1 loses digits where out is near -1
    "Return exp(x) - 1, accurate near 0.", through=unary_float,
)  # fmt: skip
log_p, log = unary_function(
    "log", scalar.log, FLOATS, lambda g, out, x: divide(g, x),
    "Return the natural logarithm of x: -∞ at 0, NaN below 0.", through=unary_float,
)  # fmt: skip
log1p_p, log1p = unary_function(
    "log1p", scalar.log1p, FLOATS, lambda g, out, x: divide(g, add(x, 1)),
    "Return log(1 + x), accurate near 0.", through=unary_float,
)  # fmt: skip
log2_p, log2 = unary_function(
    "log2", scalar.log2, FLOATS, lambda g, out, x: divide(g, multiply(x, math.log(2))),
    "Return the binary logarithm of x.", through=unary_float,
)  # fmt: skip


def log10(x: Operand) -> Array:
    """Return the decimal logarithm of x."""
    return multiply(log(x), 1 / math.log(10))


# --- saturating functions -----------------------------------------------------------------------------------------

tanh_p, tanh = unary_function(
    "tanh", scalar.tanh, FLOATS, lambda g, out, x: multiply(g, subtract(1, square(out))),
    "Return the hyperbolic tangent of x.", through=unary_float,
)  # fmt: skip
sigmoid_p, sigmoid = unary_function(
    "sigmoid", scalar.sigmoid, FLOATS, lambda g, out, x: multiply(g, multiply(out, subtract(1, out))),
    "Return the logistic function 1 / (1 + exp(-x)).", through=unary_float,
)  # fmt: skip
erf_p, erf = unary_function(
    "erf", scalar.erf, FLOATS,
    lambda g, out, x: multiply(g, multiply(exp(negative(square(x))), 2 / math.sqrt(math.pi))),
    "Return the error function of x.", through=unary_float,
)  # fmt: skip

# --- trigonometry -------------------------------------------------------------------------------------------------

sin_p, sin = unary_function(
    "sin", scalar.sin, FLOATS, lambda g, out, x: multiply(g, cos(x)),
    "Return the sine of x, in radians.", through=unary_float,
)  # fmt: skip
cos_p, cos = unary_function(
    "cos", scalar.cos, FLOATS, lambda g, out, x: negative(multiply(g, sin(x))),
    "Return the cosine of x, in radians.", through=unary_float,
)  # fmt: skip


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
    """Return x to the power y.

    A Python exponent that is 0.5 or a small integer is computed by a square root or products. An integer to the power
    of a negative array is its reciprocal rounded toward 0; DTypeError for a negative Python int as the exponent."""
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
    """Return xⁿ by repeated squaring."""
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
