"""A topological order that is maintained while vertices are merged and edges added.

Every vertex has a rank, and every edge leads from a lower rank to a higher one. The ranks certify that there is no
cycle, and they bound each search: between two vertices there can only be those ranked between them. An edge or a merger
that contradicts the ranks makes the vertices between the two exchange ranks among themselves (D. Pearce, P. Kelly, "A
dynamic topological sort algorithm for directed acyclic graphs", ACM Journal of Experimental Algorithmics 11, 2006).
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final, Generic, Self, TypeVar

MOST_BETWEEN: Final = 2000  # most vertices between two that are merged; with more, the merger is refused


class Vertex:
    """A vertex runs after all its ``predecessors`` and before all its ``successors``."""

    __slots__ = ("predecessors", "rank", "successors")

    def __init__(self) -> None:
        self.predecessors: set[Self] = set()
        self.successors: set[Self] = set()
        self.rank = -1


V = TypeVar("V", bound=Vertex)
_rank: Final = attrgetter("rank")


class Precedence(Generic[V]):
    """The vertices added so far, ranked so that every edge leads to a higher rank."""

    def __init__(self) -> None:
        self._next = 0

    def add(self, vertex: V, predecessors: Iterable[V]) -> None:
        """A new vertex, ranked after all others."""
        vertex.rank = self._next
        self._next += 1
        for before in predecessors:
            vertex.predecessors.add(before)
            before.successors.add(vertex)

    def has_path(self, first: V, last: V) -> bool:
        """Return whether edges lead from ``first`` to ``last``."""
        return first.rank < last.rank and _between(first, last.predecessors, last) is None

    def precede(self, first: V, last: V) -> bool:
        """Make ``first`` run before ``last``; False, without a change, if it must run after it."""
        if first.rank > last.rank:
            before = _between(last, first.predecessors, first)
            if before is None:
                return False
            behind = _descendants(last.successors, first.rank)
            _rerank([*before, first], [last, *behind], {v.rank for v in (*before, first, last, *behind)})
        last.predecessors.add(first)
        first.successors.add(last)
        return True

    def merge(self, first: V, last: V) -> bool:
        """Merge ``last``, which has the higher rank, into ``first``; False, without a change, if another vertex must
        run between the two, or if there are too many vertices between them to find out."""
        before = _between(first, last.predecessors - {first}, last, MOST_BETWEEN)
        if before is None:
            return False
        if before:  # else the first one's rank does for both
            behind = _descendants(first.successors - {last}, last.rank)
            _rerank(before, [first, *behind], {v.rank for v in (*before, last, *behind)})
        for vertex in last.predecessors:
            vertex.successors.discard(last)
            vertex.successors.add(first)
        for vertex in last.successors:
            vertex.predecessors.discard(last)
            vertex.predecessors.add(first)
        first.predecessors |= last.predecessors
        first.successors |= last.successors
        first.predecessors.discard(first)
        first.successors -= {first, last}
        last.predecessors, last.successors = set(), set()
        return True


def _between(first: V, starts: Iterable[V], last: V, most: int | None = None) -> list[V] | None:
    """``starts``, all of them predecessors of ``last``, and their ancestors, as far as they are ranked after ``first``;
    None if ``first`` is among these ancestors, or there are more than ``most``."""
    floor = first.rank
    between: set[V] = set()
    stack = list(starts)
    while stack:
        vertex = stack.pop()
        if vertex is first:
            return None
        if vertex.rank > floor and vertex not in between:
            between.add(vertex)
            if most is not None and len(between) > most:
                return None
            stack.extend(vertex.predecessors)
    return list(between)


def _descendants(starts: Iterable[V], ceiling: int) -> list[V]:
    """``starts`` and their descendants, as far as they are ranked before ``ceiling``."""
    descendants: set[V] = set()
    stack = list(starts)
    while stack:
        vertex = stack.pop()
        if vertex.rank < ceiling and vertex not in descendants:
            descendants.add(vertex)
            stack.extend(vertex.successors)
    return list(descendants)


def _rerank(before: list[V], behind: list[V], ranks: Iterable[int]) -> None:
    """Give ``ranks`` to the vertices: those of ``before``, then those of ``behind``, each in their order so far."""
    vertices = [*sorted(before, key=_rank), *sorted(behind, key=_rank)]
    for vertex, rank in zip(vertices, sorted(ranks), strict=True):
        vertex.rank = rank
