"""Greatest common divisors and least common multiples, by NumPy."""

from __future__ import annotations

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import ELEMENTWISE
from runnel.core.dtypes import INTEGERS
from runnel.core.tables import Op, abstract_eval, axes, cost, lower, reference
from runnel.loops.rules import HostCall
from runnel.ops.arguments import Array, Operand, require_dtype
from runnel.ops.arithmetic import abs, floor_divide, maximum, multiply
from runnel.ops.family import meeting_shape, partials, per_element
from runnel.ops.promotion import alike, binary

gcd_p = Op("gcd", "x, y", "The greatest common divisor of |x| and |y|; of zeros, 0.", is_late=True)
lower.register(gcd_p, HostCall())
reference.register(gcd_p, lambda x, y: np.asarray(np.gcd(x, y)))
cost.register(gcd_p, per_element)
axes.register(gcd_p, ELEMENTWISE)
partials(gcd_p, None, None)


@abstract_eval.rule(gcd_p)
def _abstract_eval(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    require_dtype("gcd", x.dtype, INTEGERS)
    return aval(meeting_shape(gcd_p, x, y), x.dtype)


def gcd(x: Operand, y: Operand) -> Array:
    """The greatest common divisor of |x| and |y|, integers; of zeros, 0."""
    return binary(gcd_p, x, y)


def lcm(x: Operand, y: Operand) -> Array:
    """The least common multiple of |x| and |y|, integers; 0 where one of them is 0."""
    a, b = alike(gcd_p, x, y)
    divisor = binary(gcd_p, a, b)
    return abs(multiply(floor_divide(a, maximum(divisor, 1)), b))
