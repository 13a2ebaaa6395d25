"""Graphs as text, one node per line, and as JSON. Values are numbered in topological order."""

from __future__ import annotations

import math
from typing import Any

from runnel.core.dtypes import DType
from runnel.graph.graph import Graph
from runnel.graph.node import Result, Value


def text(graph: Graph) -> str:
    """Return the graph, one node per line, then its outputs and updates; ends in a newline."""
    number = numbers(graph)
    lines = [f"graph {graph.name}:"]
    lines += [f"    {line(value, number, graph)}" for value in number if _comes_first(value, graph)]
    lines.append(f"    return {', '.join(reference(o, number) for o in graph.outputs) or 'nothing'}")
    lines += [f"    update {reference(v, number)} <- {reference(n, number)}" for v, n in graph.updates.items()]
    lines += [f"    effect {reference(x, number)}" for x in graph.effects]
    return "\n".join(lines) + "\n"


def numbers(graph: Graph) -> dict[Value, int]:
    """Return the number of each value, in topological order."""
    return {value: i for i, value in enumerate(graph.values)}


def _comes_first(value: Value, graph: Graph) -> bool:
    """Return whether ``value`` is the first listed result of its node."""
    return not isinstance(value, Result) or graph.nodes[value.node][0] is value


def line(value: Value, number: dict[Value, int], graph: Graph | None = None) -> str:
    """``%3 = add(%1, %2) : float32[8,16]  # model.py:12``; with ``graph``, all results of the node at once, ``_`` for
    unused ones: ``%3, _ = topk(%1) : float32[2], int64[2]``."""
    where = f"  # {value.where}" if value.where else ""
    names, avals = reference(value, number), repr(value.aval)
    if isinstance(value, Result) and graph is not None:
        needed = {x.index: reference(x, number) for x in graph.nodes[value.node]}
        names = ", ".join(needed.get(i, "_") for i in range(len(value.node.avals)))
        avals = ", ".join(map(repr, value.node.avals))
    return f"{names} = {right_side(value, number)} : {avals}{where}"


def reference(value: Value, number: dict[Value, int]) -> str:
    """Return the name of a value: ``%3``; ``%?`` for one that is not in the graph."""
    return f"%{number.get(value, '?')}"


def right_side(value: Value, number: dict[Value, int]) -> str:
    """Return the definition of a value: an op applied to values and attributes, an input or a constant."""
    if value.kind is not None:
        return f"{value.kind.value} {value.name}".rstrip()
    if value.op is None:
        return f"constant {_constant(value.value)}"
    arguments = [reference(x, number) for x in value.inputs]
    arguments += [f"{key}={_attr(attr)}" for key, attr in sorted(value.attrs.items())]
    return f"{value.op.name}({', '.join(arguments)})"


def _constant(value: Any) -> str:
    return str(value.reshape(-1)[0]) if getattr(value, "size", 0) == 1 else "..."


def _attr(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_attr, value))}{',' if len(value) == 1 else ''})"
    return value.name if isinstance(value, DType) else repr(value)


def as_json(graph: Graph) -> dict[str, Any]:
    """Return the graph as dicts, lists, strings and numbers; values are named by their number."""
    number = numbers(graph)
    return {
        "name": graph.name,
        "nodes": [_entry(value, number) for value in number],
        "inputs": [number[value] for value in graph.inputs],
        "outputs": [number[value] for value in graph.outputs],
        "updates": [[number[variable], number[new]] for variable, new in graph.updates.items()],
    }


def _entry(value: Value, number: dict[Value, int]) -> dict[str, Any]:
    written: dict[str, Any] = {
        "id": number[value],
        "op": value.op.name if value.op else None,
        "inputs": [number[x] for x in value.inputs],
        "attrs": {key: _plain(attr) for key, attr in sorted(value.attrs.items())},
        "shape": list(value.aval.shape),
        "dtype": value.aval.dtype.name,
        "where": value.where,
    }
    if isinstance(value, Result) and len(value.node.avals) > 1:
        written["result"] = value.index
    elif value.kind is not None:
        written |= {"kind": value.kind.value, "name": value.name}
    elif value.op is None:
        written |= {"kind": "constant", "value": _constant(value.value)}
    return written


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)  # JSON has no infinities
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return _attr(value)
