"""The reference interpreter: run graphs in NumPy by table ``reference``. It defines the meaning of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.core.avals import ShapedArray
from runnel.core.errors import VerifierError
from runnel.core.tables import reference
from runnel.graph.graph import Graph
from runnel.graph.node import Node, Result, Value

Array = np.ndarray[Any, Any]


def run(graph: Graph, values: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """Return the outputs for these input values, and the new values of Variables in the order of ``graph.updates``."""
    if len(values) != len(graph.inputs):
        raise VerifierError(f"Graph '{graph.name}' must get {len(graph.inputs)} input values; got {len(values)}.")
    known: dict[Value, Any] = {}
    for x, array in zip(graph.inputs, values, strict=True):
        known[x] = _fitting(x, x.aval, np.asarray(array))
    order = graph.values
    last_reader = {x: value for value in order for x in value.inputs}
    roots = set(graph.roots)
    for value in order:
        if value not in known:
            if isinstance(value, Result):
                operands = [known[x] for x in value.inputs]
                known.update(zip(graph.nodes[value.node], _needed(graph, value.node, operands), strict=True))
            else:
                known[value] = _leaf(value)
        for x in set(value.inputs):
            if last_reader[x] is value and x not in roots:
                del known[x]
    return [known[o] for o in graph.outputs], [known[n] for n in graph.updates.values()]


def _needed(graph: Graph, node: Node, inputs: Sequence[Any]) -> list[Array]:
    results = evaluate(node, inputs)
    return [results[x.index] for x in graph.nodes[node]]


def evaluate(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
    """Return one node's results by table ``reference``, checked against their avals."""
    result = reference[node.op](*inputs, **node.attrs)
    results = result if node.op.multiple_results else (result,)
    return tuple([_fitting(node, aval, np.asarray(x)) for aval, x in zip(node.avals, results, strict=True)])


def _leaf(value: Value) -> Array:
    if value.is_input:
        raise VerifierError(f"{value!r} is an input that the graph does not list; it has no value.")
    return _fitting(value, value.aval, value.value)


def _fitting(of: Value | Node, aval: ShapedArray, value: Array) -> Array:
    if value.shape != aval.shape or value.dtype != aval.dtype.numpy:
        raise VerifierError(f"{of!r} was given a value of shape {value.shape} and dtype {value.dtype}.")
    return value
