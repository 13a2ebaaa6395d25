"""Constant folding: nodes that read only constants become constants, where NumPy and compiled code agree on every bit.

The lowerings say which nodes these are: data movement; all ops on integers and bools; and, on floats, single operations
that IEEE 754 rounds correctly. Transcendental functions, float reductions and contractions are not folded, nor are
results with a NaN, whose sign and payload differ between machines.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from runnel.compiler.kernels.lowering import lowering_of
from runnel.graph.graph import Graph
from runnel.graph.interpreter import evaluate
from runnel.graph.node import Constant, Result, Value
from runnel.graph.rewriting import rewrite

SMALL: Final = (
    4096  # bytes: a folded constant may grow to this; a larger one (a broadcast, an iota) costs more than computing it
)
MAX_BYTES: Final = 1 << 20  # of one folded constant
MAX_WORK: Final = 1 << 22  # elements computed in one graph


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
    """Whether table ``reference`` computes the same bits as compiled code for this node."""
    return lowering_of(node).agrees_with_reference(node)


def _is_settled(node: Value, value: Any) -> bool:
    """False where the sign of a NaN depends on the machine."""
    return not node.aval.dtype.is_float or lowering_of(node).moves_bits or not np.isnan(value).any()
