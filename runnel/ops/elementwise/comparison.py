"""Comparisons, predicates, logic and bits, and the choice ``where``.

One op serves bools (logical) and integers (bitwise). Only ``where`` has gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import ELEMENTWISE
from runnel.core.composed import composed
from runnel.core.dispatch import apply
from runnel.core.dtypes import FLOATS, INTEGERS, bool_, uint8
from runnel.core.errors import DTypeError
from runnel.core.tables import Op, abstract_eval, axes, cost, lower, reference
from runnel.loops import scalar
from runnel.loops.ir import Apply, Expr
from runnel.loops.rules import Elementwise
from runnel.ops.arguments import Array, Operand, broadcast_shapes, require_same_dtype, require_same_rank
from runnel.ops.conversion import cast
from runnel.ops.elementwise.rows import (
    ANY,
    BITS,
    NUMBERS,
    binary_function,
    elementwise,
    partials,
    per_element,
    unary_function,
)
from runnel.ops.promotion import anchor, binary, common_dtype, common_rank, constant, lifted, meet
from runnel.ops.shapes.broadcasting import with_rank


def _ordered(op: Op, x: Operand, y: Operand) -> Array:
    """Compare bools as 0 and 1."""
    if common_dtype(op, (x, y)) is bool_:
        a, b = meet(op, x, y, dtype=uint8)
        return a.apply_op(op, (a, b), {})
    return binary(op, x, y)


_NEITHER = (None, None)  # no operand has a gradient
lt_p, less = binary_function("less", scalar.lt, NUMBERS, _NEITHER, "Return x < y.", op_name="lt", through=_ordered)
le_p, less_equal = binary_function(
    "less_equal", scalar.le, NUMBERS, _NEITHER, "Return x <= y.", op_name="le", through=_ordered
)
gt_p, greater = binary_function(
    "greater", scalar.gt, NUMBERS, _NEITHER, "Return x > y.", op_name="gt", through=_ordered
)
ge_p, greater_equal = binary_function(
    "greater_equal", scalar.ge, NUMBERS, _NEITHER, "Return x >= y.", op_name="ge", through=_ordered
)
eq_p, equal = binary_function(
    "equal", scalar.eq, ANY, _NEITHER, "Return x == y, elementwise; NaN equals nothing.", op_name="eq"
)
ne_p, not_equal = binary_function(
    "not_equal", scalar.ne, ANY, _NEITHER, "Return x != y, elementwise; NaN differs from everything.", op_name="ne"
)


def _unless_exact(op: Op, x: Array) -> Array:
    return x.apply_op(op, (x,), {}) if x.dtype.is_inexact else not_equal(x, x)


isnan_p, isnan = unary_function(
    "isnan",
    scalar.isnan,
    FLOATS,
    None,
    "Return whether each element is NaN (False for integers).",
    through=_unless_exact,
)
isinf_p, isinf = unary_function(
    "isinf", scalar.isinf, FLOATS, None, "Return whether each element is infinite (False for integers).",
    through=_unless_exact,
)  # fmt: skip

# --- and, or, xor, not, shifts ------------------------------------------------------------------------------------

and_p, bitwise_and = binary_function(
    "bitwise_and", scalar.and_, BITS, _NEITHER, "Return the bitwise AND of integers, the logical one of bools.",
    op_name="and",
)  # fmt: skip
or_p, bitwise_or = binary_function(
    "bitwise_or", scalar.or_, BITS, _NEITHER, "Return the bitwise OR of integers, the logical one of bools.",
    op_name="or",
)  # fmt: skip
xor_p, bitwise_xor = binary_function(
    "bitwise_xor", scalar.xor, BITS, _NEITHER, "Return the bitwise exclusive OR of integers, the logical one of bools.",
    op_name="xor",
)  # fmt: skip
shift_left_p, bitwise_left_shift = binary_function(
    "bitwise_left_shift", scalar.shift_left, INTEGERS, _NEITHER,
    "Return x shifted left by y bits; 0 unless y is from 0 to the number of bits - 1.",
    op_name="shift_left", literal=True,
)  # fmt: skip
shift_right_p, bitwise_right_shift = binary_function(
    "bitwise_right_shift", scalar.shift_right, INTEGERS, _NEITHER,
    "Return x shifted right by y bits, keeping the sign of signed integers.", op_name="shift_right", literal=True,
)  # fmt: skip
not_p = Op("not", "x", "Each bit of x inverted.")
elementwise(not_p, scalar.not_, BITS)
partials(not_p, None)


def bitwise_invert(x: Array) -> Array:
    """Invert every bit of integers, and bools."""
    return apply(not_p, x)


def logical_and(x: Operand, y: Operand) -> Array:
    """Return whether both are non-zero."""
    return binary(and_p, *truths(and_p, x, y))


def logical_or(x: Operand, y: Operand) -> Array:
    """Return whether at least one of them is non-zero."""
    return binary(or_p, *truths(or_p, x, y))


def logical_xor(x: Operand, y: Operand) -> Array:
    """Return whether exactly one of them is non-zero."""
    return binary(xor_p, *truths(xor_p, x, y))


def logical_not(x: Array) -> Array:
    """Return whether x is zero."""
    return apply(not_p, cast(x, bool_))


def truths(op: Op, *operands: Operand) -> list[Array]:
    """Convert the operands to bool: whether they are non-zero."""
    return meet(op, *operands, dtype=bool_)


def isfinite(x: Array) -> Array:
    """Return whether each element is finite: neither infinite nor NaN (True for integers)."""
    return logical_not(logical_or(isnan(x), isinf(x)))


# --- where --------------------------------------------------------------------------------------------------------

where_p = Op("where", "condition, x, y", "x where condition holds, else y.")
cost.register(where_p, per_element)
axes.register(where_p, ELEMENTWISE)


@abstract_eval.rule(where_p)
def _where_abstract_eval(condition: ShapedArray, x: ShapedArray, y: ShapedArray) -> ShapedArray:
    if condition.dtype is not bool_:
        raise DTypeError(f"[where] the condition must be bool; got {condition.dtype.name}. Compare it with something.")
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


@composed
def where(condition: Operand, x: Operand, y: Operand) -> Array:
    """Return elements of ``x`` where ``condition`` holds, and of ``y`` elsewhere.

    All three broadcast; x and y are promoted to one dtype."""
    like = anchor(where_p, (condition, x, y))
    dtype = common_dtype(where_p, (x, y))
    ndim = common_rank(where_p, (condition, x, y))
    chosen = with_rank(lifted(like, condition, bool_, ndim), ndim)
    return apply(where_p, chosen, lifted(like, x, dtype, ndim), lifted(like, y, dtype, ndim))
