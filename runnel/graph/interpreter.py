"""Graphs run in NumPy by table ``reference``: the oracle of the passes, and the meaning of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.core.avals import Aval
from runnel.core.errors import VerifierError
from runnel.core.tables import reference
from runnel.graph.graph import Graph, Node

Array = np.ndarray[Any, Any]


def run(graph: Graph, values: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """Outputs, and the new values of the Variables in the order of ``graph.updates``, for these input values."""
    if len(values) != len(graph.inputs):
        raise VerifierError(f"Graph '{graph.name}' has {len(graph.inputs)} inputs; {len(values)} values were given.")
    known: dict[Node, Any] = {}
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


def evaluate(node: Node, inputs: Sequence[Any]) -> Any:
    """One node's value, checked against its aval; a tuple of values for an op of several results."""
    if node.op is None:
        if node.is_input:
            raise VerifierError(f"{node!r} is an input that the graph does not list; it has no value.")
        return _checked(node, node.value)
    value = reference[node.op](*inputs, **node.attrs)
    if isinstance(value, tuple):
        results = node.attrs["results"]
        return tuple(_fitting(node, aval, np.asarray(x)) for aval, x in zip(results, value, strict=True))
    return _checked(node, np.asarray(value))


def _checked(node: Node, value: Array) -> Array:
    return _fitting(node, node.aval, value)


def _fitting(node: Node, aval: Aval, value: Array) -> Array:
    if value.shape != aval.shape or value.dtype != aval.dtype.numpy:
        raise VerifierError(f"{node!r} was given a value of shape {value.shape} and dtype {value.dtype}.")
    return value
