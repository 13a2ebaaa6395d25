"""A graph in a report, with a printed form."""

from __future__ import annotations

from typing import Any

from runnel.graph import printer
from runnel.graph.graph import Graph


class PrintedGraph(Graph):
    """The nodes of another graph; ``str()`` has one line for each."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.inputs, graph.outputs, graph.updates, graph.name, graph.effects)

    def as_json(self) -> dict[str, Any]:
        return printer.as_json(self)

    def __str__(self) -> str:
        return printer.text(self)

    def __repr__(self) -> str:
        return f"<graph '{self.name}' of {len(self.values)} nodes>"
