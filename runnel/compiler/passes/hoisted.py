"""Hoisting: values that depend on Variables alone are computed once, and again when Variables have changed.

Inference reads the same weights at every call: filters permuted or transformed, weights cast or scaled. These values
are moved to a separate program; the main program reads them as inputs. Weights that products would
pack at every call are packed there, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.backends import context
from runnel.compiler.lowering.protocol import lowering_of, resolve_views
from runnel.compiler.passes.decompose import Decomposing
from runnel.compiler.plan_ir.strides import Extents, Strided, merged_stride
from runnel.graph.graph import Graph
from runnel.graph.node import Input, InputKind, Value
from runnel.graph.rewriting import substituted
from runnel.ops.linear_algebra.panels import in_panels, panel_product

WORTH = 1 << 14  # least elements of the hoisted constants
MANY_ROWS = 1024  # of a product, from which on packing its weight at each call is a small cost


class Split(NamedTuple):
    """``hoisted_constants`` has a result for each of the last ``len(hoisted_constants.outputs)`` inputs of ``main``."""

    hoisted_constants: Graph
    main: Graph


def split(graph: Graph) -> Split | None:
    """Return the two parts; None if no large values depend on Variables alone."""
    if not any(x.kind is InputKind.VARIABLE and x not in graph.updates for x in graph.inputs):
        return None
    graph = with_panels(graph)
    invariant = _invariant(graph)
    frontier = _frontier(graph, invariant)
    if sum(node.aval.size for node in frontier) < WORTH:
        return None
    stand_ins: dict[Value, Value] = {
        node: Input(node.aval, InputKind.ARGUMENT, f"prepared{i}", node.where) for i, node in enumerate(frontier)
    }
    main = Graph((*graph.inputs, *stand_ins.values()), graph.outputs, graph.updates, graph.name, graph.effects)
    main = substituted(main, stand_ins)
    variables = [x for x in graph.inputs if x.kind is InputKind.VARIABLE]
    return Split(Graph(variables, frontier, {}, f"hoisted constants of {graph.name}"), main)


def with_panels(graph: Graph) -> Graph:
    """Return the graph with packed copies of the weights that products would pack at every call."""
    invariant, views = _invariant(graph), resolve_views(graph)
    replaced: dict[Value, Value] = {}
    for node in graph.values:
        axes = lowering_of(node).packable(node)
        if axes is not None and _is_copied(node, axes, invariant, views):
            x, weight = (Decomposing(y, node.where) for y in node.inputs)
            width = context.current().target.panel_columns(node.aval.dtype)
            panels: Any = in_panels(weight, len(axes.inner), width)
            packed_product: Any = panel_product(x, panels, len(axes.inner), axes.columns)
            replaced[node] = packed_product.value
    return substituted(graph, replaced) if replaced else graph


def _is_copied(product: Value, axes: Extents, invariant: set[Value], views: dict[Value, Strided]) -> bool:
    """Return whether the second operand is a large weight that is read by few rows or is not contiguous."""
    weight = product.inputs[1]
    if (
        product in invariant
        or weight not in invariant
        or weight.aval.size < WORTH
        or axes.is_batched
        or not _rests_on_variables(weight)
    ):
        return False
    strides = views[weight].strides[len(axes.batch) :]
    split = len(axes.inner)
    row, column = merged_stride(axes.inner, strides[:split]), merged_stride(axes.columns, strides[split:])
    return row is None or column is None or axes.m < MANY_ROWS


def _invariant(graph: Graph) -> set[Value]:
    invariant: set[Value] = set()
    for node in graph.values:
        is_leaf = node.is_constant or (node.kind is InputKind.VARIABLE and node not in graph.updates)
        if is_leaf or (node.op is not None and node.inputs and all(x in invariant for x in node.inputs)):
            invariant.add(node)
    return invariant


def _frontier(graph: Graph, invariant: set[Value]) -> list[Value]:
    """Return the invariant values, in order, that are computed (not views) and read by others than invariant ones."""
    frontier: dict[Value, None] = {}
    readers = [x for node in graph.values if node not in invariant for x in node.inputs]
    for node in [*readers, *graph.outputs]:
        source = node
        while source in invariant and lowering_of(source).is_view:
            source = source.inputs[0]
        if source in invariant and source.op is not None and _rests_on_variables(source):
            frontier[source] = None
    return list(frontier)


def _rests_on_variables(node: Value) -> bool:
    """Return whether ``node`` depends on a Variable, not only on constants, which are folded elsewhere."""
    stack, visited = [node], {node}
    while stack:
        x = stack.pop()
        if x.kind is InputKind.VARIABLE:
            return True
        new = [y for y in x.inputs if y not in visited]
        visited.update(new)
        stack += new
    return False
