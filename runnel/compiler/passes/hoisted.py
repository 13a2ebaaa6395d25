"""What of a program depends on Variables alone is computed once, and again when Variables have changed.

A network that serves reads the same weights at every call: filters brought into another order or transformed, weights
cast or scaled. Those values leave the program for a *preparation*, a program of its own; the rest reads them as inputs.
There, too, weights are laid out as the products read them that would do so at every call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.backends import context
from runnel.compiler.fusion.strided import Strided
from runnel.compiler.fusion.views import resolve_views
from runnel.compiler.kernels.lowering import lowering_of
from runnel.compiler.kernels.result_axes import Extents, merged_stride
from runnel.compiler.passes.expand import Expanding
from runnel.graph.graph import Graph
from runnel.graph.node import Input, InputKind, Value
from runnel.graph.rewriting import substituted
from runnel.ops.panels import in_panels, panel_product

WORTH = 1 << 14  # elements that a preparation must make
MANY_ROWS = 1024  # of a product: beside them, it is little work to lay its weight out at each call


class Split(NamedTuple):
    """``preparation`` has a result for each of the last ``len(preparation.outputs)`` inputs of ``main``."""

    preparation: Graph
    main: Graph


def split(graph: Graph) -> Split | None:
    """The two parts; None where nothing of size depends on Variables alone."""
    if not any(x.kind is InputKind.VARIABLE and x not in graph.updates for x in graph.inputs):
        return None
    graph = with_panels(graph)
    steady = _steady(graph)
    wanted = _frontier(graph, steady)
    if sum(node.aval.size for node in wanted) < WORTH:
        return None
    stand_ins: dict[Value, Value] = {
        node: Input(node.aval, InputKind.ARGUMENT, f"prepared{i}", node.where) for i, node in enumerate(wanted)
    }
    main = Graph((*graph.inputs, *stand_ins.values()), graph.outputs, graph.updates, graph.name, graph.effects)
    main = substituted(main, stand_ins)
    variables = [x for x in graph.inputs if x.kind is InputKind.VARIABLE]
    return Split(Graph(variables, wanted, {}, f"preparation of {graph.name}"), main)


def with_panels(graph: Graph) -> Graph:
    """The graph with copies in panels of the weights that products would copy at every call."""
    steady, views = _steady(graph), resolve_views(graph)
    replaced: dict[Value, Value] = {}
    for node in graph.values:
        axes = lowering_of(node).packable(node)
        if axes is not None and _is_copied(node, axes, steady, views):
            x, weight = (Expanding(y, node.where) for y in node.inputs)
            width = context.current().target.panel_columns(node.aval.dtype)
            panels: Any = in_panels(weight, len(axes.inner), width)
            made: Any = panel_product(x, panels, len(axes.inner), axes.columns)
            replaced[node] = made.value
    return substituted(graph, replaced) if replaced else graph


def _is_copied(product: Value, axes: Extents, steady: set[Value], views: dict[Value, Strided]) -> bool:
    """Whether the second operand is a weight of some size that is read by few rows or cannot be where it lies."""
    weight = product.inputs[1]
    if (
        product in steady
        or weight not in steady
        or weight.aval.size < WORTH
        or axes.is_batched
        or not _rests_on_variables(weight)
    ):
        return False
    strides = views[weight].strides[len(axes.batch) :]
    split = len(axes.inner)
    row, column = merged_stride(axes.inner, strides[:split]), merged_stride(axes.columns, strides[split:])
    return row is None or column is None or axes.m < MANY_ROWS


def _steady(graph: Graph) -> set[Value]:
    found: set[Value] = set()
    for node in graph.values:
        is_given = node.is_constant or (node.kind is InputKind.VARIABLE and node not in graph.updates)
        if is_given or (node.op is not None and node.inputs and all(x in found for x in node.inputs)):
            found.add(node)
    return found


def _frontier(graph: Graph, steady: set[Value]) -> list[Value]:
    """The steady values, in order, that are computed (not viewed) and read by others than steady ones."""
    wanted: dict[Value, None] = {}
    readers = [x for node in graph.values if node not in steady for x in node.inputs]
    for node in [*readers, *graph.outputs]:
        source = node
        while source in steady and lowering_of(source).is_view:
            source = source.inputs[0]
        if source in steady and source.op is not None and _rests_on_variables(source):
            wanted[source] = None
    return list(wanted)


def _rests_on_variables(node: Value) -> bool:
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
