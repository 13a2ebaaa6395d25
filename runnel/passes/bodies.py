"""Loops and branches: what nobody asks of them is left out, and the passes run on their bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.core.avals import Aval
from runnel.graph.body import Body
from runnel.graph.graph import Graph, Node, topological
from runnel.ops.control import part_p, scan_p
from runnel.passes.rewriting import rewrite


def in_bodies(graph: Graph, optimized: Callable[[Graph], Graph]) -> Graph:
    """``graph`` with ``optimized`` bodies."""

    def visit(node: Node) -> Node:
        bodies = {key: value for key, value in node.attrs.items() if isinstance(value, Body)}
        new = {key: optimized(body.graph) for key, body in bodies.items()}
        if all(new[key] is body.graph for key, body in bodies.items()):
            return node
        attrs = node.attrs | {key: Body(made, bodies[key].recompute) for key, made in new.items()}
        return Node(node.op, node.inputs, attrs, node.aval, node.where)

    return rewrite(graph, visit)


def without_unused_results(graph: Graph) -> Graph:
    """``graph`` with scans that make, carry and read only what comes to be used."""
    used: dict[Node, set[int]] = {}
    for node in graph.nodes:
        if node.op is part_p:
            used.setdefault(node.inputs[0], set()).add(node.attrs["index"])
    smaller = {node: _Needed(node, used[node]) for node in graph.nodes if node.op is scan_p}
    smaller = {node: needed for node, needed in smaller.items() if not needed.is_all}
    if not smaller:
        return graph
    done: dict[Node, Node] = {}
    for node in graph.nodes:
        inputs = tuple(done[x] for x in node.inputs)
        if node in smaller:
            done[node] = smaller[node].node(inputs)
        elif node.op is part_p and node.inputs[0] in smaller:
            attrs = node.attrs | {"index": smaller[node.inputs[0]].outputs.index(node.attrs["index"])}
            done[node] = Node(part_p, inputs, attrs, node.aval, node.where)
        else:
            done[node] = node if inputs == node.inputs else Node(node.op, inputs, node.attrs, node.aval, node.where)
    updates = {variable: done[new] for variable, new in graph.updates.items()}
    return Graph(graph.inputs, [done[x] for x in graph.outputs], updates, graph.name)


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

    def node(self, inputs: tuple[Node, ...]) -> Node:
        """The scan without the rest."""
        attrs: dict[str, Any] = self.scan.attrs
        graph: Graph = attrs["body"].graph
        body = Graph([graph.inputs[i] for i in self.inputs], [graph.outputs[i] for i in self.outputs], {}, graph.name)
        results: tuple[Aval, ...] = tuple(attrs["results"][i] for i in self.outputs)
        attrs = attrs | {
            "body": Body(body, attrs["body"].recompute),
            "constants": sum(i < self.constants for i in self.inputs),
            "carries": sum(self.constants <= i < self.constants + self.carries for i in self.inputs),
            "results": results,
        }
        return Node(self.scan.op, tuple(inputs[i] for i in self.inputs), attrs, results[0], self.scan.where)
