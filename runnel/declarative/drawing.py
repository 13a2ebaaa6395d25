"""Pictures of declared graphs: the DOT language of Graphviz, and SVG."""

from __future__ import annotations

from typing import Final

from runnel.declarative.graph import Graph, default_graph
from runnel.declarative.operation import Operation
from runnel.declarative.order import ordered
from runnel.graph.layers import Drawn, svg

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
    operations = ordered((default_graph() if graph is None else graph).operations)
    number = {x: i for i, x in enumerate(operations)}
    return svg([_drawn(x, number) for x in operations])


def _drawn(x: Operation, number: dict[Operation, int]) -> Drawn:
    known = ", ".join(str(tensor.static) for tensor in x.outputs)
    return Drawn(
        x.name,
        f"{x.label} {known}",
        f"{x.name}: {x.label} {known}".strip(),
        _COLOURS.get(x.kind, "#ffffff"),
        tuple(number[tensor.operation] for tensor in x.inputs),
        tuple(number[before] for before in x.control_inputs),
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
