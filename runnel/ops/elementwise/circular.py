"""Circular and hyperbolic functions and their inverses; angles, lengths and signs of two numbers.

Errors in float64 are a few units in the last place. float32 and half precision are computed in float64.
"""

from __future__ import annotations

import functools

import numpy as np

from runnel.core.dtypes import FLOATS, bool_
from runnel.core.rules import ByNumPy
from runnel.core.tables import Op
from runnel.loops.formulas import circular, series
from runnel.ops.arguments import Array, Operand
from runnel.ops.creation_like import full_like
from runnel.ops.elementwise.arithmetic import add, divide, multiply, negative, subtract
from runnel.ops.elementwise.comparison import equal, where
from runnel.ops.elementwise.complex_parts import conjugated_rule
from runnel.ops.elementwise.exponential import sqrt, square
from runnel.ops.elementwise.rows import NUMBERS, Unary, elementwise, function_of_floats, partials, scalar_operation
from runnel.ops.promotion import binary_float, unary

# Functions that derivatives in rows above their own call.
cosh: Unary


def _one_less_square(x: Array) -> Array:
    """Return 1 - x²."""
    return multiply(subtract(1, x), add(x, 1))


def _acosh_vjp(g: Array, out: Array, x: Array) -> tuple[Array]:
    """Have the branch cut of acosh, which √(x² - 1) has not."""
    return (divide(g, multiply(sqrt(subtract(x, 1)), sqrt(add(x, 1)))),)


# --- functions of one number --------------------------------------------------------------------------------------

_, tan = function_of_floats(
    "tan", circular.tan, 70, lambda g, out, x: multiply(g, add(square(out), 1)),
    "Return the tangent of x.", complex_rule=ByNumPy(numpy=np.tan),
)  # fmt: skip
_, asin = function_of_floats(
    "asin", circular.asin, 60, lambda g, out, x: divide(g, sqrt(_one_less_square(x))),
    "Return the arc sine of x, in [-π/2, π/2].", complex_rule=ByNumPy(numpy=np.arcsin),
)  # fmt: skip
_, acos = function_of_floats(
    "acos", circular.acos, 60, lambda g, out, x: negative(divide(g, sqrt(_one_less_square(x)))),
    "Return the arc cosine of x, in [0, π].", complex_rule=ByNumPy(numpy=np.arccos),
)  # fmt: skip
_, atan = function_of_floats(
    "atan", circular.atan, 50, lambda g, out, x: divide(g, add(square(x), 1)),
    "Return the arc tangent of x, in [-π/2, π/2].", complex_rule=ByNumPy(numpy=np.arctan),
)  # fmt: skip
_, sinh = function_of_floats(
    "sinh", circular.sinh, 50, lambda g, out, x: multiply(g, cosh(x)),
    "Return the hyperbolic sine of x.", complex_rule=ByNumPy(numpy=np.sinh),
)  # fmt: skip
_, cosh = function_of_floats(
    "cosh", circular.cosh, 50, lambda g, out, x: multiply(g, sinh(x)),
    "Return the hyperbolic cosine of x.", complex_rule=ByNumPy(numpy=np.cosh),
)  # fmt: skip
_, asinh = function_of_floats(
    "asinh", circular.asinh, 110, lambda g, out, x: divide(g, sqrt(add(square(x), 1))),
    "Return the inverse hyperbolic sine of x.", complex_rule=ByNumPy(numpy=np.arcsinh),
)  # fmt: skip
_, acosh = function_of_floats(
    "acosh", circular.acosh, 110, lambda g, out, x: divide(g, sqrt(multiply(subtract(x, 1), add(x, 1)))),
    "Return the inverse hyperbolic cosine of x; NaN below 1.",
    complex_rule=ByNumPy(functools.partial(conjugated_rule, _acosh_vjp), np.arccosh),
)  # fmt: skip
_, atanh = function_of_floats(
    "atanh", circular.atanh, 60, lambda g, out, x: divide(g, _one_less_square(x)),
    "Return the inverse hyperbolic tangent of x: ±∞ at ±1, NaN outside [-1, 1].",
    complex_rule=ByNumPy(numpy=np.arctanh),
)  # fmt: skip

# --- functions of two numbers -------------------------------------------------------------------------------------


def _square_distance(x: Array, y: Array) -> Array:
    """Return x² + y², and 1 at the origin, where the derivatives of the angle are 0."""
    square_sum = add(square(x), square(y))
    return where(equal(square_sum, 0), 1, square_sum)


atan2_p = Op("atan2", "y, x", "The angle of the point (x, y).", is_late=True)
elementwise(atan2_p, scalar_operation("atan2", 2, circular.atan2, 60), FLOATS)
partials(
    atan2_p,
    lambda g, out, y, x: multiply(g, divide(x, _square_distance(x, y))),
    lambda g, out, y, x: multiply(g, divide(negative(y), _square_distance(x, y))),
)


def atan2(y: Operand, x: Operand) -> Array:
    """Return the angle of the point (x, y), in [-π, π]."""
    return binary_float(atan2_p, y, x)


hypot_p = Op("hypot", "x, y", "√(x² + y²).", is_late=True)
elementwise(hypot_p, scalar_operation("hypot", 2, circular.hypot, 20), FLOATS)
partials(hypot_p, lambda g, out, x, y: multiply(g, divide(x, out)), lambda g, out, x, y: multiply(g, divide(y, out)))


def hypot(x: Operand, y: Operand) -> Array:
    """Return √(x² + y²), without overflow."""
    return binary_float(hypot_p, x, y)


def _copysign_slope(g: Array, out: Array, x: Array, y: Array) -> Array:
    """PyTorch's derivative by x: out / x, and 0 at 0."""
    is_zero = equal(x, 0)
    return where(is_zero, 0, multiply(g, divide(out, where(is_zero, 1, x))))


copysign_p = Op("copysign", "x, y", "|x| with the sign of y.", is_late=True)
elementwise(copysign_p, scalar_operation("copysign", 2, series.copysign, 2, on_bits=True), FLOATS)
partials(copysign_p, _copysign_slope, None)


def copysign(x: Operand, y: Operand) -> Array:
    """Return |x| with the sign of y, also where y is ±0. The derivative by x is 0 at 0."""
    return binary_float(copysign_p, x, y)


signbit_p = Op("signbit", "x", "True where x has a minus sign, zeros and NaN included.", is_late=True)
elementwise(
    signbit_p,
    scalar_operation("signbit", 1, series.signbit, 1, result="bool", on_bits=True, kinds=("int", "uint", "float")),
    NUMBERS,
)
partials(signbit_p, None)


def signbit(x: Array) -> Array:
    """Return whether each element has a minus sign, also -0 and NaN; False for bools."""
    return full_like(x, False) if x.dtype is bool_ else unary(signbit_p, x)


nextafter_p = Op("nextafter", "x, y", "The number next to x on the way to y.", is_late=True)
_NEXTAFTER = scalar_operation("nextafter", 2, series.nextafter, 6, on_bits=True)
elementwise(nextafter_p, _NEXTAFTER, FLOATS, in_numpy=_NEXTAFTER.numpy)
partials(nextafter_p, lambda g, out, x, y: where(equal(x, y), 0, g), None)


def nextafter(x: Operand, y: Operand) -> Array:
    """Return the next number of the dtype after x in the direction of y. The derivative by x is 1, and 0 if x = y."""
    return binary_float(nextafter_p, x, y)
