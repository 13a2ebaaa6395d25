"""What computing a value again would cost, in additions for each element."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from runnel.core import tables
from runnel.core.dtypes import int64
from runnel.graph.graph import Node
from runnel.loops.ir import Apply, Const, Expr, Ref
from runnel.loops.rules import IndexFunction, Pointwise
from runnel.lowering.strided import Strided

_KNOWN: dict[Hashable, float] = {}  # by rule, dtypes and attributes: the shapes do not matter
_KEPT = 4096

COSTLY = 4.0  # a value of more additions is kept in memory rather than computed twice


def inline_constant(node: Node) -> bool:
    """Constants of one element are part of the code."""
    return node.is_constant and node.aval.size == 1


def cost_of(node: Node) -> float:
    """Operations per element, in additions."""
    rule = tables.lower.get(node.op) if node.op else None
    if not isinstance(rule, (Pointwise, IndexFunction)):
        return 1.0
    if any(isinstance(value, np.ndarray) for value in node.attrs.values()):
        return _cost_of(node, rule)
    key = (rule, node.aval.dtype, *[x.aval.dtype for x in node.inputs], *node.attrs.values())
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) >= _KEPT:
            _KNOWN.clear()
        known = _KNOWN[key] = _cost_of(node, rule)
    return known


def _cost_of(node: Node, rule: Pointwise | IndexFunction) -> float:
    refs = [Ref("x", x.aval.dtype) for x in node.inputs]
    avals = (*(x.aval for x in node.inputs), node.aval)
    if isinstance(rule, IndexFunction):
        return expression_cost(rule.expr(avals, Const(0, int64), *refs, **node.attrs))
    return expression_cost(rule.expr(avals, *refs, **node.attrs))


def expression_cost(value: Expr) -> float:
    if isinstance(value, Apply):
        return value.op.cost + sum(expression_cost(a) for a in value.args)
    return 0.0


def chain_is_costly(node: Node, inside: set[Node], views: dict[Node, Strided]) -> bool:
    """Whether computing ``node`` again costs more than loading it."""
    total, stack, seen = 0.0, [node], set[Node]()
    while stack and total <= COSTLY:
        n = stack.pop()
        if n in seen:
            continue
        seen.add(n)
        total += cost_of(n)
        stack.extend(b for b in (views[x].base for x in n.inputs) if b in inside)
    return total > COSTLY
