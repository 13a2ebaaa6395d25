"""Elementwise primitives whose formula is in ``loops.formulas``: their registration in the tables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import ELEMENTWISE
from runnel.core.dtypes import FLOATS, from_numpy
from runnel.core.tables import Op, abstract_eval, axes, cost, lower, reference
from runnel.loops import scalar
from runnel.loops.formulas import table
from runnel.loops.formulas.computed import Computed
from runnel.loops.formulas.value import Value
from runnel.loops.ir import Apply, Expr
from runnel.loops.rules import Elementwise
from runnel.loops.scalar import ScalarOp
from runnel.ops.arguments import require_dtype
from runnel.ops.family import elementwise, in_numpy, meeting_shape, per_element

Formula = Callable[..., Value]


def scalar_operation(
    name: str,
    arity: int,
    formula: Formula,
    cost: int,
    *,
    result: str = "same",
    on_bits: bool = False,
    kinds: tuple[str, ...] = ("float",),
) -> ScalarOp:
    """A row of the table of scalar operations, and of that of formulas. In NumPy it is the formula, too."""

    def in_numpy(*arrays: Any) -> Any:
        together = np.broadcast_arrays(*arrays)
        values = [Computed(np.ravel(a), from_numpy(a.dtype)) for a in together]
        with np.errstate(all="ignore"):
            value: Any = formula(*values)
        return value.array.reshape(together[0].shape)

    op = scalar.row(name, arity, in_numpy, result, cost)
    table.TABLE[op] = table.Row(formula, kinds, on_bits)
    return op


def function_of_floats(name: str, signature: str, doc: str, formula: Formula, cost: int) -> Op:
    """An elementwise op of floats."""
    op = Op(name, signature, doc, is_late=True)
    elementwise(op, scalar_operation(name, len(signature.split(",")), formula, cost), FLOATS)
    return op


def functions_of_floats(name: str, signature: str, doc: str, formula: Callable[..., Formula], price: int) -> Op:
    """An elementwise op of floats that stands for several functions: its attributes say which one. ``formula`` takes
    them, and gives the function's formula."""
    op = Op(name, signature, doc, is_late=True)
    arity = signature.partition("*")[0].count(",")

    @functools.cache
    def member(**attrs: Any) -> ScalarOp:
        own = "_".join([name, *(str(attrs[key]) for key in sorted(attrs))])
        return scalar_operation(own, arity, formula(**attrs), price)

    def abstract_eval_rule(*avals: ShapedArray, **attrs: Any) -> ShapedArray:
        require_dtype(name, avals[0].dtype, FLOATS)
        return aval(meeting_shape(op, *avals), avals[0].dtype)

    def expr(avals: Sequence[ShapedArray], *xs: Expr, **attrs: Any) -> Expr:
        return Apply(member(**attrs), xs, avals[-1].dtype)

    abstract_eval.register(op, abstract_eval_rule)
    reference.register(op, lambda *xs, **attrs: in_numpy(member(**attrs).numpy)(*xs))
    lower.register(op, Elementwise(expr))
    cost.register(op, per_element)
    axes.register(op, ELEMENTWISE)
    return op
