"""Graphs by hand: ``op(add_p, x, y)`` infers the aval as tracing does."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core.avals import aval
from runnel.core.dtypes import DType, float32, from_numpy
from runnel.core.tables import Op, infer
from runnel.graph.graph import Graph, InputKind, Node


def argument(*shape: int, dtype: DType = float32, name: str = "", kind: InputKind = InputKind.ARGUMENT) -> Node:
    return Node(None, (), {}, aval(shape, dtype), kind=kind, name=name)


def variable(*shape: int, dtype: DType = float32, name: str = "") -> Node:
    return argument(*shape, dtype=dtype, name=name, kind=InputKind.VARIABLE)


def constant(value: Any, dtype: DType = float32) -> Node:
    array = np.array(value, dtype.numpy)
    array.flags.writeable = False
    return Node(None, (), {}, aval(array.shape, from_numpy(array.dtype)), value=array)


def op(op_: Op, *inputs: Node, where: str = "", **attrs: Any) -> Node:
    return Node(op_, inputs, attrs, infer[op_](*(x.aval for x in inputs), **attrs), where)


def graph(inputs: list[Node], *outputs: Node, updates: dict[Node, Node] | None = None, name: str = "program") -> Graph:
    return Graph(inputs, outputs, updates or {}, name)
