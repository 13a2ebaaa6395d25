"""Ops that are made of others are replaced by what they are made of (table ``expand``).

The rules are written with the functions of ``runnel.ops``; here they are applied to :class:`Made`, a Value over nodes
of the graph. Programs of one op run this too: whatever is planned has been expanded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core import tables
from runnel.core.avals import Aval, aval
from runnel.core.dispatch import Value
from runnel.core.dtypes import DType
from runnel.core.rounding import rounded
from runnel.core.tables import Op
from runnel.graph.graph import Graph, Node
from runnel.passes.rewriting import rewrite


class Made(Value):
    """A node as a value that ops can be applied to: what they make are nodes too. ``where`` is the user's line."""

    __slots__ = ("node", "where")

    def __init__(self, node: Node, where: str) -> None:
        self.node = node
        self.where = where

    @property
    def aval(self) -> Aval:
        return self.node.aval

    def apply_op(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        rule = tables.expand.get(op)
        made = None if rule is None else rule(*inputs, **attrs)
        if made is not None:
            return made
        result = tables.infer[op](*[x.aval for x in inputs], **attrs)
        return Made(Node(op, tuple(x.node for x in inputs), attrs, result, self.where), self.where)

    def lift(self, array: Any, dtype: DType) -> Made:
        own = np.array(rounded(array, dtype))
        own.flags.writeable = False
        return Made(Node(None, (), {}, aval(own.shape, dtype), self.where, value=own), self.where)


def expand(graph: Graph) -> Graph:
    """``graph`` without nodes whose op has a rule in table ``expand``; the same graph if there are none."""

    def visit(node: Node) -> Node:
        rule = None if node.op is None else tables.expand.get(node.op)
        if rule is None:
            return node
        made: Made | None = rule(*[Made(x, node.where) for x in node.inputs], **node.attrs)
        return node if made is None else made.node

    return rewrite(graph, visit)
