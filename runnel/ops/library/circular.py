"""Circular and hyperbolic functions and their inverses; angles, lengths and signs of two numbers.

Errors in float64 are a few units in the last place; float32 and half precision are computed in float64.
"""

from __future__ import annotations

import functools

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import ELEMENTWISE
from runnel.core.complexes import ByNumPy
from runnel.core.dtypes import FLOATS, bool_
from runnel.core.tables import Op, abstract_eval, axes, complex_rules, cost, lower, reference
from runnel.loops.formulas import circular, series
from runnel.loops.ir import Apply
from runnel.loops.rules import Elementwise
from runnel.ops.arguments import Array, Operand, require_dtype
from runnel.ops.arithmetic import add, divide, multiply, negative, subtract
from runnel.ops.comparison import equal
from runnel.ops.creation_like import full_like
from runnel.ops.family import NUMBERS, elementwise, meeting_shape, partials, per_element
from runnel.ops.library.holomorphic import conjugated_rule
from runnel.ops.library.scalars import function_of_floats, scalar_operation
from runnel.ops.logic import where
from runnel.ops.promotion import binary_float, unary, unary_float
from runnel.ops.transcendental import sqrt, square

tan_p = function_of_floats("tan", "x", "The tangent of x.", circular.tan, 70)
sinh_p = function_of_floats("sinh", "x", "The hyperbolic sine of x.", circular.sinh, 50)
cosh_p = function_of_floats("cosh", "x", "The hyperbolic cosine of x.", circular.cosh, 50)
asinh_p = function_of_floats("asinh", "x", "The inverse hyperbolic sine of x.", circular.asinh, 110)
acosh_p = function_of_floats("acosh", "x", "The inverse hyperbolic cosine of x.", circular.acosh, 110)
atanh_p = function_of_floats("atanh", "x", "The inverse hyperbolic tangent of x.", circular.atanh, 60)
hypot_p = function_of_floats("hypot", "x, y", "√(x² + y²).", circular.hypot, 20)
partials(hypot_p, lambda g, out, x, y: multiply(g, divide(x, out)), lambda g, out, x, y: multiply(g, divide(y, out)))


def _one_less_square(x: Array) -> Array:
    return multiply(subtract(1, x), add(x, 1))


def _cosine(x: Array) -> Array:
    """Of the arc sine."""
    return sqrt(_one_less_square(x))


# --- signs and neighbours -----------------------------------------------------------------------------------------

copysign_p = Op("copysign", "x, y", "|x| with the sign of y.", is_late=True)
elementwise(copysign_p, scalar_operation("copysign", 2, series.copysign, 2, on_bits=True), FLOATS)
signbit_p = Op("signbit", "x", "Whether x has a minus sign, zeros and NaN included.", is_late=True)
elementwise(
    signbit_p,
    scalar_operation("signbit", 1, series.signbit, 1, result="bool", on_bits=True, kinds=("int", "uint", "float")),
    NUMBERS,
)
partials(signbit_p, None)
nextafter_p = Op("nextafter", "x, y", "The number next to x on the way to y.", is_late=True)
_NEXTAFTER = scalar_operation("nextafter", 2, series.nextafter, 6, on_bits=True)
reference.register(nextafter_p, _NEXTAFTER.numpy)
lower.register(nextafter_p, Elementwise(lambda avals, *xs: Apply(_NEXTAFTER, xs, avals[-1].dtype)))
cost.register(nextafter_p, per_element)
axes.register(nextafter_p, ELEMENTWISE)
partials(nextafter_p, lambda g, out, x, y: where(equal(x, y), 0, g), None)


@abstract_eval.rule(nextafter_p)
def _nextafter_abstract_eval(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    require_dtype("nextafter", x.dtype, FLOATS)
    return aval(meeting_shape(nextafter_p, x, y), x.dtype)


def _side(g: Array, out: Array, x: Array, y: Array) -> Array:
    """PyTorch's derivative by x: out / x, and 0 at 0."""
    is_zero = equal(x, 0)
    return where(is_zero, 0, multiply(g, divide(out, where(is_zero, 1, x))))


# --- functions ----------------------------------------------------------------------------------------------------


def tan(x: Operand) -> Array:
    """The tangent."""
    return unary_float(tan_p, x)


def asin(x: Operand) -> Array:
    """The arc sine, in [-π/2, π/2]."""
    return unary_float(asin_p, x)


def acos(x: Operand) -> Array:
    """The arc cosine, in [0, π]."""
    return unary_float(acos_p, x)


def atan(x: Operand) -> Array:
    """The arc tangent, in [-π/2, π/2]."""
    return unary_float(atan_p, x)


def atan2(y: Operand, x: Operand) -> Array:
    """The angle of the point (x, y), in [-π, π]."""
    return binary_float(atan2_p, y, x)


def sinh(x: Operand) -> Array:
    """The hyperbolic sine."""
    return unary_float(sinh_p, x)


def cosh(x: Operand) -> Array:
    """The hyperbolic cosine."""
    return unary_float(cosh_p, x)


def asinh(x: Operand) -> Array:
    """The inverse hyperbolic sine."""
    return unary_float(asinh_p, x)


def acosh(x: Operand) -> Array:
    """The inverse hyperbolic cosine; NaN below 1."""
    return unary_float(acosh_p, x)


def atanh(x: Operand) -> Array:
    """The inverse hyperbolic tangent."""
    return unary_float(atanh_p, x)


def hypot(x: Operand, y: Operand) -> Array:
    """√(x² + y²), without overflow."""
    return binary_float(hypot_p, x, y)


def copysign(x: Operand, y: Operand) -> Array:
    """|x| with the sign of y, of zeros, too. The derivative by x at 0 is 0."""
    return binary_float(copysign_p, x, y)


def signbit(x: Array) -> Array:
    """Whether each element has a minus sign, -0 included; no bool has one."""
    return full_like(x, False) if x.dtype is bool_ else unary(signbit_p, x)


def nextafter(x: Operand, y: Operand) -> Array:
    """The number of the dtype next to x on the way to y. Its derivative is that of x, and 0 where they are equal."""
    return binary_float(nextafter_p, x, y)


# --- derivatives --------------------------------------------------------------------------------------------------

partials(tan_p, lambda g, out, x: multiply(g, add(square(out), 1)))
asin_p = function_of_floats("asin", "x", "The arc sine of x.", circular.asin, 60)
partials(asin_p, lambda g, out, x: divide(g, _cosine(x)))
acos_p = function_of_floats("acos", "x", "The arc cosine of x.", circular.acos, 60)
partials(acos_p, lambda g, out, x: negative(divide(g, _cosine(x))))
atan_p = function_of_floats("atan", "x", "The arc tangent of x.", circular.atan, 50)
partials(atan_p, lambda g, out, x: divide(g, add(square(x), 1)))


def _square_distance(x: Array, y: Array) -> Array:
    """x² + y², and 1 at the origin, where the derivatives of the angle are 0."""
    square_sum = add(square(x), square(y))
    return where(equal(square_sum, 0), 1, square_sum)


atan2_p = function_of_floats("atan2", "y, x", "The angle of the point (x, y).", circular.atan2, 60)
partials(
    atan2_p,
    lambda g, out, y, x: multiply(g, divide(x, _square_distance(x, y))),
    lambda g, out, y, x: multiply(g, divide(negative(y), _square_distance(x, y))),
)
partials(sinh_p, lambda g, out, x: multiply(g, cosh(x)))
partials(cosh_p, lambda g, out, x: multiply(g, sinh(x)))
partials(asinh_p, lambda g, out, x: divide(g, sqrt(add(square(x), 1))))
partials(acosh_p, lambda g, out, x: divide(g, sqrt(multiply(subtract(x, 1), add(x, 1)))))
partials(atanh_p, lambda g, out, x: divide(g, _one_less_square(x)))
partials(copysign_p, _side, None)


def _acosh_vjp(g: Array, out: Array, x: Array) -> tuple[Array]:
    """In one piece but for the cut of acosh, which √(x² - 1) is not."""
    return (divide(g, multiply(sqrt(subtract(x, 1)), sqrt(add(x, 1)))),)


for _op, _numpy in (
    (tan_p, np.tan), (asin_p, np.arcsin), (acos_p, np.arccos), (atan_p, np.arctan), (sinh_p, np.sinh),
    (cosh_p, np.cosh), (asinh_p, np.arcsinh), (atanh_p, np.arctanh),
):  # fmt: skip
    complex_rules.register(_op, ByNumPy(numpy=_numpy))
complex_rules.register(acosh_p, ByNumPy(functools.partial(conjugated_rule, _acosh_vjp), np.arccosh))
