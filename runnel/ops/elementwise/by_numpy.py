"""Elementwise ops that NumPy computes: greatest common divisors, and floats split as mantissa · 2^exponent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import ELEMENTWISE
from runnel.core.dispatch import apply
from runnel.core.dtypes import FLOATS, INTEGERS, int32
from runnel.core.rules import TRANSPOSED
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.loops.rules import HostCall
from runnel.ops.arguments import Array, Operand, require_dtype
from runnel.ops.conversion import cast
from runnel.ops.elementwise.arithmetic import abs, floor_divide, maximum, multiply, negative
from runnel.ops.elementwise.exponential import pow
from runnel.ops.elementwise.rows import meeting_shape, partials, per_element
from runnel.ops.promotion import alike, binary

gcd_p = Op("gcd", "x, y", "The greatest common divisor of |x| and |y|; of zeros, 0.", is_late=True)
lower.register(gcd_p, HostCall())
reference.register(gcd_p, lambda x, y: np.asarray(np.gcd(x, y)))
cost.register(gcd_p, per_element)
axes.register(gcd_p, ELEMENTWISE)
partials(gcd_p, None, None)


@abstract_eval.rule(gcd_p)
def _gcd_abstract_eval(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    require_dtype("gcd", x.dtype, INTEGERS)
    return aval(meeting_shape(gcd_p, x, y), x.dtype)


def gcd(x: Operand, y: Operand) -> Array:
    """Return the greatest common divisor of the absolute values of integers; 0 for zeros."""
    return binary(gcd_p, x, y)


def lcm(x: Operand, y: Operand) -> Array:
    """Return the least common multiple of the absolute values of integers; 0 where one of them is 0."""
    a, b = alike(gcd_p, x, y)
    divisor = binary(gcd_p, a, b)
    return abs(multiply(floor_divide(a, maximum(divisor, 1)), b))


class Frexp(NamedTuple):
    """A mantissa in ±[0.5, 1), or x where it is 0 or not finite, and an exponent of 2."""

    mantissa: Array
    exponent: Array


frexp_p = Op("frexp", "x", "Mantissas and exponents of floats.", multiple_results=True, is_late=True)
lower.register(frexp_p, HostCall())
axes.register(frexp_p, ELEMENTWISE)
cost.register(frexp_p, per_element)
jvp.register(frexp_p, TRANSPOSED)


@abstract_eval.rule(frexp_p)
def _frexp_abstract_eval(x: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    require_dtype("frexp", x.dtype, FLOATS)
    return x, aval(x.shape, int32)


@reference.rule(frexp_p)
def _frexp_reference(x: Any) -> tuple[Any, Any]:
    mantissa, exponent = np.frexp(x if x.dtype.kind == "f" else x.astype(np.float32))  # NumPy has no rule of bfloat16
    return np.asarray(mantissa, x.dtype), np.asarray(np.where(np.isfinite(mantissa), exponent, 0), np.int32)


@vjp.rule(frexp_p)
def _frexp_vjp(gs: Any, outs: Any, x: Array, *, needs_grad: Any) -> tuple[Any]:
    if gs[0] is None:
        return (None,)
    power = cast(negative(outs[1]), x.dtype)
    return (multiply(gs[0], pow(2.0, power)),)


def frexp(x: Array) -> Frexp:
    """Split x as mantissa · 2^exponent: a named tuple (mantissa, exponent).

    The mantissa is in ±[0.5, 1), the exponent is int32. For 0, infinities and NaN, the mantissa is x and the
    exponent 0."""
    return Frexp(*apply(frexp_p, x))
