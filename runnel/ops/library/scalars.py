"""Elementwise primitives whose formula is in ``loops.formulas``: their registration in the tables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import ELEMENTWISE
from runnel.core.dtypes import FLOATS, from_numpy
from runnel.core.tables import Op, abstract_eval, axes, complex_rules, cost, lower, reference
from runnel.loops import scalar
from runnel.loops.formulas import table
from runnel.loops.formulas.computed import Computed
from runnel.loops.formulas.value import Value
from runnel.loops.ir import Apply, Expr
from runnel.loops.rules import Elementwise
from runnel.loops.scalar import ScalarOp
from runnel.ops.arguments import Array, Operand, require_dtype
from runnel.ops.family import Partial, computed_in_numpy, elementwise, meeting_shape, partials, per_element
from runnel.ops.promotion import unary_float

Formula = Callable[..., Value]
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def scalar_operation(
    name: str,
    arity: int,
    formula: Formula,
    cost: int,
    *,
    result: str = "same",
    on_bits: bool = False,
    kinds: tuple[str, ...] = ("float",),
    version: str = "",
) -> ScalarOp:
    """Return a new scalar operation, and add its formula to the table of formulas. NumPy evaluates the formula, too.

    Args:
        name: the operation's name.
        arity: the number of its arguments.
        formula: a function of ``Value`` objects (``loops.formulas``).
        cost: in units of one addition.
        result: "same" (the dtype of the arguments) or "bool".
        on_bits: whether the formula takes float16 and bfloat16 as they are, rather than as float32.
        kinds: the kinds of dtype that it takes.
        version: identifies a formula from outside ``loops`` in the cache of machine code; change it with the formula.
    """

    def in_numpy(*arrays: Any) -> Any:
        together = np.broadcast_arrays(*arrays)
        values = [Computed(np.ravel(a), from_numpy(a.dtype)) for a in together]
        with np.errstate(all="ignore"):
            value: Any = formula(*values)
        return value.array.reshape(together[0].shape)

    op = scalar.row(name, arity, in_numpy, result, cost, version)
    table.TABLE[op] = table.Row(formula, kinds, on_bits)
    return op


def function_of_floats(
    name: str,
    formula: Formula,
    cost: int,
    slope: Partial,
    doc: str,
    *,
    complex_rule: Any = None,
    version: str | None = None,
) -> tuple[Op, Callable[[Operand], Array]]:
    """Return an elementwise op of one float, and the function that applies it to tensors and numbers.

    Args:
        name: the name of both.
        formula: computes the result (``loops.formulas``).
        cost: in units of one addition.
        slope: ``slope(g, out, x)`` is the gradient of x, where ``g`` is the gradient of the result ``out``.
        doc: the docstring, a sentence.
        complex_rule: its rule in table ``complex``; None if it takes no complex numbers.
        version: of an op from outside the package's core (:class:`Op`).
    """
    op = Op(name, "x", doc, is_late=True, version=version)
    elementwise(op, scalar_operation(name, 1, formula, cost, version=version or ""), FLOATS)
    partials(op, slope)
    if complex_rule is not None:
        complex_rules.register(op, complex_rule)

    def function(x: Operand) -> Array:
        return unary_float(op, x)

    return op, named(function, name, doc)


def named(function: FunctionT, name: str, doc: str) -> FunctionT:
    """Return ``function`` with the name and docstring of a row, in the module that is being imported."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def family_of_floats(
    name: str, signature: str, doc: str, formula: Callable[..., Formula], price: int, version: str | None = None
) -> Op:
    """Return an elementwise op of floats whose attributes select one of several functions. ``formula`` takes the
    attributes and returns the function's formula."""
    op = Op(name, signature, doc, is_late=True, version=version)
    arity = signature.partition("*")[0].count(",")

    @functools.cache
    def member(**attrs: Any) -> ScalarOp:
        own = "_".join([name, *(str(attrs[key]) for key in sorted(attrs))])
        return scalar_operation(own, arity, formula(**attrs), price, version=version or "")

    def abstract_eval_rule(*avals: ShapedArray, **attrs: Any) -> ShapedArray:
        require_dtype(name, avals[0].dtype, FLOATS)
        return aval(meeting_shape(op, *avals), avals[0].dtype)

    def expr(avals: Sequence[ShapedArray], *xs: Expr, **attrs: Any) -> Expr:
        return Apply(member(**attrs), xs, avals[-1].dtype)

    abstract_eval.register(op, abstract_eval_rule)
    reference.register(op, lambda *xs, **attrs: computed_in_numpy(member(**attrs).numpy)(*xs))
    lower.register(op, Elementwise(expr))
    cost.register(op, per_element)
    axes.register(op, ELEMENTWISE)
    return op
