"""Clusters of nodes that become one kernel, and the order in which they run.

A cluster has an iteration domain, the shape ``domain`` without its axes of size 1, of which the axes ``reduced`` are
reduced. Its members are *full-rank* values (one per point of the domain) and *reduced* values (one per point of the
axes that are not reduced: results of reductions, and values computed from them).

The order is maintained while clusters are merged and edges added. Every vertex has a rank, and every edge leads from a
lower rank to a higher one. The ranks certify that there is no cycle, and they bound each search: between two vertices
there can only be those ranked between them. An edge or a merger that contradicts the ranks makes the vertices between
the two exchange ranks among themselves (D. Pearce, P. Kelly, "A dynamic topological sort algorithm for directed acyclic
graphs", ACM Journal of Experimental Algorithmics 11, 2006).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from operator import attrgetter
from typing import Final, Generic, Self, TypeVar

from runnel.core.avals import Shape
from runnel.graph.node import Value

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
        """Add a vertex, ranked after all others."""
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
    """Collect ``starts``, predecessors of ``last``, and their ancestors, as far as they are ranked after ``first``;
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
    """Collect ``starts`` and their descendants, as far as they are ranked before ``ceiling``."""
    descendants: set[V] = set()
    stack = list(starts)
    while stack:
        vertex = stack.pop()
        if vertex.rank < ceiling and vertex not in descendants:
            descendants.add(vertex)
            stack.extend(vertex.successors)
    return list(descendants)


def _rerank(before: list[V], behind: list[V], ranks: Iterable[int]) -> None:
    """Assign ``ranks`` to the vertices of ``before``, then of ``behind``, each in their order so far."""
    vertices = [*sorted(before, key=_rank), *sorted(behind, key=_rank)]
    for vertex, rank in zip(vertices, sorted(ranks), strict=True):
        vertex.rank = rank


class Form(enum.Enum):
    """The kind of a cluster's kernel: a nest of loops shared by elementwise ops and reductions; a kernel of the root's
    own with an elementwise epilogue; a kernel of one node."""

    NEST = "nest"
    ROOTED = "rooted"
    STANDALONE = "standalone"


class Cluster(Vertex):
    """Nodes that become one kernel, in the order of the graph. ``root`` is the node whose lowering builds it: the root
    of a ROOTED cluster, else the first member. ``first`` and ``last`` are the numbers of the first and last member,
    ``weight`` is the code size."""

    __slots__ = (
        "domain",
        "first",
        "form",
        "last",
        "members",
        "needs_rows",
        "reads",
        "reduced",
        "reduced_members",
        "root",
        "weight",
    )

    def __init__(self, number: int, form: Form, domain: Shape, root: Value) -> None:
        super().__init__()
        self.first = self.last = number
        self.form = form
        self.domain = domain
        self.root = root
        self.reduced: tuple[int, ...] = ()  # axes of the domain
        self.members: list[Value] = []
        self.reduced_members: set[Value] = set()
        self.reads: set[Value] = set()  # the bases of what its members read
        self.needs_rows = False  # whether a member needs a loop over the first axis around all others
        self.weight = 0.0

    @property
    def unreduced_axes(self) -> tuple[int, ...]:
        return tuple(a for a in range(len(self.domain)) if a not in self.reduced)

    def __repr__(self) -> str:
        return f"Cluster({self.first}, {self.form.value}, {self.domain}, {[str(m.op) for m in self.members]})"


def essential(shape: Shape) -> Shape:
    """Return ``shape`` without its axes of size 1."""
    return tuple([n for n in shape if n != 1])


def essential_strides(shape: Shape, strides: Shape) -> Shape:
    """Return ``strides`` over the axes of ``shape`` that are not 1."""
    return tuple(step for n, step in zip(shape, strides, strict=True) if n != 1)


def aligned_strides(operand: Shape, strides: Shape, result: Shape) -> Shape:
    """Return strides of a (size-1-broadcast) operand over the essential axes of the result it is read for."""
    return tuple([0 if n == 1 else s for n, s, r in zip(operand, strides, result, strict=True) if r != 1])


def unreduced_extents(cluster: Cluster) -> Shape:
    """Return the extents of the axes that are not reduced."""
    return tuple(cluster.domain[a] for a in cluster.unreduced_axes)


def unreduced_strides(cluster: Cluster) -> Shape:
    """Return strides, over the whole domain, of a dense array of the axes that are not reduced."""
    step = 1
    strides = [0] * len(cluster.domain)
    for axis in reversed(cluster.unreduced_axes):
        strides[axis] = step
        step *= cluster.domain[axis]
    return tuple(strides)


def reduces_last(domain: Shape, reduced: tuple[int, ...]) -> bool:
    """Return whether the last axis is reduced: the row form, whose passes along the last axis may store full-rank
    values."""
    return bool(reduced) and reduced[-1] == len(domain) - 1


def has_rows(domain: Shape, reduced: tuple[int, ...]) -> bool:
    """Return whether the first axis is the outermost loop, in which a table can be looked up once for each row."""
    return len(domain) > 1 and 0 not in reduced and (not reduced or reduces_last(domain, reduced))
