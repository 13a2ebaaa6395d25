"""Expressions that only move elements, as views that touch no memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.axes import batching
from runnel.core.dispatch import apply
from runnel.core.rules import linear
from runnel.core.tables import Op, abstract_eval, cost, jvp, lower, reference
from runnel.expressions.affine import Affine
from runnel.expressions.primitive import expression_of
from runnel.expressions.schedule import Steps
from runnel.expressions.values import Element, Expression
from runnel.loops.rules import View
from runnel.ops.arguments import Array
from runnel.ops.shapes.padding import embedded_in_zeros
from runnel.ops.shapes.views import AxisMap

AxisForm = tuple[int, tuple[tuple[int, int], ...]]  # offset, and the step along axes of the result

affine_view_p = Op(
    "affine_view",
    "x, *, shape, forms",
    "Element (o0, o1, …) is x at the index offset + Σ step·o along each axis: a view.",
    is_late=True,
)
abstract_eval.register(affine_view_p, lambda x, *, shape, forms: aval(shape, x.dtype))
cost.register(affine_view_p, lambda x, *, shape, forms: 0)


@reference.rule(affine_view_p)
def _reference(x: Any, *, shape: Shape, forms: tuple[AxisForm, ...]) -> Any:
    at = np.indices(shape, sparse=True)
    zero = np.zeros(shape, np.int64)
    return x[tuple(zero + offset + sum(step * at[axis] for axis, step in terms) for offset, terms in forms)]


def _map(x: ShapedArray, result: ShapedArray, *, shape: Shape, forms: tuple[AxisForm, ...]) -> list[AxisMap]:
    return list(forms)


lower.register(affine_view_p, View(_map))
jvp.register(affine_view_p, linear(affine_view_p))


@batching(affine_view_p)
def _batched(size: int, x: Array, *, shape: Shape, forms: tuple[AxisForm, ...]) -> Array:
    """Add an axis in front of the result and of the operand."""
    behind = tuple((offset, tuple((axis + 1, step) for axis, step in terms)) for offset, terms in forms)
    ahead = (0, ((0, 1),) if x.shape[0] == size else ())
    return apply(affine_view_p, x, shape=(size, *shape), forms=(ahead, *behind))


def as_view(*xs: Array, text: str, schedule: Steps | None) -> Array | None:
    """Return a copy of elements as a view, padded with zeros where constraints cut subscripts off.

    This is the rule for table ``decompose``; None for other expressions.
    """
    expression = expression_of(text, xs)
    if schedule is not None or not is_copy(expression) or not all(expression.shape) or 0 in xs[0].shape:
        return None
    (x,) = xs
    names = [form.plain for form in expression.target]
    subscripts = expression.term.subscripts if isinstance(expression.term, Element) else ()
    limits = set(expression.constraints)
    before, after = [], []
    for form, size in zip(subscripts, x.shape, strict=True):
        reach = [sum(c * (dict(expression.indices)[n] - 1) for n, c in form.terms if sign * c > 0) for sign in (-1, 1)]
        low, high = form.constant + reach[0], form.constant + reach[1]
        before.append(max(-low, 0))
        after.append(max(high - size + 1, 0))
        limits -= {form, Affine((), size - 1) - form}
    if limits:
        return None
    padded = x
    if any(before) or any(after):
        sizes = tuple(b + n + a for b, n, a in zip(before, x.shape, after, strict=True))
        padded = embedded_in_zeros(x, sizes, tuple(before), x.shape, (1,) * x.ndim)
    forms = tuple(
        (form.constant + b, tuple((names.index(n), c) for n, c in form.terms))
        for form, b in zip(subscripts, before, strict=True)
    )
    return apply(affine_view_p, padded, shape=expression.shape, forms=forms)


def is_copy(expression: Expression) -> bool:
    """Return True if each element of the result is an element of the operand or 0."""
    names = [form.plain for form in expression.target]
    return (
        expression.aggregation == "assign"
        and isinstance(expression.term, Element)
        and None not in names
        and len(set(names)) == len(names)
        and expression.shape == tuple(dict(expression.indices)[n] for n in names if n is not None)
        and len(expression.indices) == len(names)
    )
