"""The same op on the same values with the same attributes is computed once; equal constants become one.

Value numbering (Cocke and Schwartz, "Programming Languages and Their Compilers", 1970) over the whole graph.
"""

from __future__ import annotations

from collections.abc import Hashable

from runnel.core.errors import VerifierError
from runnel.graph.graph import Graph
from runnel.graph.hashing import attrs_key, constant_key
from runnel.graph.node import Node, Result, Value
from runnel.graph.rewriting import rewrite


def merge_common_subexpressions(graph: Graph) -> Graph:
    """``graph`` with every value computed by one node, the first of the equal ones."""
    constants: dict[bytes, Value] = {}
    first: dict[Hashable, dict[int, Result]] = {}  # the needed results of a node, by number

    def visit(value: Value) -> Value:
        if not isinstance(value, Result):
            return constants.setdefault(constant_key(value), value)
        key = _key(value.node)
        if key is None:
            return value
        known = first.setdefault(key, {})
        if value.index not in known:
            other = next(iter(known.values()), value)
            known[value.index] = value if other.node is value.node else Result(other.node, value.index)
        return known[value.index]

    return rewrite(graph, visit)


def _key(node: Node) -> Hashable:
    """Equal for nodes with equal results; None for a node with attributes that cannot be compared."""
    try:
        return node.op, node.inputs, attrs_key(node.attrs), node.avals
    except VerifierError:
        return None
