"""Arithmetic and rounding, elementwise.

At kinks and ties the derivatives are PyTorch's: 0 at 0 for |x| and relu, and a half for each of two equal operands of
maximum and minimum.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from runnel.core.avals import ShapedArray
from runnel.core.axes import ELEMENTWISE
from runnel.core.dispatch import TensorLike, apply
from runnel.core.dtypes import FLOATS, bool_
from runnel.core.tables import Op, abstract_eval, axes, cost, lower, reference
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr
from runnel.loops.rules import Elementwise
from runnel.ops.arguments import Array, Operand, require_dtype
from runnel.ops.elementwise.comparison import equal, less, less_equal, not_equal, where
from runnel.ops.elementwise.rows import (
    NUMBERS,
    Binary,
    Unary,
    binary_function,
    computed_in_numpy,
    partials,
    per_element,
    unary_function,
)
from runnel.ops.promotion import binary_float

# Functions that derivatives in rows above their own call.
negative: Unary
multiply: Binary
divide: Binary

# --- the four operations ------------------------------------------------------------------------------------------

neg_p, negative = unary_function(
    "negative", scalar.neg, NUMBERS, lambda g, out, x: negative(g), "Return -x.", op_name="neg"
)
add_p, add = binary_function(
    "add", scalar.add, NUMBERS, (lambda g, out, x, y: g, lambda g, out, x, y: g),
    "Return x + y, or x | y for bools.", of_bools=scalar.or_,
)  # fmt: skip
sub_p, subtract = binary_function(
    "subtract", scalar.sub, NUMBERS, (lambda g, out, x, y: g, lambda g, out, x, y: negative(g)),
    "Return x - y.", op_name="sub",
)  # fmt: skip
mul_p, multiply = binary_function(
    "multiply", scalar.mul, NUMBERS, (lambda g, out, x, y: multiply(g, y), lambda g, out, x, y: multiply(g, x)),
    "Return x · y, elementwise, or x & y for bools.", op_name="mul", of_bools=scalar.and_,
)  # fmt: skip
div_p, divide = binary_function(
    "divide", scalar.div, FLOATS,
    (lambda g, out, x, y: divide(g, y), lambda g, out, x, y: negative(divide(multiply(g, out), y))),
    "Return x / y; integers are divided as float32.", op_name="div", through=binary_float,
)  # fmt: skip
floor_divide_p, floor_divide = binary_function(
    "floor_divide", scalar.floor_divide, NUMBERS, (None, None),
    "Return x / y rounded toward minus infinity; an integer divided by 0 is 0.",
)  # fmt: skip
remainder_p, remainder = binary_function(
    "remainder", scalar.remainder, NUMBERS,
    (lambda g, out, x, y: g, lambda g, out, x, y: negative(multiply(g, floor_divide(x, y)))),
    "Return x - y·floor(x/y), which has the sign of y; an integer modulo 0 is 0.",
)  # fmt: skip

# --- sign ---------------------------------------------------------------------------------------------------------

sign_p, _sign_of_number = unary_function("sign", scalar.sign, NUMBERS, None, "Return -1, 0 or 1; NaN stays NaN.")


def sign(x: Operand) -> Array:
    """Return -1, 0 or 1 by the sign of x; NaN and bools stay as they are."""
    if isinstance(x, TensorLike) and x.dtype is bool_:
        return x.handle()
    return _sign_of_number(x)


abs_p, abs = unary_function(
    "abs", scalar.abs_, NUMBERS, lambda g, out, x: multiply(g, where(not_equal(x, x), 0, sign(x))),  # 0 at NaN
    "Return |x|, with derivative 0 at 0.",
)  # fmt: skip

# --- the larger and the smaller -----------------------------------------------------------------------------------


def _winner(g: Array, loses: Array, ties: Array) -> Array:
    return where(loses, 0, where(ties, multiply(g, 0.5), g))


maximum_p, maximum = binary_function(
    "maximum", scalar.maximum, NUMBERS,
    (
        lambda g, out, x, y: _winner(g, less(x, y), equal(x, y)),
        lambda g, out, x, y: _winner(g, less(y, x), equal(x, y)),
    ),
    "Return the larger of x and y, NaN if one is NaN; equal operands share the gradient.", of_bools=scalar.or_,
)  # fmt: skip
minimum_p, minimum = binary_function(
    "minimum", scalar.minimum, NUMBERS,
    (
        lambda g, out, x, y: _winner(g, less(y, x), equal(x, y)),
        lambda g, out, x, y: _winner(g, less(x, y), equal(x, y)),
    ),
    "Return the smaller of x and y, NaN if one is NaN; equal operands share the gradient.", of_bools=scalar.and_,
)  # fmt: skip

relu_p = Op("relu", "x", "x where it is positive or NaN, else 0.")
reference.register(relu_p, computed_in_numpy(lambda x: np.where(x < 0, np.zeros_like(x), x)))
partials(relu_p, lambda g, out, x: where(less_equal(out, 0), _zeros_of(out), g))  # NaN passes it, as in PyTorch
cost.register(relu_p, per_element)
axes.register(relu_p, ELEMENTWISE)


def _zeros_of(out: Array) -> Operand:
    """Return zeros where relu's result is 0: ``out`` itself where its gradient is recorded, else the number 0.

    PyTorch's gradient of relu depends on the result, with derivative 0. The number avoids keeping the elements of
    ``out``."""
    return out if out.requires_grad else 0


@abstract_eval.rule(relu_p)
def _relu_abstract_eval(x: ShapedArray) -> ShapedArray:
    require_dtype("relu", x.dtype, NUMBERS)
    return x


def _relu_expr(avals: Any, x: Expr) -> Expr:
    zero = Const(0, x.dtype)
    return Apply(scalar.select, (Apply(scalar.lt, (x, zero), bool_), zero, x), x.dtype)


lower.register(relu_p, Elementwise(_relu_expr))


def relu(x: Array) -> Array:
    """Return max(x, 0), with derivative 0 at 0."""
    return apply(relu_p, x)


# --- rounding -----------------------------------------------------------------------------------------------------


def _unless_integer(op: Op, x: Array) -> Array:
    return apply(op, x) if x.dtype.is_inexact else x


floor_p, floor = unary_function("floor", scalar.floor, FLOATS, None, "Return x rounded down.", through=_unless_integer)
ceil_p, ceil = unary_function("ceil", scalar.ceil, FLOATS, None, "Return x rounded up.", through=_unless_integer)
trunc_p, trunc = unary_function(
    "trunc", scalar.trunc, FLOATS, None, "Return x rounded toward zero.", through=_unless_integer
)
round_p, _rounded = unary_function(
    "round", scalar.rint, FLOATS, None, "Return the nearest integer, ties to even.", through=_unless_integer
)


def round(x: Array, decimals: int = 0) -> Array:
    """Round x to the nearest integer, ties to even, or to ``decimals`` digits after the point.

    With ``decimals``, the result is x·10^decimals rounded and divided by 10^decimals."""
    if decimals == 0 or not x.dtype.is_inexact:
        return _rounded(x)
    scale = 10.0 ** operator.index(decimals)
    return divide(_rounded(multiply(x, scale)), scale)
