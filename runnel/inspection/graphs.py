"""A graph in a report, with a printed form."""

from __future__ import annotations

from typing import Any, Final

from runnel.core import html
from runnel.graph import picture, printer
from runnel.graph.graph import Graph

_DRAWN: Final = 150  # nodes at most of a graph that notebooks show as a picture


class PrintedGraph(Graph):
    """The nodes of another graph; ``str()`` has one line for each."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.inputs, graph.outputs, graph.updates, graph.name, graph.effects)

    def as_json(self) -> dict[str, Any]:
        return printer.as_json(self)

    def __str__(self) -> str:
        return printer.text(self)

    def to_svg(self) -> str:
        """A picture in SVG: what comes first stands on top."""
        return picture.to_svg(self)

    def _repr_html_(self) -> str:
        drawing = self.to_svg() if len(self.values) <= _DRAWN else ""
        return html.folded(repr(self), html.pre(str(self)) + drawing)

    def __repr__(self) -> str:
        return f"<graph '{self.name}' of {len(self.values)} nodes>"
