"""Decomposition: replace composite ops by their definitions (table ``decompose``); run passes on loops and branches.

The rules use the functions of ``runnel.ops`` on :class:`Decomposing`, tensors that represent values of the graph.
Programs of one op run this too: every planned graph has been expanded. Scans lose their unused results, and the passes
run on the bodies of loops and branches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.core import tables
from runnel.core.tables import Op
from runnel.graph.building import Built
from runnel.graph.graph import Graph, topological
from runnel.graph.hashing import Body
from runnel.graph.node import Node, Result, Value, results_of
from runnel.graph.rewriting import Rewriter, rewrite
from runnel.ops.control import scan_p


class Decomposing(Built):
    """A value of the graph; composite ops that are applied to it are expanded."""

    __slots__ = ()

    def apply_op(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        rule = tables.decompose.get(op)
        expanded = None if rule is None else rule(*inputs, **attrs)
        return super().apply_op(op, inputs, attrs) if expanded is None else expanded


def decompose(graph: Graph) -> Graph:
    """Return ``graph`` without nodes whose op has a rule in table ``decompose``; the same graph if there are none."""

    def visit(node: Value) -> Value:
        rule = None if node.op is None else tables.decompose.get(node.op)
        if rule is None:
            return node
        expanded: Decomposing | None = rule(*[Decomposing(x, node.where) for x in node.inputs], **node.attrs)
        return node if expanded is None else expanded.value

    return rewrite(graph, visit)


def in_bodies(graph: Graph, optimized: Callable[[Graph], Graph]) -> Graph:
    """Return ``graph`` with ``optimized`` bodies."""
    rewriter = Rewriter()

    def make(node: Node) -> Node:
        bodies = {name: node.attrs[name] for name in node.op.regions}
        new = {name: optimized(body.graph) for name, body in bodies.items()}
        inputs = rewriter.inputs(node)
        if inputs == node.inputs and all(new[name] is body.graph for name, body in bodies.items()):
            return node
        attrs = node.attrs | {name: Body(new_graph, bodies[name].recompute) for name, new_graph in new.items()}
        return Node(node.op, inputs, attrs, node.avals, node.where)

    if not any(node.op.regions for node in graph.nodes):
        return graph
    for value in graph.values:
        if isinstance(value, Result) and value.node.op.regions:
            rewriter.known[value] = rewriter.replace(value, make)
        else:
            rewriter.known[value] = rewriter.keep(value)
    return rewriter.graph(graph)


def without_unused_results(graph: Graph) -> Graph:
    """Return ``graph`` with scans that compute, carry and read only values that are used."""
    smaller = {node: _Needed(node, {x.index for x in used}) for node, used in graph.nodes.items() if node.op is scan_p}
    smaller = {node: needed for node, needed in smaller.items() if not needed.is_all}
    if not smaller:
        return graph
    rewriter = Rewriter()
    new_results: dict[Node, tuple[Result, ...]] = {}
    for value in graph.values:
        if isinstance(value, Result) and value.node in smaller:
            node, needed = value.node, smaller[value.node]
            if node not in new_results:
                new_results[node] = results_of(needed.node(rewriter.inputs(node)))
            rewriter.known[value] = new_results[node][needed.outputs.index(value.index)]
        else:
            rewriter.known[value] = rewriter.keep(value)
    return rewriter.graph(graph)


class _Needed:
    """The inputs and outputs of a scan that its used results need, by number."""

    def __init__(self, scan: Node, used: set[int]) -> None:
        self.scan = scan
        graph: Graph = scan.attrs["body"].graph
        self.constants, self.carries = scan.attrs["constants"], scan.attrs["carries"]
        outputs = set(used)
        inputs: set[int] = set()
        while True:
            reached = set(topological([graph.outputs[i] for i in outputs]))
            inputs = {i for i, x in enumerate(graph.inputs) if x in reached}
            state = range(self.carries)
            more = {j for j in state if self.constants + j in inputs} - outputs
            if not more:
                break
            outputs |= more
        inputs |= {self.constants + j for j in range(self.carries) if j in outputs}
        self.inputs, self.outputs = sorted(inputs), sorted(outputs)
        self.is_all = len(inputs) == len(graph.inputs) and len(outputs) == len(graph.outputs)

    def node(self, inputs: tuple[Value, ...]) -> Node:
        """Return the scan without the rest."""
        scan = self.scan
        graph: Graph = scan.attrs["body"].graph
        body = Graph([graph.inputs[i] for i in self.inputs], [graph.outputs[i] for i in self.outputs], {}, graph.name)
        attrs = scan.attrs | {
            "body": Body(body, scan.attrs["body"].recompute),
            "constants": sum(i < self.constants for i in self.inputs),
            "carries": sum(self.constants <= i < self.constants + self.carries for i in self.inputs),
        }
        avals = tuple(scan.avals[i] for i in self.outputs)
        return Node(scan.op, tuple(inputs[i] for i in self.inputs), attrs, avals, scan.where)
