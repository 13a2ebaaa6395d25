"""What of a program depends on Variables alone is computed once, and again when Variables have changed.

A network that serves reads the same weights at every call: filters brought into another order or transformed, weights
cast or scaled. Those values leave the program for a *preparation*, a program of its own; the rest reads them as inputs.
There, too, weights are brought into row-major order for the products that would do so at every call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.core import tables
from runnel.graph.graph import Graph, InputKind, Node
from runnel.loops.rules import Contraction, View, Winograd
from runnel.lowering.matrices import extents, merged_stride
from runnel.lowering.strided import Strided, resolve_views
from runnel.ops.contiguity import contiguous
from runnel.passes.expand import Made
from runnel.passes.rewriting import with_inputs

WORTH = 1 << 14  # elements that a preparation must make
FEW_ROWS = 64  # of a product: packing a transposed operand is not worth while


class Split(NamedTuple):
    """``preparation`` has a result for each of the last ``len(preparation.outputs)`` inputs of ``main``."""

    preparation: Graph
    main: Graph


def split(graph: Graph) -> Split | None:
    """The two parts; None where nothing of size depends on Variables alone."""
    if not any(x.kind is InputKind.VARIABLE and x not in graph.updates for x in graph.inputs):
        return None
    graph = with_dense_weights(graph)
    steady = _steady(graph)
    wanted = _frontier(graph, steady)
    if sum(node.aval.size for node in wanted) < WORTH:
        return None
    stand_ins = {
        node: Node(None, (), {}, node.aval, node.where, kind=InputKind.ARGUMENT, name=f"prepared{i}")
        for i, node in enumerate(wanted)
    }
    main = Graph((*graph.inputs, *stand_ins.values()), graph.outputs, graph.updates, graph.name).rebuilt(stand_ins)
    variables = [x for x in graph.inputs if x.kind is InputKind.VARIABLE]
    return Split(Graph(variables, wanted, {}, f"preparation of {graph.name}"), main)


def with_dense_weights(graph: Graph) -> Graph:
    """The graph with row-major copies of the weights that products would copy at every call."""
    steady, views = _steady(graph), resolve_views(graph)
    replaced: dict[Node, Node] = {}
    for node in graph.nodes:
        rule = tables.lower.get(node.op) if node.op is not None else None
        if isinstance(rule, Contraction) and not isinstance(rule, Winograd) and _is_copied(node, steady, views):
            weight: Any = contiguous(Made(node.inputs[1], node.where))
            replaced[node] = with_inputs(node, (node.inputs[0], weight.node))
    return graph.rebuilt(replaced) if replaced else graph


def _is_copied(product: Node, steady: set[Node], views: dict[Node, Strided]) -> bool:
    """Whether the second operand is a weight of some size that cannot be read in rows, nor packed for many rows."""
    weight = product.inputs[1]
    if weight not in steady or weight.aval.size < WORTH or not _rests_on_variables(weight):
        return False
    axes, strides = extents(product), views[weight].strides[len(extents(product).batch) :]
    split = len(axes.inner)
    row, column = merged_stride(axes.inner, strides[:split]), merged_stride(axes.columns, strides[split:])
    return row is None or column is None or (column != 1 and axes.m < FEW_ROWS)


def _steady(graph: Graph) -> set[Node]:
    found: set[Node] = set()
    for node in graph.nodes:
        is_given = node.is_constant or (node.kind is InputKind.VARIABLE and node not in graph.updates)
        if is_given or (node.op is not None and node.inputs and all(x in found for x in node.inputs)):
            found.add(node)
    return found


def _frontier(graph: Graph, steady: set[Node]) -> list[Node]:
    """The steady values, in order, that are computed (not viewed) and read by others than steady ones."""
    wanted: dict[Node, None] = {}
    readers = [x for node in graph.nodes if node not in steady for x in node.inputs]
    for node in [*readers, *graph.outputs]:
        source = node
        while source in steady and source.op is not None and isinstance(tables.lower.get(source.op), View):
            source = source.inputs[0]
        if source in steady and source.op is not None and _rests_on_variables(source):
            wanted[source] = None
    return list(wanted)


def _rests_on_variables(node: Node) -> bool:
    """Whether a Variable is among what ``node`` is made from; what constants make is the compiler's business."""
    stack, seen = [node], {node}
    while stack:
        x = stack.pop()
        if x.kind is InputKind.VARIABLE:
            return True
        new = [y for y in x.inputs if y not in seen]
        seen.update(new)
        stack += new
    return False
