"""Graphs as pictures: a box for each value that is computed or comes from outside."""

from __future__ import annotations

from typing import Final

from runnel.graph import printer
from runnel.graph.graph import Graph
from runnel.graph.layers import Drawn, svg
from runnel.graph.node import Value

_COLOURS: Final = {"argument": "#d9e8fb", "variable": "#fde9c8"}
_CONSTANT: Final = "#eeeeee"


def to_svg(graph: Graph) -> str:
    """The graph as a drawing in SVG; the line of its printed form appears where the pointer is."""
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
