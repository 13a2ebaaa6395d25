"""A cluster: nodes that become one kernel, its iteration domain, and the strides of values over that domain.

A cluster has an iteration domain, the shape ``domain`` without its axes of size 1, of which the axes ``reduced`` are
reduced. Its members are *full-rank* values (one per point of the domain) and *reduced* values (one per point of the
axes that are not reduced: results of reductions, and values computed from them).
"""

from __future__ import annotations

import enum

from runnel.compiler.plan_ir.precedence import Vertex
from runnel.core.avals import Shape
from runnel.graph.node import Value


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
    """``shape`` without its axes of size 1."""
    return tuple([n for n in shape if n != 1])


def essential_strides(shape: Shape, strides: Shape) -> Shape:
    """``strides`` over the axes of ``shape`` that are not 1."""
    return tuple(step for n, step in zip(shape, strides, strict=True) if n != 1)


def aligned_strides(operand: Shape, strides: Shape, result: Shape) -> Shape:
    """Strides of a (size-1-broadcast) operand over the essential axes of the result it is read for."""
    return tuple([0 if n == 1 else s for n, s, r in zip(operand, strides, result, strict=True) if r != 1])


def unreduced_extents(cluster: Cluster) -> Shape:
    """Return the extents of the axes that are not reduced."""
    return tuple(cluster.domain[a] for a in cluster.unreduced_axes)


def unreduced_strides(cluster: Cluster) -> Shape:
    """Strides, over the whole domain, of a dense array of the axes that are not reduced."""
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
