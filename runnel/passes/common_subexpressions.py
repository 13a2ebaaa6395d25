"""The same op on the same values with the same attributes is computed once; equal constants become one.

Value numbering (Cocke and Schwartz, "Programming Languages and Their Compilers", 1970) over the whole graph.
"""

from __future__ import annotations

from collections.abc import Hashable

from runnel.core.errors import VerifierError
from runnel.graph.graph import Graph, Node
from runnel.graph.hashing import attrs_key, constant_key
from runnel.passes.rewriting import rewrite


def merge_common_subexpressions(graph: Graph) -> Graph:
    """``graph`` with every value computed by one node, the first that did."""
    first: dict[Hashable, Node] = {}

    def visit(node: Node) -> Node:
        key = _key(node)
        return node if key is None else first.setdefault(key, node)

    return rewrite(graph, visit)


def _key(node: Node) -> Hashable:
    """What makes two nodes one value; None for a node with attributes that cannot be compared."""
    if node.op is None:
        return constant_key(node)
    try:
        return node.op, node.inputs, attrs_key(node.attrs), node.aval
    except VerifierError:
        return None
