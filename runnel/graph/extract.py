"""A subgraph as a graph of its own, with placeholders for its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from runnel.core.avals import ShapedArray
from runnel.graph.graph import Graph
from runnel.graph.node import Constant, Input, InputKind, Value
from runnel.graph.rewriting import copied


class Extracted(NamedTuple):
    """``value_map`` maps values of the whole graph to those of the subgraph."""

    graph: Graph
    value_map: dict[Value, Value]


def extract(inputs: Sequence[Value], outputs: Sequence[Value], name: str) -> Extracted:
    """The graph that computes ``outputs`` from ``inputs``, which may be any values. Constants are shared."""
    fresh: dict[Value, Value] = {x: placeholder(x.aval, x.name) for x in inputs}
    known = copied(outputs, fresh)
    return Extracted(Graph([fresh[x] for x in inputs], [known[o] for o in outputs], {}, name), known)


def placeholder(value: ShapedArray, name: str) -> Input:
    """An input."""
    return Input(value, InputKind.ARGUMENT, name)


def zeros(value: ShapedArray) -> Constant:
    """A constant of zeros."""
    array = np.zeros(value.shape, value.dtype.numpy)
    array.flags.writeable = False
    return Constant(value, array)
