"""The op of tensor expressions and its rules: one op for all expressions, with the text as an attribute."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.core.avals import ShapedArray, aval, row_major
from runnel.core.axes import batching
from runnel.core.dispatch import apply
from runnel.core.dtypes import float32
from runnel.core.errors import DTypeError
from runnel.core.records import replace
from runnel.core.rules import Tangents
from runnel.core.tables import Op, abstract_eval, cost, jvp, lower, reference, vjp
from runnel.expressions import derivatives, values
from runnel.expressions.affine import Affine, combined, index, number
from runnel.expressions.derivatives import Written
from runnel.expressions.elements import compute_dtype, result_dtype
from runnel.expressions.lowering import TensorExpressionLowering
from runnel.expressions.resolving import resolved
from runnel.expressions.schedule import Steps
from runnel.expressions.values import Element, Expression
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast
from runnel.ops.creation_like import zeros_like
from runnel.ops.elementwise.arithmetic import add

tensor_expression_p = Op(
    "tensor_expression",
    "*xs, *, text, schedule",
    "The tensor expression `text` of operands in order of appearance, computed in the loops of `schedule`.",
    is_late=True,
)


def expression_of(text: str, xs: Sequence[Any]) -> Expression:
    """Return the expression for operands with the shapes of ``xs``."""
    return resolved(text, tuple(tuple(x.shape) for x in xs))


@abstract_eval.rule(tensor_expression_p)
def _abstract_eval(*xs: ShapedArray, text: str, schedule: Steps | None) -> ShapedArray:
    expression = expression_of(text, xs)
    dtypes = {x.dtype for x in xs}
    if len(dtypes) > 1:
        raise DTypeError(f"[tensor_expr] got {', '.join(x.dtype.name for x in xs)}; cast all to one dtype.")
    dtype = next(iter(dtypes), float32)
    return aval(expression.shape, result_dtype(expression.aggregation, expression.term, dtype))


@reference.rule(tensor_expression_p)
def _reference(*xs: Any, text: str, schedule: Steps | None) -> np.ndarray:
    """Compute all points of the box at once: an array for each index."""
    expression = expression_of(text, xs)
    arrays = dict(zip(expression.names, xs, strict=True))
    element_dtype = derivatives.runnel_dtype(xs)
    wide = compute_dtype(expression.aggregation, expression.term, element_dtype).numpy
    dtype = result_dtype(expression.aggregation, expression.term, element_dtype).numpy
    starts = {"assign": 0, "sum": 0, "prod": 1, "max": _end(wide, low=True), "min": _end(wide, low=False)}
    result = np.full(expression.shape, starts[expression.aggregation], wide)
    grids = np.indices([extent for _, extent in expression.indices], sparse=False).reshape(len(expression.indices), -1)
    points = {name: grid for (name, _), grid in zip(expression.indices, grids, strict=True)}
    count = grids.shape[1] if expression.indices else 1

    def at(form: Affine) -> np.ndarray:
        total = np.full(count, form.constant, np.int64)
        for name, c in form.terms:
            total += c * points[name]
        return total

    inside = np.ones(count, bool)
    for form in expression.constraints:
        inside &= at(form) >= 0

    def element(e: Element) -> np.ndarray:
        x = arrays[e.name]
        return np.asarray(x[tuple(at(s)[inside] for s in e.subscripts)]).astype(wide)

    with np.errstate(all="ignore"):
        terms = np.broadcast_to(values.evaluated(expression.term, element, wide), (int(inside.sum()),)).astype(wide)
        steps = row_major(expression.shape)
        where = at(combined(zip(steps, expression.target, strict=True)))[inside]
        result = result.reshape(-1)
        if expression.aggregation == "assign":
            result[where] = terms
        else:
            ufunc = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[expression.aggregation]
            ufunc.at(result, where, terms)
        return result.reshape(expression.shape).astype(dtype)


def _end(dtype: np.dtype[Any], *, low: bool) -> Any:
    if dtype.kind == "f":
        return -np.inf if low else np.inf
    if dtype.kind == "b":
        return not low
    return np.iinfo(dtype).min if low else np.iinfo(dtype).max


def computed(written: Written) -> Array:
    """Compute an expression that a rule has written."""
    return apply(tensor_expression_p, *written.operands, text=written.text, schedule=None)


@vjp.rule(tensor_expression_p)
def _vjp(g: Array, out: Array, *xs: Array, text: str, schedule: Steps | None) -> tuple[Any, ...]:
    expression = expression_of(text, xs)
    if not out.dtype.is_float:
        return (None,) * len(xs)
    wide = compute_dtype(expression.aggregation, expression.term, out.dtype)
    if wide is not out.dtype:  # ties are found among unrounded values
        xs = tuple(cast(x, wide) for x in xs)
        out, g = apply(tensor_expression_p, *xs, text=text, schedule=schedule), cast(g, wide)
    weights = derivatives.weights(expression, out, xs, computed)

    def cotangent(name: str, x: Array) -> Array:
        terms = [computed(w) for w in derivatives.transposed(expression, name, g, weights, xs)]
        return functools.reduce(add, terms) if terms else zeros_like(x)

    return tuple(functools.partial(cotangent, n, x) for n, x in zip(expression.names, xs, strict=True))


@jvp.rule(tensor_expression_p)
def _jvp(tangents: Tangents, out: Array, *xs: Array, text: str, schedule: Steps | None) -> list[Array]:
    expression = expression_of(text, xs)
    if not out.dtype.is_float:
        return []
    wide = compute_dtype(expression.aggregation, expression.term, out.dtype)
    dtype, moved = out.dtype, [None if t is None else cast(t, wide) for t in tangents]
    if wide is not dtype:
        xs = tuple(cast(x, wide) for x in xs)
        out = apply(tensor_expression_p, *xs, text=text, schedule=schedule)
    weights = derivatives.weights(expression, out, xs, computed)
    written = derivatives.tangent(expression, moved, weights, xs)
    return [] if written is None else [cast(computed(written), dtype)]


@batching(tensor_expression_p)
def _batched(size: int, *xs: Array, text: str, schedule: Steps | None) -> Array:
    """Add an index in front of the result and of each batched operand."""
    expression = resolved(text, tuple(tuple(x.shape[1:]) for x in xs))
    batch = derivatives.fresh("b", expression)
    ahead = {
        name: index(batch) if x.shape[0] == size else number(0) for name, x in zip(expression.names, xs, strict=True)
    }
    value = values.mapped(expression.term, lambda e: Element(e.name, (ahead[e.name], *e.subscripts)))
    whole = replace(
        expression,
        target=(index(batch), *expression.target),
        shape=(size, *expression.shape),
        indices=((batch, size), *expression.indices),
        term=value,
        shapes=tuple(tuple(x.shape) for x in xs),
    )
    return apply(tensor_expression_p, *xs, text=whole.text, schedule=None)


def _cost(*xs: ShapedArray, text: str, schedule: Steps | None) -> int:
    expression = expression_of(text, xs)
    points = 1
    for _, extent in expression.indices:
        points *= extent
    operations = sum(isinstance(x, values.Compute) for x in values.parts(expression.term))
    return points * (operations + (expression.aggregation != "assign"))


cost.register(tensor_expression_p, _cost)
lower.register(tensor_expression_p, TensorExpressionLowering())
