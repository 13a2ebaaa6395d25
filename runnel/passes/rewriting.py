"""One walk that every pass shares: each node once, after its inputs, with the replacements so far in place."""

from __future__ import annotations

from collections.abc import Callable

from runnel.graph.graph import Graph, Node


def rewrite(graph: Graph, visit: Callable[[Node], Node]) -> Graph:
    """The graph with ``visit(node)`` for each node that is not an input; nodes without readers are gone.

    ``visit`` is given a node whose inputs have been rewritten already. Iterative; the same graph if nothing changed.
    """
    done: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        if node not in done:
            done[node] = visit(with_inputs(node, tuple(done[x] for x in node.inputs)))
    if all(new is old for old, new in done.items()):
        return graph
    return Graph(
        graph.inputs,
        [done[output] for output in graph.outputs],
        {variable: done[new] for variable, new in graph.updates.items()},
        graph.name,
    )


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same op on other inputs of the same avals; ``node`` itself if they are its own."""
    return node if inputs == node.inputs else Node(node.op, inputs, node.attrs, node.aval, node.where)
