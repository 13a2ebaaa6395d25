"""The order of clusters under mergers and new edges, beside a search through all paths."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.compiler.plan_ir import clusters
from runnel.compiler.plan_ir.clusters import Precedence, Vertex


class _Plain:
    """A graph of numbers, for comparison: which lead to which."""

    def __init__(self) -> None:
        self.edges: set[tuple[int, int]] = set()

    def reaches(self, start: int, target: int, *, indirectly: bool = False) -> bool:
        stack = [b for a, b in self.edges if a == start and not (indirectly and b == target)]
        visited: set[int] = set()
        while stack:
            at = stack.pop()
            if at == target:
                return True
            if at not in visited:
                visited.add(at)
                stack += [b for a, b in self.edges if a == at]
        return False

    def merge(self, first: int, last: int) -> None:
        renamed = {(first if a == last else a, first if b == last else b) for a, b in self.edges}
        self.edges = {(a, b) for a, b in renamed if a != b}


def _edges(vertices: dict[int, Vertex]) -> set[tuple[int, int]]:
    number = {vertex: i for i, vertex in vertices.items()}
    edges = {(number[a], i) for i, v in vertices.items() for a in v.predecessors}
    assert edges == {(i, number[b]) for i, v in vertices.items() for b in v.successors}
    return edges


@pytest.mark.parametrize("seed", range(60))
def test_mergers_and_edges_are_refused_exactly_when_they_would_close_a_circle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    order: Precedence[Vertex] = Precedence()
    plain = _Plain()
    vertices: dict[int, Vertex] = {}
    outcomes = set()
    for number in range(40):
        before = [int(i) for i in rng.choice(list(vertices), size=min(len(vertices), 2), replace=False)]
        vertices[number] = Vertex()
        order.add(vertices[number], {vertices[i] for i in before})
        plain.edges |= {(i, number) for i in before}
        for _ in range(2):
            if len(vertices) < 3:
                break
            a, b = (int(i) for i in rng.choice(list(vertices), size=2, replace=False))
            assert order.has_path(vertices[a], vertices[b]) == plain.reaches(a, b)
            if rng.random() < 0.3:
                allowed = not plain.reaches(b, a)
                assert order.precede(vertices[a], vertices[b]) == allowed
                if allowed:
                    plain.edges.add((a, b))
            else:
                if vertices[a].rank > vertices[b].rank:
                    a, b = b, a
                allowed = not plain.reaches(a, b, indirectly=True)
                assert order.merge(vertices[a], vertices[b]) == allowed
                if allowed:
                    del vertices[b]
                    plain.merge(a, b)
            outcomes.add(allowed)
            assert _edges(vertices) == plain.edges
            assert all(vertices[i].rank < vertices[j].rank for i, j in plain.edges)
            assert len({v.rank for v in vertices.values()}) == len(vertices)
    assert outcomes == {True, False}


def test_a_merger_that_would_take_a_long_search_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "MOST_BETWEEN", 10)
    order: Precedence[Vertex] = Precedence()
    first, aside, last = Vertex(), [Vertex() for _ in range(20)], Vertex()
    order.add(first, ())
    for at, vertex in enumerate(aside):
        order.add(vertex, aside[:at])
    order.add(last, [first, aside[-1]])
    assert not order.merge(first, last)
    assert last.predecessors == {first, aside[-1]}
