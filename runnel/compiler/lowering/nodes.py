"""Properties of nodes by their lowerings: views of other nodes, the cost of an element, and code size."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from runnel.compiler.lowering.protocol import Lowering, lowering_of
from runnel.compiler.plan_ir.strides import Strided
from runnel.core.avals import Shape, row_major
from runnel.core.dtypes import int64
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.loops import uses
from runnel.loops.ir import Apply, Const, Expr, Ref


def resolve_views(graph: Graph, strides: dict[Value, Shape] | None = None) -> dict[Value, Strided]:
    """For every node, its base and strides: itself, unless its op is a view that needs no copy. ``strides`` are those
    of inputs that are not dense.

    A view that strides cannot express (a reshape that merges axes out of order) is its own base: it is copied.
    """
    views: dict[Value, Strided] = {}
    for node in graph.values:
        viewed = _view(views[node.inputs[0]], node) if lowering_of(node).is_view else None
        own = (strides or {}).get(node, row_major(node.aval.shape))
        views[node] = viewed if viewed is not None else Strided(node, 0, own)
    return views


def _view(source: Strided, node: Value) -> Strided | None:
    viewed = lowering_of(node).layout(node.inputs[0].aval, source.strides, node.aval, node.attrs)
    return None if viewed is None else Strided(source.base, source.offset + viewed[0], viewed[1])


_KNOWN: dict[Hashable, tuple[float, float]] = {}  # by lowering, dtypes and attributes, whatever the shapes
_MOST_KNOWN = 4096

COSTLY = 4.0  # a value of more additions is kept in memory rather than computed twice


def inline_constant(node: Value) -> bool:
    """Return whether a value is a constant of one element, which is part of the code."""
    return node.is_constant and node.aval.size == 1


def cost_of(node: Value) -> float:
    """Operations per element, in additions."""
    return _counted(node)[0]


def code_size(node: Value) -> float:
    """Return the same with shared subexpressions counted once: the size of the code."""
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
    """Return the operations of an expression, shared ones counted at each use."""
    if not isinstance(value, Apply):
        return 0.0
    if id(value) not in known:
        known[id(value)] = value.op.cost + sum(_total(a, known) for a in value.args)
    return known[id(value)]


def chain_is_costly(node: Value, inside: set[Value], views: dict[Value, Strided]) -> bool:
    """Return whether computing ``node`` again costs more than loading it."""
    total, stack, visited = 0.0, [node], set[Value]()
    while stack and total <= COSTLY:
        n = stack.pop()
        if n in visited:
            continue
        visited.add(n)
        total += cost_of(n)
        stack.extend(b for b in (views[x].base for x in n.inputs) if b in inside)
    return total > COSTLY
