"""Arithmetic and rounding, elementwise. At kinks and ties the derivatives are PyTorch's: |x| has 0 at 0, a maximum of
equals gives each half, relu has 0 at 0."""

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
from runnel.ops.elementwise.rows import NUMBERS, computed_in_numpy, elementwise, partials, per_element
from runnel.ops.promotion import binary, binary_float, unary

# --- the four operations ------------------------------------------------------------------------------------------

neg_p = Op("neg", "x", "-x.")
elementwise(neg_p, scalar.neg, NUMBERS)


def negative(x: Operand) -> Array:
    """-x."""
    return unary(neg_p, x)


partials(neg_p, lambda g, out, x: negative(g))

add_p = Op("add", "x, y", "x + y.")
elementwise(add_p, scalar.add, NUMBERS, of_bools=scalar.or_)
partials(add_p, lambda g, out, x, y: g, lambda g, out, x, y: g)


def add(x: Operand, y: Operand) -> Array:
    """x + y; of bools, x or y."""
    return binary(add_p, x, y)


sub_p = Op("sub", "x, y", "x - y.")
elementwise(sub_p, scalar.sub, NUMBERS)
partials(sub_p, lambda g, out, x, y: g, lambda g, out, x, y: negative(g))


def subtract(x: Operand, y: Operand) -> Array:
    """x - y."""
    return binary(sub_p, x, y)


mul_p = Op("mul", "x, y", "x · y.")
elementwise(mul_p, scalar.mul, NUMBERS, of_bools=scalar.and_)


def multiply(x: Operand, y: Operand) -> Array:
    """x · y, elementwise; of bools, x and y."""
    return binary(mul_p, x, y)


partials(mul_p, lambda g, out, x, y: multiply(g, y), lambda g, out, x, y: multiply(g, x))


div_p = Op("div", "x, y", "x / y.")
elementwise(div_p, scalar.div, FLOATS)


def divide(x: Operand, y: Operand) -> Array:
    """x / y; integers are divided as float32."""
    return binary_float(div_p, x, y)


partials(div_p, lambda g, out, x, y: divide(g, y), lambda g, out, x, y: negative(divide(multiply(g, out), y)))


floor_divide_p = Op("floor_divide", "x, y", "x / y rounded down; an integer divided by 0 gives 0.")
elementwise(floor_divide_p, scalar.floor_divide, NUMBERS)
partials(floor_divide_p, None, None)


def floor_divide(x: Operand, y: Operand) -> Array:
    """x / y rounded toward minus infinity."""
    return binary(floor_divide_p, x, y)


remainder_p = Op("remainder", "x, y", "x - y·floor(x/y), which has the sign of y; an integer modulo 0 gives 0.")
elementwise(remainder_p, scalar.remainder, NUMBERS)
partials(
    remainder_p,
    lambda g, out, x, y: g,
    lambda g, out, x, y: negative(multiply(g, floor_divide(x, y))),
)


def remainder(x: Operand, y: Operand) -> Array:
    """What floor division leaves; it has the sign of y."""
    return binary(remainder_p, x, y)


# --- sign ---------------------------------------------------------------------------------------------------------

sign_p = Op("sign", "x", "-1, 0 or 1, as x is negative, zero or positive; NaN stays.")
elementwise(sign_p, scalar.sign, NUMBERS)
partials(sign_p, None)


def sign(x: Operand) -> Array:
    """-1, 0 or 1 by the sign of x; a bool as it is."""
    if isinstance(x, TensorLike) and x.dtype is bool_:
        return x.handle()
    return unary(sign_p, x)


abs_p = Op("abs", "x", "|x|.")
elementwise(abs_p, scalar.abs_, NUMBERS)
partials(abs_p, lambda g, out, x: multiply(g, where(not_equal(x, x), 0, sign(x))))  # 0 at NaN, as in PyTorch


def abs(x: Operand) -> Array:
    """|x|; its derivative at 0 is 0."""
    return unary(abs_p, x)


# --- the greater and the smaller ----------------------------------------------------------------------------------


def _winner(g: Array, loses: Array, ties: Array) -> Array:
    return where(loses, 0, where(ties, multiply(g, 0.5), g))


maximum_p = Op("maximum", "x, y", "The greater of x and y; NaN if one is NaN.")
elementwise(maximum_p, scalar.maximum, NUMBERS, of_bools=scalar.or_)
partials(
    maximum_p,
    lambda g, out, x, y: _winner(g, less(x, y), equal(x, y)),
    lambda g, out, x, y: _winner(g, less(y, x), equal(x, y)),
)


def maximum(x: Operand, y: Operand) -> Array:
    """The greater of x and y; of equals, each takes half of the gradient."""
    return binary(maximum_p, x, y)


minimum_p = Op("minimum", "x, y", "The smaller of x and y; NaN if one is NaN.")
elementwise(minimum_p, scalar.minimum, NUMBERS, of_bools=scalar.and_)
partials(
    minimum_p,
    lambda g, out, x, y: _winner(g, less(y, x), equal(x, y)),
    lambda g, out, x, y: _winner(g, less(x, y), equal(x, y)),
)


def minimum(x: Operand, y: Operand) -> Array:
    """The smaller of x and y; of equals, each takes half of the gradient."""
    return binary(minimum_p, x, y)


relu_p = Op("relu", "x", "x where it is positive or NaN, else 0.")
reference.register(relu_p, computed_in_numpy(lambda x: np.where(x < 0, np.zeros_like(x), x)))
partials(relu_p, lambda g, out, x: where(less_equal(out, 0), _zeros_of(out), g))  # NaN passes it, as in PyTorch
cost.register(relu_p, per_element)
axes.register(relu_p, ELEMENTWISE)


def _zeros_of(out: Array) -> Operand:
    """0 where relu's result is 0. PyTorch's gradient of relu depends on that result, though with derivative 0: where
    it is recorded it is ``out`` itself; else the elements of ``out`` need not be kept for it."""
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
    """max(x, 0), with derivative 0 at 0."""
    return apply(relu_p, x)


# --- rounding -----------------------------------------------------------------------------------------------------

floor_p = Op("floor", "x", "The greatest integer not above x.")
elementwise(floor_p, scalar.floor, FLOATS)

ceil_p = Op("ceil", "x", "The smallest integer not below x.")
elementwise(ceil_p, scalar.ceil, FLOATS)

trunc_p = Op("trunc", "x", "x without its fraction.")
elementwise(trunc_p, scalar.trunc, FLOATS)

round_p = Op("round", "x", "The nearest integer, the even one of two equally near.")
elementwise(round_p, scalar.rint, FLOATS)

for _op in (floor_p, ceil_p, trunc_p, round_p):
    partials(_op, None)


def _rounded(op: Op, x: Array) -> Array:
    return apply(op, x) if x.dtype.is_inexact else x


def floor(x: Array) -> Array:
    """x rounded down."""
    return _rounded(floor_p, x)


def ceil(x: Array) -> Array:
    """x rounded up."""
    return _rounded(ceil_p, x)


def trunc(x: Array) -> Array:
    """x rounded toward zero."""
    return _rounded(trunc_p, x)


def round(x: Array, decimals: int = 0) -> Array:
    """x rounded to the nearest integer, ties to even; or to ``decimals`` digits behind the point, as x·10^decimals
    rounded and divided by it."""
    if decimals == 0 or not x.dtype.is_inexact:
        return _rounded(round_p, x)
    scale = 10.0 ** operator.index(decimals)
    return divide(_rounded(round_p, multiply(x, scale)), scale)
