"""Nodes that read only constants become constants, where NumPy and compiled code agree on every bit.

Which nodes those are is read off their ``lower`` rules: data movement; whatever is done on integers and bools; and, on
floats, a single operation that IEEE 754 rounds correctly. Transcendental functions, float reductions and contractions
stay. So do results with a NaN, whose sign and payload differ between machines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from runnel.core.tables import lower
from runnel.graph.graph import Graph
from runnel.graph.interpreter import evaluate
from runnel.graph.node import Constant, Result, Value
from runnel.graph.rewriting import rewrite
from runnel.loops import scalar
from runnel.loops.ir import Apply, Expr, Ref
from runnel.loops.rules import Concatenation, Gather, IndexFunction, Pointwise, Reduction, View

SMALL: Final = (
    4096  # bytes: a constant may grow to this; a larger one (a broadcast, an iota) costs more than computing it
)
MAX_BYTES: Final = 1 << 20  # of one folded constant
MAX_WORK: Final = 1 << 22  # elements computed in one graph

_ROUNDED_ONCE: Final = {
    scalar.maximum, scalar.minimum,
    scalar.add, scalar.sub, scalar.mul, scalar.div, scalar.sqrt, scalar.neg, scalar.abs_, scalar.sign,
    scalar.floor, scalar.ceil, scalar.trunc, scalar.rint, scalar.cast, scalar.bitcast, scalar.select,
    scalar.lt, scalar.le, scalar.gt, scalar.ge, scalar.eq, scalar.ne, scalar.isnan, scalar.isinf,
}  # fmt: skip


def fold_constants(graph: Graph, max_bytes: int = MAX_BYTES, max_work: int = MAX_WORK) -> Graph:
    """``graph`` with constant nodes evaluated, while constants stay small and the work bounded."""
    work = 0

    def visit(node: Value) -> Value:
        nonlocal work
        if not isinstance(node, Result) or not node.inputs or not all(x.is_constant for x in node.inputs):
            return node
        read = sum(x.aval.nbytes for x in node.inputs)
        cost = node.aval.size + sum(x.aval.size for x in node.inputs)
        if node.aval.nbytes > min(max_bytes, max(read, SMALL)) or work + cost > max_work or not agrees(node):
            return node
        work += cost
        (value,) = evaluate(node.node, [x.value for x in node.inputs])
        return _constant(node, value) if _is_settled(node, value) else node

    return rewrite(graph, visit)


def _constant(node: Value, value: Any) -> Value:
    own = np.array(value)
    own.flags.writeable = False
    return Constant(node.aval, own, node.where)


def agrees(node: Value) -> bool:
    """Whether table ``reference`` gives, for this node, the bits that compiled code gives."""
    rule = None if node.op is None else lower.get(node.op)
    if isinstance(rule, View | Concatenation | Gather):
        return True
    floats = node.aval.dtype.is_float or any(x.aval.dtype.is_float for x in node.inputs)
    if isinstance(rule, Reduction | IndexFunction):
        return not floats
    if not isinstance(rule, Pointwise):
        return False
    expr = _expression(node, rule)
    if isinstance(expr, Apply) and all(isinstance(arg, Ref) for arg in expr.args):
        return not floats or expr.op in _ROUNDED_ONCE
    return not any(part.dtype.is_float for part in _parts(expr))


def _expression(node: Value, rule: Pointwise) -> Expr:
    """What a pointwise node does to one element of each input."""
    names = [Ref(f"x{place}", x.aval.dtype) for place, x in enumerate(node.inputs)]
    return rule.expr([*(x.aval for x in node.inputs), node.aval], *names, **node.attrs)


def _parts(expr: Expr) -> Iterator[Expr]:
    yield expr
    if isinstance(expr, Apply):
        for arg in expr.args:
            yield from _parts(arg)


def _is_settled(node: Value, value: Any) -> bool:
    """False where the sign of a NaN is the machine's choice."""
    rule = None if node.op is None else lower.get(node.op)
    return not node.aval.dtype.is_float or not isinstance(rule, Pointwise) or not np.isnan(value).any()
