"""The cost of computing a value again, and its code size, in additions."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from runnel.compiler.fusion.strided import Strided
from runnel.compiler.kernels.lowering import Lowering, lowering_of
from runnel.core.dtypes import int64
from runnel.graph.node import Value
from runnel.loops import uses
from runnel.loops.ir import Apply, Const, Expr, Ref

_KNOWN: dict[Hashable, tuple[float, float]] = {}  # by lowering, dtypes and attributes, whatever the shapes
_MOST_KNOWN = 4096

COSTLY = 4.0  # a value of more additions is kept in memory rather than computed twice


def inline_constant(node: Value) -> bool:
    """Whether a value is a constant of one element, which is part of the code."""
    return node.is_constant and node.aval.size == 1


def cost_of(node: Value) -> float:
    """Operations per element, in additions."""
    return _counted(node)[0]


def code_size(node: Value) -> float:
    """The same with shared subexpressions counted once: the size of the code."""
    return _counted(node)[1]


def _counted(node: Value) -> tuple[float, float]:
    lowering = lowering_of(node)
    if not lowering.is_expression:
        return 1.0, 1.0
    if any(isinstance(value, np.ndarray) for value in node.attrs.values()):
        return _count(node, lowering)
    key = (lowering, node.aval.dtype, *[x.aval.dtype for x in node.inputs], *node.attrs.values())
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[key] = _count(node, lowering)
    return known


def _count(node: Value, lowering: Lowering) -> tuple[float, float]:
    value = lowering.expression(node, [Ref("x", x.aval.dtype) for x in node.inputs], Const(0, int64))
    totals: dict[int, float] = {}
    return _total(value, totals), float(sum(part.op.cost for part in uses.parts(value) if isinstance(part, Apply)))


def _total(value: Expr, known: dict[int, float]) -> float:
    """The operations of an expression, shared ones counted at each use."""
    if not isinstance(value, Apply):
        return 0.0
    if id(value) not in known:
        known[id(value)] = value.op.cost + sum(_total(a, known) for a in value.args)
    return known[id(value)]


def chain_is_costly(node: Value, inside: set[Value], views: dict[Value, Strided]) -> bool:
    """Whether computing ``node`` again costs more than loading it."""
    total, stack, visited = 0.0, [node], set[Value]()
    while stack and total <= COSTLY:
        n = stack.pop()
        if n in visited:
            continue
        visited.add(n)
        total += cost_of(n)
        stack.extend(b for b in (views[x].base for x in n.inputs) if b in inside)
    return total > COSTLY
