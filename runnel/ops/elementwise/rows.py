"""Rows of elementwise ops: what the files of this folder are made of.

``unary_function`` and ``binary_function`` make an op and its function of a scalar operation, the dtypes that it takes,
its derivatives and a sentence. ``function_of_floats`` does so with a new formula (``loops.formulas``). They
call ``elementwise``, which registers shape, value and kernel, and ``partials``, which registers derivatives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import ELEMENTWISE
from runnel.core.dtypes import FLOATS, INTEGERS, REAL, bool_, from_numpy
from runnel.core.rules import Rule, Tangents
from runnel.core.tables import Op, abstract_eval, axes, complex_rules, cost, jvp, lower, reference, vjp
from runnel.loops import scalar
from runnel.loops.formulas import table
from runnel.loops.formulas.computed import Computed
from runnel.loops.formulas.value import Value
from runnel.loops.ir import Apply, Expr
from runnel.loops.rules import Elementwise
from runnel.loops.scalar import ScalarOp
from runnel.ops.arguments import Array, Operand, broadcast_shapes, require_dtype, require_same_dtype, require_same_rank
from runnel.ops.promotion import binary, unary, unary_float
from runnel.ops.shapes.broadcasting import broadcast_to, unbroadcast

NUMBERS = INTEGERS + FLOATS
BITS = (bool_, *INTEGERS)
ANY = REAL
_HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))

Unary = Callable[[Operand], Array]
Binary = Callable[[Operand, Operand], Array]
Partial = Callable[..., Array]  # (g, out, *inputs, **attrs) -> cotangent, before the sum over broadcast axes


def elementwise(
    op: Op,
    scalar_op: ScalarOp,
    accepted: Sequence[Any],
    *,
    literal: bool = False,
    of_bools: ScalarOp | None = None,
    in_numpy: Callable[..., Any] | None = None,
) -> None:
    """Register ``op`` as ``scalar_op`` on each element.

    Args:
        op: the op.
        scalar_op: the operation on one element of each operand.
        accepted: the dtypes that it takes.
        literal: whether constant operands become literals of the kernel.
        of_bools: the operation on bools, if they are taken as well.
        in_numpy: the rule of table ``reference``; by default the operation's NumPy function, with half precision
            computed in float32 and rounded once.
    """
    accepted = accepted if of_bools is None else (bool_, *accepted)
    accepts = frozenset(accepted)
    gives_bool = scalar_op.result == "bool"

    def abstract_eval_rule(*avals: ShapedArray) -> ShapedArray:
        first = avals[0]
        if first.dtype not in accepts:
            require_dtype(op.name, first.dtype, accepted)
        shape = first.shape if avals[-1] is first and len(avals) <= 2 else meeting_shape(op, *avals)
        if shape is first.shape and not gives_bool:
            return first
        return aval(shape, bool_ if gives_bool else first.dtype)

    def expr(avals: Sequence[ShapedArray], *xs: Expr) -> Expr:
        computed = scalar_op if of_bools is None or xs[0].dtype is not bool_ else of_bools
        return Apply(computed, xs, avals[-1].dtype)

    abstract_eval.register(op, abstract_eval_rule)
    reference.register(op, in_numpy or computed_in_numpy(scalar_op.numpy, np.dtype(np.bool_) if gives_bool else None))
    lower.register(op, Elementwise(expr, literal))
    cost.register(op, per_element)
    axes.register(op, ELEMENTWISE)


def meeting_shape(op: Op, *avals: ShapedArray) -> tuple[int, ...]:
    """Return the broadcast shape of operands of equal dtype and rank."""
    first = avals[0]
    if len(avals) == 1 or all(a is first for a in avals):
        return first.shape
    require_same_dtype(op.name, *avals)
    require_same_rank(op.name, *avals)
    return broadcast_shapes(op.name, *(a.shape for a in avals))


def per_element(*avals: ShapedArray, **attrs: Any) -> int:
    """Count one operation for each element of the result (table ``cost``)."""
    size = 1
    for n in broadcast_shapes("cost", *(a.shape for a in avals)):
        size *= n
    return size


def computed_in_numpy(function: Callable[..., Any], result: Any = None) -> Callable[..., Any]:
    """Return a rule of table ``reference`` from a NumPy function. Half precision is computed in float32 and rounded
    once."""

    def rule(*arrays: Any, **attrs: Any) -> Any:
        dtype = arrays[-1].dtype if result is None else result
        wide = [a.astype(np.float32) if a.dtype in _HALVES else a for a in arrays]
        with np.errstate(all="ignore"):
            return np.asarray(function(*wide, **attrs)).astype(dtype, copy=False)

    return rule


def partials(op: Op, *rules: Partial | None) -> None:
    """Register the gradient of each operand: ``rule(g, out, *inputs, **attrs)``, or None for an operand without one.

    The tangent follows from the same rules. Gradients of ops with several operands are registered as functions, so that
    the tape computes only those it needs.
    """
    jvp.register(op, diagonal(rules))
    if len(rules) == 1:
        only = rules[0]
        vjp.register(op, lambda g, out, *xs, **attrs: (None if only is None else only(g, out, *xs, **attrs),))
        return

    def later(
        rule: Partial | None, g: Array, out: Array, xs: tuple[Array, ...], x: Array, attrs: dict[str, Any]
    ) -> Callable[[], Array] | None:
        return None if rule is None else lambda: unbroadcast(rule(g, out, *xs, **attrs), x.shape)

    def vjp_rule(g: Array, out: Array, *xs: Array, **attrs: Any) -> tuple[Callable[[], Array] | None, ...]:
        return tuple(later(rule, g, out, xs, x, attrs) for rule, x in zip(rules, xs, strict=True))

    vjp.register(op, vjp_rule)


def diagonal(rules: Sequence[Partial | None]) -> Rule:
    """Return the rule for the tangent of an elementwise op. Its Jacobian is diagonal, so the rule that maps the
    gradient of the result to the gradient of an operand also maps the tangent of the operand to the tangent of the
    result."""

    def jvp_rule(tangents: Tangents, out: Array, *inputs: Array, **attrs: Any) -> list[Array]:
        pairs = [(rule, t) for rule, t in zip(rules, tangents, strict=True) if rule is not None and t is not None]
        return [rule(broadcast_to(t, out.shape), out, *inputs, **attrs) for rule, t in pairs]

    return jvp_rule


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


def unary_function(
    name: str,
    operation: ScalarOp,
    accepted: Sequence[Any],
    slope: Partial | None,
    doc: str,
    *,
    op_name: str = "",
    through: Callable[..., Array] = unary,
    complex_rule: Any = None,
    is_late: bool = False,
    version: str | None = None,
) -> tuple[Op, Callable[[Operand], Array]]:
    """Return an elementwise op of one operand, and the function that applies it to tensors and numbers.

    Args:
        name: the name of the function.
        operation: computes an element of the result.
        accepted: the dtypes that the op takes.
        slope: ``slope(g, out, x)`` is the gradient of x, where ``g`` is the gradient of the result ``out``; None for an
            op without gradient.
        doc: the docstring, a sentence.
        op_name: the name of the op, if it differs from the function's name.
        through: applies the op: ``unary``, or ``unary_float``, which converts integers to float32.
        complex_rule: the rule in table ``complex``; None for an op that takes no complex numbers.
        is_late: whether the module is imported at first use (:class:`Op`).
        version: of an op from outside the core (:class:`Op`).
    """
    op = Op(op_name or name, "x", doc, is_late=is_late, version=version)
    elementwise(op, operation, accepted)
    partials(op, slope)
    if complex_rule is not None:
        complex_rules.register(op, complex_rule)

    def function(x: Operand) -> Array:
        return through(op, x)

    if through not in (unary, unary_float):  # which convert numbers
        function.__annotations__["x"] = "Array"
    return op, named(function, name, doc)


def binary_function(
    name: str,
    operation: ScalarOp,
    accepted: Sequence[Any],
    slopes: tuple[Partial | None, Partial | None],
    doc: str,
    *,
    op_name: str = "",
    through: Callable[..., Array] = binary,
    of_bools: ScalarOp | None = None,
    literal: bool = False,
) -> tuple[Op, Callable[[Operand, Operand], Array]]:
    """Return an elementwise op of two operands, and the function that broadcasts, promotes and applies it.

    It takes the arguments of :func:`unary_function` and :func:`elementwise`, with a slope for each operand."""
    op = Op(op_name or name, "x, y", doc)
    elementwise(op, operation, accepted, of_bools=of_bools, literal=literal)
    partials(op, *slopes)

    def function(x: Operand, y: Operand) -> Array:
        return through(op, x, y)

    return op, named(function, name, doc)


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
    """Return an elementwise op of one float and its function, as :func:`unary_function`, for a new formula.

    ``formula`` computes the result (``loops.formulas``); ``cost`` is in units of one addition."""
    operation = scalar_operation(name, 1, formula, cost, version=version or "")
    return unary_function(
        name, operation, FLOATS, slope, doc,
        through=unary_float, complex_rule=complex_rule, is_late=True, version=version,
    )  # fmt: skip


def named(function: FunctionT, name: str, doc: str) -> FunctionT:
    """Return ``function`` with the name and docstring of a row. ``runnel.ops`` is where pickle finds it."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = "runnel.ops"
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
