"""Decomposition: composite ops are replaced by their definitions (table ``decompose``).

The rules use the functions of ``runnel.ops``; here they are applied to :class:`Decomposing`, tensors that represent
values of the graph. Programs of one op run this too: every planned graph has been expanded.
"""

from __future__ import annotations

from typing import Any

from runnel.core import tables
from runnel.core.tables import Op
from runnel.graph.building import Built
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.graph.rewriting import rewrite


class Decomposing(Built):
    """A value of the graph; composite ops that are applied to it are expanded."""

    __slots__ = ()

    def apply_op(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        rule = tables.decompose.get(op)
        expanded = None if rule is None else rule(*inputs, **attrs)
        return super().apply_op(op, inputs, attrs) if expanded is None else expanded


def decompose(graph: Graph) -> Graph:
    """``graph`` without nodes whose op has a rule in table ``decompose``; the same graph if there are none."""

    def visit(node: Value) -> Value:
        rule = None if node.op is None else tables.decompose.get(node.op)
        if rule is None:
            return node
        expanded: Decomposing | None = rule(*[Decomposing(x, node.where) for x in node.inputs], **node.attrs)
        return node if expanded is None else expanded.value

    return rewrite(graph, visit)
