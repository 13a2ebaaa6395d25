"""Graphs run in NumPy by table ``reference``: the oracle of the passes, and the meaning of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.core.errors import VerifierError
from runnel.core.tables import reference
from runnel.graph.graph import Graph, Node

Array = np.ndarray[Any, Any]


def run(graph: Graph, values: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """Outputs, and the new values of the Variables in the order of ``graph.updates``, for these input values."""
    if len(values) != len(graph.inputs):
        raise VerifierError(f"Graph '{graph.name}' has {len(graph.inputs)} inputs; {len(values)} values were given.")
    known: dict[Node, Array] = {}
    for node, value in zip(graph.inputs, values, strict=True):
        known[node] = _checked(node, np.asarray(value))
    nodes = graph.nodes
    last_reader = {x: node for node in nodes for x in node.inputs}
    kept = set(graph.roots)
    for node in nodes:
        if node not in known:
            known[node] = evaluate(node, [known[x] for x in node.inputs])
        for x in set(node.inputs):
            if last_reader[x] is node and x not in kept:
                del known[x]
    return [known[o] for o in graph.outputs], [known[n] for n in graph.updates.values()]


def evaluate(node: Node, inputs: Sequence[Array]) -> Array:
    """One node's value, checked against its aval."""
    if node.op is None:
        if node.is_input:
            raise VerifierError(f"{node!r} is an input that the graph does not list; it has no value.")
        return _checked(node, node.value)
    return _checked(node, np.asarray(reference[node.op](*inputs, **node.attrs)))


def _checked(node: Node, value: Array) -> Array:
    if value.shape != node.aval.shape or value.dtype != node.aval.dtype.numpy:
        raise VerifierError(f"{node!r} was given a value of shape {value.shape} and dtype {value.dtype}.")
    return value
