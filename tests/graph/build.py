"""Graphs by hand: ``op(add_p, x, y)`` infers the aval as tracing does."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core.avals import aval
from runnel.core.dtypes import DType, float32, from_numpy
from runnel.core.tables import Op, abstract_eval
from runnel.graph.graph import Graph
from runnel.graph.node import Constant, Input, InputKind, Value, applied


def argument(*shape: int, dtype: DType = float32, name: str = "", kind: InputKind = InputKind.ARGUMENT) -> Value:
    return Input(aval(shape, dtype), kind, name)


def variable(*shape: int, dtype: DType = float32, name: str = "") -> Value:
    return argument(*shape, dtype=dtype, name=name, kind=InputKind.VARIABLE)


def constant(value: Any, dtype: DType = float32) -> Value:
    array = np.array(value, dtype.numpy)
    array.flags.writeable = False
    return Constant(aval(array.shape, from_numpy(array.dtype)), array)


def op(op_: Op, *inputs: Value, where: str = "", **attrs: Any) -> Value:
    return applied(op_, inputs, attrs, abstract_eval[op_](*(x.aval for x in inputs), **attrs), where)


def graph(
    inputs: list[Value], *outputs: Value, updates: dict[Value, Value] | None = None, name: str = "program"
) -> Graph:
    return Graph(inputs, outputs, updates or {}, name)
