"""Fusion: which nodes become one kernel.

A cluster has an iteration domain, the shape ``domain`` without its axes of size 1, of which the axes ``reduced`` are
reduced. Its members are *full* values (one per point of the domain) and *kept* values (one per point of the axes that
are not reduced: results of reductions, and what is computed from them). Two clusters merge when every member reads
other members only at the point it is itself computed at, when nothing else must run between the two
(``precedence.py``), and while the code stays small enough for LLVM, whose time grows faster than its input.
``fusion_check.py`` holds every clustering against these conditions.

Forms of cluster, by what the first member is: a map (pointwise and reductions), a contraction with its pointwise
epilogue, or an op that stands alone (concatenation, gather, scatter).
"""

from __future__ import annotations

import enum
from typing import Final

from runnel.compiler.cost.costs import code_size
from runnel.compiler.fusion.precedence import Precedence, Vertex
from runnel.compiler.fusion.strided import Strided
from runnel.compiler.kernels.contraction import matrices
from runnel.core import tables
from runnel.core.avals import Shape, row_major
from runnel.graph.graph import Graph
from runnel.graph.node import Node, Result, Value
from runnel.loops.rules import BucketSums, Contraction, IndexFunction, Pointwise, Reduction, Rule, View

HEAVIEST: Final = 512.0  # code in one kernel, in additions


class Form(enum.Enum):
    MAP = "map"
    CONTRACTION = "contraction"
    ALONE = "alone"


class Cluster(Vertex):
    """Nodes that become one kernel, in the order of the graph. ``first`` and ``last`` are the numbers of its first and
    last member, ``weight`` how much code they are."""

    __slots__ = ("domain", "first", "form", "kept", "last", "members", "reads", "reduced", "sums", "weight")

    def __init__(self, number: int, form: Form, domain: Shape) -> None:
        super().__init__()
        self.first = self.last = number
        self.form = form
        self.domain = domain
        self.reduced: tuple[int, ...] = ()  # axes of the domain
        self.members: list[Value] = []
        self.kept: set[Value] = set()
        self.reads: set[Value] = set()  # the bases of what its members read
        self.sums = False  # whether it sums buckets
        self.weight = 0.0

    @property
    def kept_axes(self) -> tuple[int, ...]:
        return tuple(a for a in range(len(self.domain)) if a not in self.reduced)

    @property
    def product(self) -> Value:
        """The contraction of a cluster that has one."""
        return next(n for n in self.members if isinstance(tables.lower.get(n.op) if n.op else None, Contraction))

    def __repr__(self) -> str:
        return f"Cluster({self.first}, {self.form.value}, {self.domain}, {[str(m.op) for m in self.members]})"


def essential(shape: Shape) -> Shape:
    """``shape`` without its axes of size 1."""
    return tuple(n for n in shape if n != 1)


class Clustering:
    """Each node starts alone; then, in topological order, it is merged with the clusters of its producers."""

    def __init__(self, graph: Graph, views: dict[Value, Strided], *, fuse: bool = True) -> None:
        self.views = views
        self.home: dict[Value, Cluster] = {}
        self.order: Precedence[Cluster] = Precedence()
        self.behind: dict[Value, tuple[Value, ...]] = {}  # views that are read only after other values are known
        self._number: dict[Value, int] = {}
        self._first: dict[Node, Result] = {}  # of the results of each node
        for node in graph.values:
            if not isinstance(node, Result):
                continue
            if views[node].base is not node:
                source, *after = node.inputs
                if after or source in self.behind:
                    self.behind[node] = (*self.behind.get(source, ()), *after)
                continue
            self._start(node)
            if fuse:
                for x in node.inputs:
                    producer = self.home.get(views[x].base)
                    if producer is not None and x not in self.behind and producer is not self.home[node]:
                        self._merge(producer, self.home[node])

    @property
    def clusters(self) -> list[Cluster]:
        """The clusters, each once, in the order of their first members."""
        return sorted(set(self.home.values()), key=lambda c: c.first)

    def _start(self, node: Result) -> None:
        first = self._first.setdefault(node.node, node)
        if first is not node:  # another result of the same node
            home = self.home[node] = self.home[first]
            home.members.append(node)
            return
        rule = tables.lower.get(node.op) if node.op is not None else None
        number = self._number[node] = len(self._number)
        form, shape = Form.ALONE, node.aval.shape
        if isinstance(rule, Contraction):
            form = Form.CONTRACTION
        elif isinstance(rule, Reduction):
            form, shape = Form.MAP, node.inputs[0].aval.shape
        elif isinstance(rule, (Pointwise, IndexFunction, View)) or self._sums_in_a_nest(node, rule):
            form, shape = Form.MAP, point_shape(node)
        cluster = Cluster(number, form, essential(shape))
        cluster.members.append(node)
        cluster.reads = {self.views[x].base for x in node.inputs}
        cluster.sums = isinstance(rule, BucketSums)
        cluster.weight = 1.0 + code_size(node)
        if is_reduction(node):
            cluster.reduced = reduced_axes(node)
            cluster.kept.add(node)
        self.home[node] = cluster
        late = {self.views[y].base for x in node.inputs for y in self.behind.get(x, ())}
        self.order.add(cluster, {self.home[b] for b in cluster.reads | late if b in self.home})

    def _merge(self, producer: Cluster, consumer: Cluster) -> None:
        """Merge the two if one kernel can compute both."""
        if producer.weight + consumer.weight > HEAVIEST:
            return
        joint = _joint_domain(producer, consumer)
        if joint is None:
            return
        domain, reduced, kept = joint
        if (producer.sums or consumer.sums) and (producer.form is not Form.MAP or not _has_rows(domain, reduced)):
            return
        trial = Cluster(producer.first, producer.form, domain)
        trial.reduced, trial.kept = reduced, kept
        members = [*producer.members, *consumer.members]
        trial.members = members if producer.last < consumer.first else sorted(members, key=self._number.__getitem__)
        inside = set(members)
        apart = producer.reads.isdisjoint(consumer.members) and not producer.sums
        readers = consumer.members if apart else members
        if not all(reads_same_point(trial, node, inside, self.views) for node in readers):
            return
        if trial.form is Form.CONTRACTION and not self._reads_rows_and_columns(trial, consumer.members):
            return
        if self.order.merge(producer, consumer):
            self._absorb(producer, consumer, trial)

    def _absorb(self, producer: Cluster, consumer: Cluster, trial: Cluster) -> None:
        producer.domain, producer.reduced, producer.kept = trial.domain, trial.reduced, trial.kept
        producer.members = trial.members
        producer.reads |= consumer.reads
        producer.sums = producer.sums or consumer.sums
        producer.weight += consumer.weight
        producer.first = min(producer.first, consumer.first)
        producer.last = max(producer.last, consumer.last)
        for node in consumer.members:
            self.home[node] = producer

    def _sums_in_a_nest(self, node: Value, rule: Rule | None) -> bool:
        """Whether ``node`` sums buckets over a domain of rows and columns, from a table that lies as it should."""
        if not isinstance(rule, BucketSums) or node.aval.shape[0] == 1 or len(essential(node.aval.shape)) < 2:
            return False
        return self.views[node.inputs[0]].is_dense(node.inputs[0].aval.shape)

    def _reads_rows_and_columns(self, cluster: Cluster, nodes: list[Value]) -> bool:
        """Whether one stride for rows and one for columns lead to all that ``nodes``, read after a product, need."""
        for node in nodes:
            rule = tables.lower.get(node.op) if node.op is not None else None
            shape = point_shape(node)
            found = [aligned_strides(x.aval.shape, self.views[x].strides, shape) for x in node.inputs]
            if isinstance(rule, IndexFunction):
                found.append(aligned_strides(shape, rule.steps(node.aval, **node.attrs), shape))
            if any(matrices.point_strides(cluster.product, strides) is None for strides in found):
                return False
        return True


def _joint_domain(producer: Cluster, consumer: Cluster) -> tuple[Shape, tuple[int, ...], set[Value]] | None:
    """The domain, reduced axes and kept members of the two merged; None where no kernel has that form."""
    if consumer.form is not Form.MAP or producer.form is Form.ALONE:
        return None
    if 0 in producer.domain or 0 in consumer.domain:
        return None
    if producer.form is Form.CONTRACTION:
        if consumer.reduced or consumer.domain != producer.domain or is_batched(producer.product):
            return None
        return producer.domain, (), set()
    kept = producer.kept | consumer.kept
    if producer.domain == consumer.domain and producer.reduced == consumer.reduced:
        if producer.reduced and not reduces_last(producer.domain, producer.reduced):
            return None
        return producer.domain, producer.reduced, kept
    if producer.domain == consumer.domain and (not producer.reduced or not consumer.reduced):
        reduced = producer.reduced or consumer.reduced
        return (producer.domain, reduced, kept) if reduces_last(producer.domain, reduced) else None
    if producer.reduced and not consumer.reduced and consumer.domain == kept_extents(producer):
        return producer.domain, producer.reduced, kept | set(consumer.members)
    if consumer.reduced and not producer.reduced and producer.domain == kept_extents(consumer):
        return consumer.domain, consumer.reduced, kept | set(producer.members)
    return None


def reads_same_point(cluster: Cluster, node: Value, inside: set[Value], views: dict[Value, Strided]) -> bool:
    """Whether ``node`` reads other members of ``cluster`` only at the point that it is computed at; a sum of products
    or of a bucket, which reads its operands all over and is a full value, no other members at all."""
    rule = tables.lower.get(node.op) if node.op else None
    if isinstance(rule, (BucketSums, Contraction)):
        return node not in cluster.kept and not any(views[x].base in inside for x in node.inputs)
    full = is_reduction(node) or node not in cluster.kept
    shape = point_shape(node)
    kept_shape = kept_extents(cluster)
    for x in node.inputs:
        view = views[x]
        if view.base not in inside:
            continue
        if view.base in cluster.kept:
            expected = kept_strides(cluster) if full else row_major(kept_shape)
        elif full:
            expected = row_major(cluster.domain)
        else:
            return False
        if view.offset != 0 or aligned_strides(x.aval.shape, view.strides, shape) != expected:
            return False
    return True


def kept_extents(cluster: Cluster) -> Shape:
    """The extents of the axes that are not reduced."""
    return tuple(cluster.domain[a] for a in cluster.kept_axes)


def point_shape(node: Value) -> Shape:
    """The shape of the points a node visits: its input's for reductions and copying views, else its own."""
    rule = tables.lower.get(node.op) if node.op is not None else None
    return node.inputs[0].aval.shape if isinstance(rule, (Reduction, View)) else node.aval.shape


def aligned_strides(operand: Shape, strides: Shape, result: Shape) -> Shape:
    """Strides of a (size-1-broadcast) operand over the essential axes of the result it is read for."""
    return tuple(0 if n == 1 else s for n, s, r in zip(operand, strides, result, strict=True) if r != 1)


def kept_strides(cluster: Cluster) -> Shape:
    """Strides, over the whole domain, of a dense array of the kept axes."""
    step = 1
    strides = [0] * len(cluster.domain)
    for axis in reversed(cluster.kept_axes):
        strides[axis] = step
        step *= cluster.domain[axis]
    return tuple(strides)


def reduced_axes(node: Value) -> tuple[int, ...]:
    """The axes a reduction node reduces, counted among the essential axes of its input."""
    shape = node.inputs[0].aval.shape
    position = 0
    found: list[int] = []
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        if axis in node.attrs["axes"]:
            found.append(position)
        position += 1
    return tuple(found)


def is_reduction(node: Value) -> bool:
    """Whether a node folds elements together (a reduction over axes of size 1 does not)."""
    rule = tables.lower.get(node.op) if node.op else None
    return isinstance(rule, Reduction) and bool(reduced_axes(node))


def reduces_last(domain: Shape, reduced: tuple[int, ...]) -> bool:
    """Whether the last axis is reduced: the row form, whose passes along the last axis may also store full values."""
    return bool(reduced) and reduced[-1] == len(domain) - 1


def _has_rows(domain: Shape, reduced: tuple[int, ...]) -> bool:
    """Whether the first axis is a loop around all others, where a bucket can be looked up."""
    return len(domain) > 1 and 0 not in reduced and (not reduced or reduces_last(domain, reduced))


def is_batched(contraction: Value) -> bool:
    """Whether a contraction is many matrix products rather than one."""
    return matrices.extents(contraction).is_batched
