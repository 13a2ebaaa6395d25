"""Graphs as text for people, a node a line, and as JSON for tools. Node numbers are places in topological order."""

from __future__ import annotations

import math
from typing import Any

from runnel.core.dtypes import DType
from runnel.graph.graph import Graph, Node


def text(graph: Graph) -> str:
    """The graph, a node a line, then its outputs and updates; ends in a newline."""
    number = numbers(graph)
    lines = [f"graph {graph.name}:"]
    lines += [f"    {line(node, number)}" for node in number]
    lines.append(f"    return {', '.join(reference(o, number) for o in graph.outputs) or 'nothing'}")
    lines += [f"    update {reference(v, number)} <- {reference(n, number)}" for v, n in graph.updates.items()]
    return "\n".join(lines) + "\n"


def numbers(graph: Graph) -> dict[Node, int]:
    """The number of each node, in topological order."""
    return {node: i for i, node in enumerate(graph.nodes)}


def line(node: Node, number: dict[Node, int]) -> str:
    """``%3 = add(%1, %2) : float32[8,16]  # model.py:12``"""
    where = f"  # {node.where}" if node.where else ""
    return f"{reference(node, number)} = {right_side(node, number)} : {node.aval!r}{where}"


def reference(node: Node, number: dict[Node, int]) -> str:
    """How a node is called: ``%3``; ``%?`` for one that is not in the graph."""
    return f"%{number.get(node, '?')}"


def right_side(node: Node, number: dict[Node, int]) -> str:
    """What a node is: an op applied to nodes and attributes, an input or a constant."""
    if node.kind is not None:
        return f"{node.kind.value} {node.name}".rstrip()
    if node.op is None:
        return f"constant {_constant(node.value)}"
    arguments = [reference(x, number) for x in node.inputs]
    arguments += [f"{key}={_attr(value)}" for key, value in sorted(node.attrs.items())]
    return f"{node.op.name}({', '.join(arguments)})"


def _constant(value: Any) -> str:
    return str(value.reshape(-1)[0]) if getattr(value, "size", 0) == 1 else "..."


def _attr(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_attr, value))}{',' if len(value) == 1 else ''})"
    return value.name if isinstance(value, DType) else repr(value)


def as_json(graph: Graph) -> dict[str, Any]:
    """The graph as dicts, lists, strings and numbers; nodes are named by their number."""
    number = numbers(graph)
    return {
        "name": graph.name,
        "nodes": [_node(node, number) for node in number],
        "inputs": [number[node] for node in graph.inputs],
        "outputs": [number[node] for node in graph.outputs],
        "updates": [[number[variable], number[new]] for variable, new in graph.updates.items()],
    }


def _node(node: Node, number: dict[Node, int]) -> dict[str, Any]:
    written: dict[str, Any] = {
        "id": number[node],
        "op": node.op.name if node.op else None,
        "inputs": [number[x] for x in node.inputs],
        "attrs": {key: _plain(value) for key, value in sorted(node.attrs.items())},
        "shape": list(node.aval.shape),
        "dtype": node.aval.dtype.name,
        "where": node.where,
    }
    if node.kind is not None:
        written |= {"kind": node.kind.value, "name": node.name}
    elif node.op is None:
        written |= {"kind": "constant", "value": _constant(node.value)}
    return written


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)  # JSON has no infinities
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return _attr(value)
