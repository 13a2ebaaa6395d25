"""Values of expressions in the loop IR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from runnel.core.dtypes import DType, bool_, float32
from runnel.expressions.values import COMPARISONS, Element, Literal, Value, is_inexact
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr
from runnel.loops.scalar import ScalarOp
from runnel.ops.reductions.primitives import accumulated

_OPS: Final[dict[str, ScalarOp]] = {
    "add": scalar.add,
    "sub": scalar.sub,
    "mul": scalar.mul,
    "div": scalar.div,
    "neg": scalar.neg,
    "abs": scalar.abs_,
    "cos": scalar.cos,
    "exp": scalar.exp,
    "log": scalar.log,
    "maximum": scalar.maximum,
    "minimum": scalar.minimum,
    "sigmoid": scalar.sigmoid,
    "sign": scalar.sign,
    "sin": scalar.sin,
    "sqrt": scalar.sqrt,
    "tanh": scalar.tanh,
    "lt": scalar.lt,
    "le": scalar.le,
    "gt": scalar.gt,
    "ge": scalar.ge,
    "eq": scalar.eq,
    "ne": scalar.ne,
}


def result_dtype(aggregation: str, value: Value, dtype: DType) -> DType:
    """The dtype of the aggregate of ``value`` of operands of ``dtype``: floats keep theirs; sums and products of
    integers and bools are of 64 bits, as those of ``rn.sum``."""
    if dtype.is_float:
        return dtype
    if is_inexact(value):
        return float32
    if aggregation in ("sum", "prod"):
        return accumulated(dtype)
    return dtype if isinstance(value, Element) or dtype is not bool_ else accumulated(dtype)


def compute_dtype(aggregation: str, value: Value, dtype: DType) -> DType:
    """The dtype in which it is computed: that of the result, float32 for halves."""
    result = result_dtype(aggregation, value, dtype)
    return accumulated(result) if result.is_float else result


def constant(value: int | float, dtype: DType) -> Const:
    if dtype is bool_:
        return Const(bool(value), dtype)
    return Const(float(value) if dtype.is_float else int(value), dtype)


def converted(value: Expr, dtype: DType) -> Expr:
    return value if value.dtype is dtype else Apply(scalar.cast, (value,), dtype)


def value_expression(value: Value, dtype: DType, load: Callable[[Element], Expr]) -> Expr:
    """``value`` in ``dtype``, with elements by ``load``; each operation rounds once."""
    if isinstance(value, Literal):
        return constant(value.value, dtype)
    if isinstance(value, Element):
        return converted(load(value), dtype)
    args = tuple(value_expression(x, dtype, load) for x in value.args)
    if value.function == "where":
        return Apply(scalar.select, args, dtype)
    if value.function == "square":
        return Apply(scalar.mul, (args[0], args[0]), dtype)
    if value.function == "relu":
        zero = constant(0, dtype)
        return Apply(scalar.select, (Apply(scalar.lt, (args[0], zero), bool_), zero, args[0]), dtype)
    return Apply(_OPS[value.function], args, bool_ if value.function in COMPARISONS else dtype)
