"""Ops that are made of others are replaced by what they are made of (table ``expand``).

The rules are written with the functions of ``runnel.ops``; here they are applied to :class:`Made`, tensors that stand
for values of the graph. Programs of one op run this too: whatever is planned has been expanded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core import tables
from runnel.core.avals import Aval, aval
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import DType
from runnel.core.rounding import rounded
from runnel.core.tables import Op
from runnel.graph.graph import Graph
from runnel.graph.node import Constant, Value, applied
from runnel.graph.rewriting import rewrite


class Made(TensorLike):
    """A value of a graph that ops can be applied to: they make others. ``where`` is the user's line."""

    __slots__ = ("node", "where")

    def __init__(self, node: Value, where: str) -> None:
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
        return Made(applied(op, tuple(x.node for x in inputs), attrs, result, self.where), self.where)

    def lift(self, array: Any, dtype: DType) -> Made:
        own = np.array(rounded(array, dtype))
        own.flags.writeable = False
        return Made(Constant(aval(own.shape, dtype), own, self.where), self.where)


def expand(graph: Graph) -> Graph:
    """``graph`` without nodes whose op has a rule in table ``expand``; the same graph if there are none."""

    def visit(node: Value) -> Value:
        rule = None if node.op is None else tables.expand.get(node.op)
        if rule is None:
            return node
        made: Made | None = rule(*[Made(x, node.where) for x in node.inputs], **node.attrs)
        return node if made is None else made.node

    return rewrite(graph, visit)
