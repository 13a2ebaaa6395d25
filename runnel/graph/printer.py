"""Graphs as text with one node per line, as JSON, and as drawings in SVG. Values are numbered in topological order.

The layered layout of drawings follows K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of
hierarchical system structures", 1981: layers by the longest path, an order in each layer by barycenters, and edges from
layer to layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from runnel.core.dtypes import DType
from runnel.core.html import escape
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
    """Return a value as a line such as ``%3 = add(%1, %2) : float32[8,16]  # model.py:12``.

    With ``graph``, the line has all results of the node, with ``_`` for unused ones:
    ``%3, _ = topk(%1) : float32[2], int64[2]``.
    """
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


_WIDTH: Final = 150
_HEIGHT: Final = 36
_GAP: Final = 24
_SWEEPS: Final = 8  # over the layers, for an order with few crossings
_LONGEST: Final = 24  # letters in a box


class Drawn(NamedTuple):
    """A node of a drawing: a box with two lines of text.

    Attributes:
        name: the first line.
        note: the second line.
        title: the text that appears under the pointer.
        color: the fill color.
        inputs: the numbers of the nodes that it reads.
        after: the numbers of the nodes that it follows without reading them.
    """

    name: str
    note: str
    title: str
    color: str
    inputs: tuple[int, ...]
    after: tuple[int, ...] = ()

    @property
    def needed(self) -> tuple[int, ...]:
        return (*self.inputs, *self.after)


def svg(nodes: Sequence[Drawn]) -> str:
    """Return a drawing of nodes, each of which follows the nodes that it needs. The first nodes are at the top."""
    layers = _arranged(nodes)
    widest = max(map(len, layers), default=1)
    boxes = {n: _box(layer, place, len(row), widest) for layer, row in enumerate(layers) for place, n in enumerate(row)}
    width, height = widest * (_WIDTH + _GAP) + _GAP, len(layers) * (_HEIGHT + 2 * _GAP) + _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11">'
    ]
    for number, node in enumerate(nodes):
        lines += [_edge(boxes[n], boxes[number], "") for n in node.inputs]
        lines += [_edge(boxes[n], boxes[number], ' stroke-dasharray="4 3"') for n in node.after]
    lines += [_node(node, boxes[number]) for number, node in enumerate(nodes)]
    return "\n".join([*lines, "</svg>"])


class _Box(NamedTuple):
    x: int
    y: int


def _arranged(nodes: Sequence[Drawn]) -> list[list[int]]:
    """Return the numbers of the nodes in layers, each below the nodes that it needs, with few crossings."""
    depth: list[int] = []
    readers: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        depth.append(max((depth[n] + 1 for n in node.needed), default=0))
        for n in dict.fromkeys(node.needed):
            readers[n].append(number)
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for number in range(len(nodes)):
        layers[depth[number]].append(number)
    for sweep in range(_SWEEPS):
        place = {n: i / len(row) for row in layers for i, n in enumerate(row)}
        for row in layers if sweep % 2 == 0 else reversed(layers):
            near = {n: list(dict.fromkeys(nodes[n].needed)) if sweep % 2 == 0 else readers[n] for n in row}
            center = {n: sum(place[m] for m in near[n]) / len(near[n]) if near[n] else place[n] for n in row}
            row.sort(key=center.__getitem__)
            place.update({n: i / len(row) for i, n in enumerate(row)})
    return layers


def _box(layer: int, place: int, count: int, widest: int) -> _Box:
    left = (widest - count) * (_WIDTH + _GAP) // 2
    return _Box(_GAP + left + place * (_WIDTH + _GAP), _GAP + layer * (_HEIGHT + 2 * _GAP))


def _edge(upper: _Box, lower: _Box, style: str) -> str:
    x0, y0, x1, y1 = upper.x + _WIDTH // 2, upper.y + _HEIGHT, lower.x + _WIDTH // 2, lower.y
    bend = (y1 - y0) // 2
    return f'<path d="M{x0} {y0} C{x0} {y0 + bend} {x1} {y1 - bend} {x1} {y1}" fill="none" stroke="#888888"{style}/>'


def _node(node: Drawn, box: _Box) -> str:
    return (
        f'<g><title>{escape(node.title)}</title><rect x="{box.x}" y="{box.y}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'rx="4" fill="{node.color}" stroke="#555555"/><text x="{box.x + _WIDTH // 2}" y="{box.y + 15}" '
        f'text-anchor="middle">{escape(_short(node.name))}</text><text x="{box.x + _WIDTH // 2}" y="{box.y + 29}" '
        f'text-anchor="middle" fill="#555555">{escape(_short(node.note))}</text></g>'
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


_COLORS: Final = {"argument": "#d9e8fb", "variable": "#fde9c8"}
_CONSTANT: Final = "#eeeeee"


def to_svg(graph: Graph) -> str:
    """Return the graph as a drawing in SVG, in which the pointer shows the printed line of a value."""
    number = numbers(graph)
    drawn = [_drawn(value, number, graph) for value in number]
    return svg(drawn)


def _drawn(value: Value, number: dict[Value, int], graph: Graph) -> Drawn:
    if value.kind is not None:
        name, color = f"{value.kind.value} {value.name}".strip(), _COLORS.get(value.kind.value, "#d9e8fb")
    elif value.op is None:
        name, color = right_side(value, number), _CONSTANT
    else:
        name, color = value.op.name, "#ffffff"
    inputs = tuple(number[x] for x in dict.fromkeys(value.inputs) if x in number)
    return Drawn(f"{reference(value, number)} {name}", repr(value.aval), line(value, number, graph), color, inputs)
