"""Pictures of declared graphs: the DOT language of Graphviz, and SVG with a layered layout of our own.

The layout is that of K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system
structures", 1981: layers by the longest path, an order in each layer by barycentres, and edges from layer to layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

from runnel.declarative.graph import Graph, default_graph
from runnel.declarative.operation import Operation, needed
from runnel.declarative.order import ordered

_WIDTH: Final = 150
_HEIGHT: Final = 36
_GAP: Final = 24
_SWEEPS: Final = 8  # over the layers, for an order with few crossings
_COLOURS: Final = {
    "placeholder": "#d9e8fb", "variable": "#fde9c8", "constant": "#eeeeee", "gradient": "#f9dada",
    "assign": "#e0f2d8", "minimize": "#e0f2d8",
}  # fmt: skip


def to_dot(graph: Graph | None = None) -> str:
    """``graph``, by default the one that is being declared, in the DOT language; control dependencies are dashed."""
    operations = (default_graph() if graph is None else graph).operations
    lines = ["digraph declared {", "  node [shape=box, style=filled];"]
    for x in operations:
        colour = _COLOURS.get(x.kind, "#ffffff")
        lines.append(f'  {_quoted(x.name)} [label={_quoted(f"{x.name}: {x.label}")}, fillcolor="{colour}"];')
    for x in operations:
        for tensor in x.inputs:
            lines.append(
                f"  {_quoted(tensor.operation.name)} -> {_quoted(x.name)} [label={_quoted(str(tensor.static))}];"
            )
        lines += [f"  {_quoted(before.name)} -> {_quoted(x.name)} [style=dashed];" for before in x.control_inputs]
    return "\n".join([*lines, "}"])


def to_svg(graph: Graph | None = None) -> str:
    """``graph``, by default the one that is being declared, as a drawing in SVG: what comes first stands on top,
    control dependencies are dashed, and the full text of an operation appears where the pointer is."""
    layers = _arranged(ordered((default_graph() if graph is None else graph).operations))
    widest = max(map(len, layers), default=1)
    boxes = {x: _box(layer, place, len(row), widest) for layer, row in enumerate(layers) for place, x in enumerate(row)}
    width, height = widest * (_WIDTH + _GAP) + _GAP, len(layers) * (_HEIGHT + 2 * _GAP) + _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11">'
    ]
    for x, box in boxes.items():
        lines += [_edge(boxes[tensor.operation], box, "") for tensor in x.inputs]
        lines += [_edge(boxes[before], box, ' stroke-dasharray="4 3"') for before in x.control_inputs]
    lines += [_node(x, box) for x, box in boxes.items()]
    return "\n".join([*lines, "</svg>"])


class _Box(NamedTuple):
    x: int
    y: int


def _arranged(operations: Sequence[Operation]) -> list[list[Operation]]:
    """The operations in layers, each below those that it needs, in an order with few crossings."""
    depth: dict[Operation, int] = {}
    readers: dict[Operation, list[Operation]] = {x: [] for x in operations}
    for x in operations:
        depth[x] = max((depth[before] + 1 for before in needed(x)), default=0)
        for before in needed(x):
            readers[before].append(x)
    layers: list[list[Operation]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for x in operations:
        layers[depth[x]].append(x)
    for sweep in range(_SWEEPS):
        place = {x: i / len(row) for row in layers for i, x in enumerate(row)}
        for row in layers if sweep % 2 == 0 else reversed(layers):
            near = {x: list(needed(x)) if sweep % 2 == 0 else readers[x] for x in row}
            centre = {x: sum(place[y] for y in near[x]) / len(near[x]) if near[x] else place[x] for x in row}
            row.sort(key=centre.__getitem__)
            place.update({x: i / len(row) for i, x in enumerate(row)})
    return layers


def _box(layer: int, place: int, count: int, widest: int) -> _Box:
    left = (widest - count) * (_WIDTH + _GAP) // 2
    return _Box(_GAP + left + place * (_WIDTH + _GAP), _GAP + layer * (_HEIGHT + 2 * _GAP))


def _edge(upper: _Box, lower: _Box, style: str) -> str:
    x0, y0, x1, y1 = upper.x + _WIDTH // 2, upper.y + _HEIGHT, lower.x + _WIDTH // 2, lower.y
    bend = (y1 - y0) // 2
    return f'<path d="M{x0} {y0} C{x0} {y0 + bend} {x1} {y1 - bend} {x1} {y1}" fill="none" stroke="#888888"{style}/>'


def _node(operation: Operation, box: _Box) -> str:
    colour = _COLOURS.get(operation.kind, "#ffffff")
    known = ", ".join(str(x.static) for x in operation.outputs)
    whole = escape(f"{operation.name}: {operation.label} {known}".strip())
    return (
        f'<g><title>{whole}</title><rect x="{box.x}" y="{box.y}" width="{_WIDTH}" height="{_HEIGHT}" rx="4" '
        f'fill="{colour}" stroke="#555555"/><text x="{box.x + _WIDTH // 2}" y="{box.y + 15}" text-anchor="middle">'
        f'{escape(_short(operation.name))}</text><text x="{box.x + _WIDTH // 2}" y="{box.y + 29}" '
        f'text-anchor="middle" fill="#555555">{escape(_short(f"{operation.label} {known}"))}</text></g>'
    )


def _short(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:23]}…"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
