"""Results in any order of axes: final permutes are removed, and strides describe the results' memory."""

from __future__ import annotations

from runnel.core.avals import Shape, row_major
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.ops.views import permute_p


def in_any_order(graph: Graph) -> tuple[Graph, tuple[Shape, ...]]:
    """``graph`` without the permutes at its end, and the strides of each result in memory."""
    reordered = [_in_its_own(x) for x in graph.outputs]
    outputs = [x for x, _ in reordered]
    if outputs != list(graph.outputs):
        graph = Graph(graph.inputs, outputs, graph.updates, graph.name, graph.effects)
    return graph, tuple([strides for _, strides in reordered])


def _in_its_own(result: Value) -> tuple[Value, Shape]:
    if result.op is not permute_p:
        return result, row_major(result.aval.shape)
    (inner,) = result.inputs
    steps = row_major(inner.aval.shape)
    return inner, tuple([steps[a] for a in result.attrs["axes"]])
