"""Lower the value of an expression to the loop IR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from runnel.core.dtypes import DType, bool_, float32
from runnel.expressions.values import COMPARISONS, Element, Literal, Value, is_inexact
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr
from runnel.loops.scalar import ScalarOp
from runnel.ops.reductions.primitives import accumulated

# where, square and relu are composed of several
_SCALARS: Final = "add sub mul div neg cos exp log maximum minimum sigmoid sign sin sqrt tanh lt le gt ge eq ne"
_OPS: Final[dict[str, ScalarOp]] = {"abs": scalar.abs_, **{name: getattr(scalar, name) for name in _SCALARS.split()}}


def result_dtype(aggregation: str, value: Value, dtype: DType) -> DType:
    """Return the dtype of the aggregate of ``value`` for operands of ``dtype``.

    Floats keep theirs; sums and products of integers and bools have 64 bits, as in ``rn.sum``.
    """
    if dtype.is_float:
        return dtype
    if is_inexact(value):
        return float32
    if aggregation in ("sum", "prod"):
        return accumulated(dtype)
    return dtype if isinstance(value, Element) or dtype is not bool_ else accumulated(dtype)


def compute_dtype(aggregation: str, value: Value, dtype: DType) -> DType:
    """Return the dtype of the computation: the result's, or float32 for half precision."""
    result = result_dtype(aggregation, value, dtype)
    return accumulated(result) if result.is_float else result


def constant(value: int | float, dtype: DType) -> Const:
    if dtype is bool_:
        return Const(bool(value), dtype)
    return Const(float(value) if dtype.is_float else int(value), dtype)


def converted(value: Expr, dtype: DType) -> Expr:
    return value if value.dtype is dtype else Apply(scalar.cast, (value,), dtype)


def value_expression(value: Value, dtype: DType, load: Callable[[Element], Expr]) -> Expr:
    """Return ``value`` in ``dtype``, with elements from ``load``; each operation rounds once."""
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
