"""Transposed products: (A·B)ᵀ becomes Bᵀ·Aᵀ where all readers of the product transpose it.

The transposes of the operands are views and cost nothing, and the consumers of the product (an optimizer's update of a
weight, say) then read it in the order of computation, so that they can be fused as its epilogue; a cast of the product
may be between them. The bits are the same: each element is the same chain over k, and a multiplication commutes.
"""

from __future__ import annotations

from runnel.compiler.kernels.lowering import lowering_of
from runnel.core import tables
from runnel.core.avals import aval
from runnel.graph.graph import Graph
from runnel.graph.node import Value, applied, reapplied
from runnel.graph.rewriting import substituted
from runnel.ops.conversion import cast_p
from runnel.ops.views import permute_p


def flip_transposed_products(graph: Graph) -> Graph:
    """Rewrite every contraction of matrices whose only readers swap its last two axes."""
    users = graph.users()
    roots = set(graph.roots)
    replace: dict[Value, Value] = {}
    for node in graph.values:
        if not lowering_of(node).is_matmul(node) or node in roots or not users[node]:
            continue
        source = users[node][0] if len(users[node]) == 1 and users[node][0].op is cast_p else node
        readers = users[source]
        if readers and source not in roots and all(_swaps_last_two(user) for user in readers):
            a, b = node.inputs
            batch, (m, n) = node.aval.shape[:-2], node.aval.shape[-2:]
            shape = aval((*batch, n, m), node.aval.dtype)
            flipped = reapplied(node, (_swapped(b), _swapped(a)), aval=shape)
            if source is not node:
                flipped = applied(cast_p, (flipped,), source.attrs, readers[0].aval, source.where)
            for user in readers:
                replace[user] = flipped
    return substituted(graph, replace) if replace else graph


def _order(ndim: int) -> tuple[int, ...]:
    return (*range(ndim - 2), ndim - 1, ndim - 2)


def _swaps_last_two(node: Value) -> bool:
    return node.op is permute_p and node.attrs["axes"] == _order(node.aval.ndim)


def _swapped(node: Value) -> Value:
    """The transpose of an operand: a view, or the base of one."""
    if _swaps_last_two(node):
        return node.inputs[0]
    axes = _order(node.aval.ndim)
    return applied(
        permute_p, (node,), {"axes": axes}, tables.abstract_eval[permute_p](node.aval, axes=axes), node.where
    )
