"""Comparisons and predicates on elements: results are bool and have no gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import ELEMENTWISE
from runnel.core.dispatch import apply
from runnel.core.dtypes import FLOATS, INTEGERS, bool_, uint8
from runnel.core.errors import DTypeError
from runnel.core.rules import no_tangent
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.loops import scalar
from runnel.loops.ir import Apply, Expr
from runnel.loops.rules import Elementwise
from runnel.ops.arguments import Array, Operand, broadcast_shapes, require_same_dtype, require_same_rank
from runnel.ops.conversion import cast
from runnel.ops.elementwise.rows import ANY, BITS, NUMBERS, elementwise, partials, per_element
from runnel.ops.promotion import anchor, binary, common_dtype, common_rank, constant, lifted, meet
from runnel.ops.shapes.broadcasting import with_rank

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


# --- and, or, xor, not, shifts ------------------------------------------------------------------------------------

and_p = Op("and", "x, y", "x and y, bit by bit.")
elementwise(and_p, scalar.and_, BITS)
partials(and_p, None, None)

or_p = Op("or", "x, y", "x or y, bit by bit.")
elementwise(or_p, scalar.or_, BITS)
partials(or_p, None, None)

xor_p = Op("xor", "x, y", "Either x or y, bit by bit.")
elementwise(xor_p, scalar.xor, BITS)
partials(xor_p, None, None)

not_p = Op("not", "x", "Each bit of x inverted.")
elementwise(not_p, scalar.not_, BITS)
partials(not_p, None)

shift_left_p = Op("shift_left", "x, y", "x·2^y; 0 when y is no valid count of bits.")
elementwise(shift_left_p, scalar.shift_left, INTEGERS, literal=True)
partials(shift_left_p, None, None)

shift_right_p = Op(
    "shift_right", "x, y", "x shifted right y bits: arithmetically when signed, logically when unsigned."
)
elementwise(shift_right_p, scalar.shift_right, INTEGERS, literal=True)
partials(shift_right_p, None, None)


def bitwise_and(x: Operand, y: Operand) -> Array:
    """Bitwise and of integers, logical and of bools."""
    return binary(and_p, x, y)


def bitwise_or(x: Operand, y: Operand) -> Array:
    """Bitwise or of integers, logical or of bools."""
    return binary(or_p, x, y)


def bitwise_xor(x: Operand, y: Operand) -> Array:
    """Bitwise exclusive or of integers, logical one of bools."""
    return binary(xor_p, x, y)


def bitwise_invert(x: Array) -> Array:
    """Every bit inverted; of a bool, its negation."""
    return apply(not_p, x)


def bitwise_left_shift(x: Operand, y: Operand) -> Array:
    """x shifted left by y bits."""
    return binary(shift_left_p, x, y)


def bitwise_right_shift(x: Operand, y: Operand) -> Array:
    """x shifted right by y bits, keeping the sign of signed integers."""
    return binary(shift_right_p, x, y)


def logical_and(x: Operand, y: Operand) -> Array:
    """Whether both are non-zero."""
    return binary(and_p, *truths(and_p, x, y))


def logical_or(x: Operand, y: Operand) -> Array:
    """Whether one of them is non-zero."""
    return binary(or_p, *truths(or_p, x, y))


def logical_xor(x: Operand, y: Operand) -> Array:
    """Whether exactly one of them is non-zero."""
    return binary(xor_p, *truths(xor_p, x, y))


def logical_not(x: Array) -> Array:
    """Whether x is zero."""
    return apply(not_p, cast(x, bool_))


def truths(op: Op, *operands: Operand) -> list[Array]:
    """The operands as bool: whether they are non-zero."""
    return meet(op, *operands, dtype=bool_)


def isfinite(x: Array) -> Array:
    """Whether each element is neither infinite nor NaN (always, for integers)."""
    return logical_not(logical_or(isnan(x), isinf(x)))


# --- where --------------------------------------------------------------------------------------------------------

where_p = Op("where", "condition, x, y", "x where condition holds, else y.")
cost.register(where_p, per_element)
axes.register(where_p, ELEMENTWISE)


@abstract_eval.rule(where_p)
def _where_abstract_eval(condition: ShapedArray, x: ShapedArray, y: ShapedArray) -> ShapedArray:
    if condition.dtype is not bool_:
        raise DTypeError(f"[where] the condition must be bool, got {condition.dtype.name}; compare it with something.")
    require_same_dtype("where", x, y)
    require_same_rank("where", condition, x, y)
    return aval(broadcast_shapes("where", condition.shape, x.shape, y.shape), x.dtype)


@reference.rule(where_p)
def _where_reference(condition: Any, x: Any, y: Any) -> Any:
    return np.where(condition, x, y).astype(x.dtype, copy=False)


def _where_expr(avals: tuple[ShapedArray, ...], condition: Expr, x: Expr, y: Expr) -> Expr:
    return Apply(scalar.select, (condition, x, y), avals[-1].dtype)


lower.register(where_p, Elementwise(_where_expr))
partials(
    where_p,
    None,
    lambda g, out, condition, x, y: apply(where_p, condition, g, constant(g, 0, g.dtype, g.ndim)),
    lambda g, out, condition, x, y: apply(where_p, condition, constant(g, 0, g.dtype, g.ndim), g),
)


def where(condition: Operand, x: Operand, y: Operand) -> Array:
    """Elements of ``x`` where ``condition`` holds, of ``y`` elsewhere; all three broadcast, x and y promote."""
    like = anchor(where_p, (condition, x, y))
    dtype = common_dtype(where_p, (x, y))
    ndim = common_rank(where_p, (condition, x, y))
    chosen = with_rank(lifted(like, condition, bool_, ndim), ndim)
    return apply(where_p, chosen, lifted(like, x, dtype, ndim), lifted(like, y, dtype, ndim))
