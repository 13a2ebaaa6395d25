"""Views as index arithmetic: each view of a graph is an offset and strides over the dense memory of another node."""

from __future__ import annotations

from runnel.compiler.fusion.strided import Strided
from runnel.compiler.kernels.lowering import lowering_of
from runnel.core.avals import Shape, row_major
from runnel.graph.graph import Graph
from runnel.graph.node import Value


def resolve_views(graph: Graph, strides: dict[Value, Shape] | None = None) -> dict[Value, Strided]:
    """For every node, its base and strides: itself, unless its op is a view that needs no copy. ``strides`` are those
    of inputs that are not dense.

    A view that strides cannot express (a reshape that merges axes out of order) is its own base: it is copied.
    """
    views: dict[Value, Strided] = {}
    for node in graph.values:
        viewed = _view(views[node.inputs[0]], node) if lowering_of(node).is_view else None
        own = (strides or {}).get(node, row_major(node.aval.shape))
        views[node] = viewed if viewed is not None else Strided(node, 0, own)
    return views


def _view(source: Strided, node: Value) -> Strided | None:
    viewed = lowering_of(node).layout(node.inputs[0].aval, source.strides, node.aval, node.attrs)
    return None if viewed is None else Strided(source.base, source.offset + viewed[0], viewed[1])
