"""Comparisons and predicates on elements: results are bool and have no gradient."""

from __future__ import annotations

from runnel.core.dtypes import FLOATS, bool_, uint8
from runnel.core.rules import no_tangent
from runnel.core.tables import Op, jvp, vjp
from runnel.loops import scalar
from runnel.ops.arguments import Array, Operand
from runnel.ops.family import ANY, NUMBERS, elementwise
from runnel.ops.promotion import binary, common_dtype, meet

lt_p = Op("lt", "x, y", "x < y.")
elementwise(lt_p, scalar.lt, NUMBERS)

le_p = Op("le", "x, y", "x <= y.")
elementwise(le_p, scalar.le, NUMBERS)

gt_p = Op("gt", "x, y", "x > y.")
elementwise(gt_p, scalar.gt, NUMBERS)

ge_p = Op("ge", "x, y", "x >= y.")
elementwise(ge_p, scalar.ge, NUMBERS)

eq_p = Op("eq", "x, y", "x == y; NaN equals nothing.")
elementwise(eq_p, scalar.eq, ANY)

ne_p = Op("ne", "x, y", "x != y; NaN differs from everything.")
elementwise(ne_p, scalar.ne, ANY)

for _op in (lt_p, le_p, gt_p, ge_p, eq_p, ne_p):
    vjp.register(_op, lambda g, out, x, y: (None, None))
    jvp.register(_op, no_tangent)


def _ordered(op: Op, x: Operand, y: Operand) -> Array:
    """Booleans are compared as 0 and 1."""
    if common_dtype(op, (x, y)) is bool_:
        a, b = meet(op, x, y, dtype=uint8)
        return a.apply_op(op, (a, b), {})
    return binary(op, x, y)


def less(x: Operand, y: Operand) -> Array:
    """x < y."""
    return _ordered(lt_p, x, y)


def less_equal(x: Operand, y: Operand) -> Array:
    """x <= y."""
    return _ordered(le_p, x, y)


def greater(x: Operand, y: Operand) -> Array:
    """x > y."""
    return _ordered(gt_p, x, y)


def greater_equal(x: Operand, y: Operand) -> Array:
    """x >= y."""
    return _ordered(ge_p, x, y)


def equal(x: Operand, y: Operand) -> Array:
    """x == y, elementwise."""
    return binary(eq_p, x, y)


def not_equal(x: Operand, y: Operand) -> Array:
    """x != y, elementwise."""
    return binary(ne_p, x, y)


isnan_p = Op("isnan", "x", "Whether x is not a number.")
elementwise(isnan_p, scalar.isnan, FLOATS)
vjp.register(isnan_p, lambda g, out, x: (None,))
jvp.register(isnan_p, no_tangent)

isinf_p = Op("isinf", "x", "Whether x is infinite.")
elementwise(isinf_p, scalar.isinf, FLOATS)
vjp.register(isinf_p, lambda g, out, x: (None,))
jvp.register(isinf_p, no_tangent)


def isnan(x: Array) -> Array:
    """Whether each element is not a number (never, for integers)."""
    return x.apply_op(isnan_p, (x,), {}) if x.dtype.is_inexact else not_equal(x, x)


def isinf(x: Array) -> Array:
    """Whether each element is infinite (never, for integers)."""
    return x.apply_op(isinf_p, (x,), {}) if x.dtype.is_inexact else not_equal(x, x)
