"""What of a program depends on Variables alone is computed once, and again when Variables have changed.

A network that serves reads the same weights at every call: filters brought into another order or transformed, weights
cast or scaled. Those values leave the program for a *preparation*, a program of its own; the rest reads them as inputs.
There, too, the weights that products read column by column are laid out row by row, at distances that let no two rows
compete for the same lines of a cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.core import tables
from runnel.graph.graph import Graph, InputKind, Node
from runnel.loops.rules import Contraction, View
from runnel.ops.padding import pad
from runnel.ops.pieces import narrow
from runnel.passes.expand import Made
from runnel.passes.rewriting import rewrite, with_inputs

WORTH = 1 << 14  # elements that a preparation must make
LINE = 16  # elements: rows begin at odd multiples of so many


class Split(NamedTuple):
    """``preparation`` has a result for each of the last ``len(preparation.outputs)`` inputs of ``main``."""

    preparation: Graph
    main: Graph


def split(graph: Graph) -> Split | None:
    """The two parts; None where nothing of size depends on Variables alone."""
    if not any(x.kind is InputKind.VARIABLE and x not in graph.updates for x in graph.inputs):
        return None
    graph = with_spread_weights(graph)
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


def with_spread_weights(graph: Graph) -> Graph:
    """The graph with the second operand of each product that depends on Variables alone in rows of its own layout."""
    steady = _steady(graph)

    def visit(node: Node) -> Node:
        rule = tables.lower.get(node.op) if node.op is not None else None
        if not isinstance(rule, Contraction) or not _is_weight(node.inputs[1], steady):
            return node
        return with_inputs(node, (node.inputs[0], spread(node.inputs[1])))

    return rewrite(graph, visit)


def spread(weight: Node) -> Node:
    """The same values, their rows (along the last axis) an odd multiple of LINE apart."""
    columns = weight.aval.shape[-1]
    lines = -(-columns // LINE)
    more = (lines + 1 - lines % 2) * LINE - columns
    whole: Any = Made(weight, weight.where)
    if more:
        whole = pad(whole, (*((0, 0),) * (weight.aval.ndim - 1), (0, more)))
    made: Node = narrow(whole, -1, 0, columns).node
    return made


def _is_weight(node: Node, steady: set[Node]) -> bool:
    """Whether a second operand is large, steady and not made of constants alone."""
    return node in steady and node.aval.size >= WORTH and node.aval.ndim >= 2 and _rests_on_variables(node)


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
