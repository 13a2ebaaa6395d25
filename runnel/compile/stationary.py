"""What of a program depends on Variables alone is computed once, and again when Variables have changed.

A network that serves reads the same weights at every call: filters brought into another order or transformed, weights
cast or scaled. Those values leave the program for a *preparation*, a program of its own; the rest reads them as inputs.
"""

from __future__ import annotations

from typing import NamedTuple

from runnel.core import tables
from runnel.graph.graph import Graph, InputKind, Node
from runnel.loops.rules import View

WORTH = 1 << 14  # elements that a preparation must make


class Split(NamedTuple):
    """``preparation`` has a result for each of the last ``len(preparation.outputs)`` inputs of ``main``."""

    preparation: Graph
    main: Graph


def split(graph: Graph) -> Split | None:
    """The two parts; None where nothing of size depends on Variables alone."""
    steady: set[Node] = set()
    for node in graph.nodes:
        is_given = node.is_constant or (node.kind is InputKind.VARIABLE and node not in graph.updates)
        if is_given or (node.op is not None and node.inputs and all(x in steady for x in node.inputs)):
            steady.add(node)
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


def _frontier(graph: Graph, steady: set[Node]) -> list[Node]:
    """The steady values, in order, that are computed (not viewed) and read by others than steady ones."""
    wanted: dict[Node, None] = {}
    readers = [x for node in graph.nodes if node not in steady for x in node.inputs]
    for node in [*readers, *graph.outputs]:
        source = node
        while source in steady and source.op is not None and isinstance(tables.lower.get(source.op), View):
            source = source.inputs[0]
        if source in steady and source.op is not None and _computes(source, steady):
            wanted[source] = None
    return list(wanted)


def _computes(node: Node, steady: set[Node]) -> bool:
    """Whether a Variable is among what ``node`` is computed from; what constants make is the compiler's business."""
    stack, seen = [node], {node}
    while stack:
        for x in stack.pop().inputs:
            if x.kind is InputKind.VARIABLE:
                return True
            if x not in seen:
                seen.add(x)
                stack.append(x)
    return False
