"""A graph in a report: the graph itself, its text and its JSON."""

from __future__ import annotations

from typing import Any

from runnel.graph import printer
from runnel.graph.graph import Graph, Node


class GraphReport:
    """``str()`` gives a node a line; ``graph`` is the object itself."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def nodes(self) -> list[Node]:
        return self.graph.nodes

    @property
    def text(self) -> str:
        return printer.text(self.graph)

    def as_json(self) -> dict[str, Any]:
        return printer.as_json(self.graph)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<graph '{self.graph.name}' of {len(self.nodes)} nodes>"
