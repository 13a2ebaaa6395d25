"""Pictures of graphs in SVG: a box for each value that is computed or comes from outside.

The layered layout follows K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system
structures", 1981: layers by the longest path, an order in each layer by barycenters, and edges from layer to layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from runnel.core.html import escape
from runnel.graph import printer
from runnel.graph.graph import Graph
from runnel.graph.node import Value

_WIDTH: Final = 150
_HEIGHT: Final = 36
_GAP: Final = 24
_SWEEPS: Final = 8  # over the layers, for an order with few crossings
_LONGEST: Final = 24  # letters in a box


class Drawn(NamedTuple):
    """A node of a picture: two lines in a box, with a title that appears where the pointer is. ``inputs`` are the
    numbers of the nodes that it reads, ``after`` those that it comes after without reading them."""

    name: str
    note: str
    title: str
    colour: str
    inputs: tuple[int, ...]
    after: tuple[int, ...] = ()

    @property
    def needed(self) -> tuple[int, ...]:
        return (*self.inputs, *self.after)


def svg(nodes: Sequence[Drawn]) -> str:
    """Nodes, each behind those that it needs, as a drawing: what comes first stands on top. No scripts are in it."""
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
    """Return the numbers of the nodes in layers, each below those that it needs, in an order with few crossings."""
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
            centre = {n: sum(place[m] for m in near[n]) / len(near[n]) if near[n] else place[n] for n in row}
            row.sort(key=centre.__getitem__)
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
        f'rx="4" fill="{node.colour}" stroke="#555555"/><text x="{box.x + _WIDTH // 2}" y="{box.y + 15}" '
        f'text-anchor="middle">{escape(_short(node.name))}</text><text x="{box.x + _WIDTH // 2}" y="{box.y + 29}" '
        f'text-anchor="middle" fill="#555555">{escape(_short(node.note))}</text></g>'
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


_COLOURS: Final = {"argument": "#d9e8fb", "variable": "#fde9c8"}
_CONSTANT: Final = "#eeeeee"


def to_svg(graph: Graph) -> str:
    """Return the graph as a drawing in SVG; the line of its printed form appears where the pointer is."""
    number = printer.numbers(graph)
    drawn = [_drawn(value, number, graph) for value in number]
    return svg(drawn)


def _drawn(value: Value, number: dict[Value, int], graph: Graph) -> Drawn:
    if value.kind is not None:
        name, colour = f"{value.kind.value} {value.name}".strip(), _COLOURS.get(value.kind.value, "#d9e8fb")
    elif value.op is None:
        name, colour = printer.right_side(value, number), _CONSTANT
    else:
        name, colour = value.op.name, "#ffffff"
    inputs = tuple(number[x] for x in dict.fromkeys(value.inputs) if x in number)
    reference = printer.reference(value, number)
    return Drawn(f"{reference} {name}", repr(value.aval), printer.line(value, number, graph), colour, inputs)
