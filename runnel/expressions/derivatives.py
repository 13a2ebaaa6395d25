"""Derivatives of expressions, which are expressions too.

The gradient of O[t] += f by an element A[s] of f is dA[s] += g[t]·∂f/∂A[s] over the same points. A product multiplies
each term by the product of the others. An extreme selects the terms that equal it, divided by their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from runnel.core.dtypes import DType, as_dtype, float32
from runnel.core.records import replace
from runnel.expressions import values
from runnel.expressions.affine import rank
from runnel.expressions.values import Compute, Element, Expression, Literal, Value, derivative, elements, mul, where


class Written(NamedTuple):
    """An expression as text, with its operands."""

    text: str
    operands: tuple[Any, ...]


class Weights(NamedTuple):
    """The factor of a term's derivative, and the arrays that it reads, by name."""

    apply: Callable[[Value], Value]
    arrays: dict[str, Any]


Computed = Callable[[Written], Any]


def runnel_dtype(xs: Sequence[Any]) -> DType:
    """Return the dtype of operands, float32 if there are none."""
    return as_dtype(xs[0].dtype) if xs else float32


def fresh(name: str, expression: Expression) -> str:
    """Return a name that ``expression`` does not use."""
    taken = {expression.name, *expression.names, *(n for n, _ in expression.indices)}
    while name in taken:
        name += "_"
    return name


def _written(expression: Expression, arrays: dict[str, Any]) -> Written:
    names = tuple(dict.fromkeys(e.name for e in elements(expression.term)))
    shapes = tuple(tuple(arrays[n].shape) for n in names)
    return Written(replace(expression, names=names, shapes=shapes).text, tuple(arrays[n] for n in names))


def weights(expression: Expression, out: Any, xs: Sequence[Any], computed: Computed) -> Weights:
    """Return the weight of each term, computed by expressions of the result's size."""
    f, t = expression.term, expression.target
    arrays = dict(zip(expression.names, xs, strict=True))
    if expression.aggregation in ("assign", "sum"):
        return Weights(lambda term: term, {})

    def reduced(name: str, aggregation: str, value: Value) -> Any:
        part = replace(expression, aggregation=aggregation, name=name, term=value)
        return computed(_written(part, {**arrays, result: out}))

    result = fresh("out", expression)
    count = fresh("count", expression)
    if expression.aggregation in ("max", "min"):
        extreme = Element(result, t)
        counts = reduced(count, "sum", where("eq", f, extreme, Literal(1), Literal(0)))
        share = Element(count, t)
        return Weights(
            lambda term: where("eq", f, extreme, Compute("div", (term, share)), Literal(0)),
            {result: out, count: counts},
        )
    product = fresh("others", expression)
    zeros = reduced(count, "sum", where("eq", f, Literal(0), Literal(1), Literal(0)))
    others = reduced(product, "prod", where("eq", f, Literal(0), Literal(1), f))
    none, rest = Element(count, t), Element(product, t)
    factor = where(
        "eq", f, Literal(0),
        where("eq", none, Literal(1), rest, Literal(0)),
        where("eq", none, Literal(0), Compute("div", (rest, f)), Literal(0)),
    )  # fmt: skip
    return Weights(lambda term: mul(term, factor), {count: zeros, product: others})


def transposed(expression: Expression, name: str, g: Any, weight: Weights, xs: Sequence[Any]) -> list[Written]:
    """Return the expressions whose sum is the cotangent of operand ``name``, one per element in the value."""
    cotangent = fresh("g", expression)
    arrays = {**dict(zip(expression.names, xs, strict=True)), **weight.arrays, cotangent: g}
    shape = tuple(arrays[name].shape)
    results = []
    for element in elements(expression.term):
        if element.name != name:
            continue
        slope = derivative(expression.term, {element: Literal(1)})
        if slope == values.ZERO:
            continue
        value = weight.apply(mul(Element(cotangent, expression.target), slope))
        free = [n for n, extent in expression.indices if extent > 1]
        is_injective = rank(s for s in element.subscripts if s.names) == len(free)
        part = replace(
            expression, aggregation="assign" if is_injective else "sum", name=fresh(f"d{name}", expression),
            target=element.subscripts, shape=shape, term=value,
        )  # fmt: skip
        results.append(_written(part, arrays))
    return results


def tangent(
    expression: Expression, tangents: Sequence[Any | None], weight: Weights, xs: Sequence[Any]
) -> Written | None:
    """Return the expression of the result's tangent."""
    arrays = {**dict(zip(expression.names, xs, strict=True)), **weight.arrays}
    names = {}
    for name, t in zip(expression.names, tangents, strict=True):
        if t is not None:
            names[name] = fresh(f"d{name}", expression)
            arrays[names[name]] = t
    moves = {e: Element(names[e.name], e.subscripts) for e in elements(expression.term) if e.name in names}
    slope = derivative(expression.term, moves)
    if not values.elements(slope):
        return None
    aggregation = "assign" if expression.aggregation == "assign" else "sum"
    return _written(replace(expression, aggregation=aggregation, term=weight.apply(slope)), arrays)
