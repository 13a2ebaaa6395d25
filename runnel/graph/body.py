"""Graphs nested in graphs: the body of a loop is an attribute of the loop's node."""

from __future__ import annotations

from runnel.graph.graph import Graph
from runnel.graph.hashing import Identified, structural_hash


class Body(Identified):
    """A graph as an attribute. Two bodies are equal when their graphs compute the same thing in the same way.

    With ``recompute`` a loop saves only its carries for the backward pass, which recomputes the rest.
    """

    __slots__ = ("_identity", "graph", "recompute")

    def __init__(self, graph: Graph, recompute: bool = False) -> None:
        self.graph = graph
        self.recompute = recompute
        self._identity: bytes | None = None

    @property
    def identity(self) -> bytes:
        if self._identity is None:
            self._identity = structural_hash(self.graph) + bytes([self.recompute])
        return self._identity

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Body) and self.identity == other.identity)

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return f"Body({self.graph.name}, {self.identity.hex()[:8]})"
