"""Fusion: the partition of nodes into kernels, and the order of kernels.

Two clusters merge when every member reads other members only at its own point, when nothing else must run between the
two (:class:`Precedence`), and while the code stays small enough for LLVM, whose time grows superlinearly.
``verification/verifier.py`` checks these conditions.

Two orders of kernels are computed: the order of the program, and one that always takes the kernel after which the
fewest bytes are live (list scheduling; for registers: J. Goodman, W. Hsu, "Code Scheduling and Register Allocation in
Large Basic Blocks", 1988). In a training step the second computes the gradient of a weight, and updates the weight, as
early as possible, which frees the gradient's operands. The order with the lower peak of live bytes is chosen.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from runnel.compiler.lowering.protocol import code_size, lowering_of
from runnel.compiler.plan_ir.clusters import (
    Cluster,
    Form,
    Precedence,
    aligned_strides,
    essential,
    has_rows,
    reduces_last,
    unreduced_extents,
    unreduced_strides,
)
from runnel.compiler.plan_ir.strides import Strided
from runnel.core.avals import Shape, row_major
from runnel.graph.graph import Graph
from runnel.graph.node import Node, Result, Value

HEAVIEST: Final = 512.0  # code in one kernel, in additions


class Clustering:
    """Each node starts as a cluster; then, in topological order, it is merged with the clusters of its producers."""

    def __init__(self, graph: Graph, views: dict[Value, Strided], *, fuse: bool = True) -> None:
        self.views = views
        self.fuse = fuse
        self.cluster_of: dict[Value, Cluster] = {}
        self.order: Precedence[Cluster] = Precedence()
        # views that are read only after other values are computed
        self.control_dependencies: dict[Value, tuple[Value, ...]] = {}
        self._number: dict[Value, int] = {}
        self._first: dict[Node, Result] = {}  # of the results of each node
        for node in graph.values:
            if not isinstance(node, Result):
                continue
            if views[node].base is not node:
                source, *after = node.inputs
                if after or source in self.control_dependencies:
                    self.control_dependencies[node] = (*self.control_dependencies.get(source, ()), *after)
                continue
            self._start(node)
            if fuse:
                for x in node.inputs:
                    producer = self.cluster_of.get(views[x].base)
                    if (
                        producer is not None
                        and x not in self.control_dependencies
                        and producer is not self.cluster_of[node]
                    ):
                        self._merge(producer, self.cluster_of[node])

    @property
    def clusters(self) -> list[Cluster]:
        """The clusters, each once, in the order of their first members."""
        return sorted(set(self.cluster_of.values()), key=lambda c: c.first)

    def _start(self, node: Result) -> None:
        first = self._first.setdefault(node.node, node)
        if first is not node:  # another result of the same node
            cluster_of = self.cluster_of[node] = self.cluster_of[first]
            cluster_of.members.append(node)
            return
        lowering = lowering_of(node)
        number = self._number[node] = len(self._number)
        form = lowering.form(node, self.views)
        shape = lowering.point_shape(node) if form is Form.NEST else node.aval.shape
        cluster = Cluster(number, form, essential(shape), node)
        cluster.members.append(node)
        cluster.reads = {self.views[x].base for x in node.inputs}
        cluster.needs_rows = lowering.needs_rows
        cluster.weight = 1.0 + code_size(node)
        cluster.reduced = lowering.reduced_axes(node)
        if cluster.reduced:
            cluster.reduced_members.add(node)
        self.cluster_of[node] = cluster
        late = {self.views[y].base for x in node.inputs for y in self.control_dependencies.get(x, ())}
        self.order.add(cluster, {self.cluster_of[b] for b in cluster.reads | late if b in self.cluster_of})

    def _merge(self, producer: Cluster, consumer: Cluster) -> None:
        """Merge the two if one kernel can compute both."""
        if producer.weight + consumer.weight > HEAVIEST:
            return
        merged = _merged_domain(producer, consumer)
        if merged is None:
            return
        domain, reduced, reduced_members = merged
        needs_rows = producer.needs_rows or consumer.needs_rows
        if needs_rows and (producer.form is not Form.NEST or not has_rows(domain, reduced)):
            return
        trial = Cluster(producer.first, producer.form, domain, producer.root)
        trial.reduced, trial.reduced_members = reduced, reduced_members
        members = [*producer.members, *consumer.members]
        trial.members = members if producer.last < consumer.first else sorted(members, key=self._number.__getitem__)
        inside = set(members)
        apart = producer.reads.isdisjoint(consumer.members) and not producer.needs_rows
        readers = consumer.members if apart else members
        if not all(reads_same_point(trial, node, inside, self.views) for node in readers):
            return
        if trial.form is Form.ROOTED and not self._reads_rows_and_columns(trial, consumer.members):
            return
        if self.order.merge(producer, consumer):
            self._absorb(producer, consumer, trial)

    def _absorb(self, producer: Cluster, consumer: Cluster, trial: Cluster) -> None:
        producer.domain, producer.reduced, producer.reduced_members = trial.domain, trial.reduced, trial.reduced_members
        producer.members = trial.members
        producer.reads |= consumer.reads
        producer.needs_rows = producer.needs_rows or consumer.needs_rows
        producer.weight += consumer.weight
        producer.first = min(producer.first, consumer.first)
        producer.last = max(producer.last, consumer.last)
        for node in consumer.members:
            self.cluster_of[node] = producer

    def _reads_rows_and_columns(self, cluster: Cluster, nodes: list[Value]) -> bool:
        """Return whether each operand of ``nodes``, in the root's epilogue, has one stride for rows and one for
        columns."""
        axes = lowering_of(cluster.root).epilogue_axes(cluster.root)
        for node in nodes:
            lowering = lowering_of(node)
            shape, steps = lowering.point_shape(node), lowering.position_steps(node)
            operand_strides = [aligned_strides(x.aval.shape, self.views[x].strides, shape) for x in node.inputs]
            if steps is not None:
                operand_strides.append(aligned_strides(shape, steps, shape))
            if axes is None or not all(axes.has_steps(strides) for strides in operand_strides):
                return False
        return True


def _merged_domain(producer: Cluster, consumer: Cluster) -> tuple[Shape, tuple[int, ...], set[Value]] | None:
    """Return the domain, reduced axes and reduced members of the merged cluster; None where no kernel has that form."""
    if consumer.form is not Form.NEST or producer.form is Form.STANDALONE:
        return None
    if 0 in producer.domain or 0 in consumer.domain:
        return None
    if producer.form is Form.ROOTED:
        if consumer.reduced or consumer.domain != producer.domain:
            return None
        return producer.domain, (), set()
    reduced_members = producer.reduced_members | consumer.reduced_members
    if producer.domain == consumer.domain and producer.reduced == consumer.reduced:
        if producer.reduced and not reduces_last(producer.domain, producer.reduced):
            return None
        return producer.domain, producer.reduced, reduced_members
    if producer.domain == consumer.domain and (not producer.reduced or not consumer.reduced):
        reduced = producer.reduced or consumer.reduced
        return (producer.domain, reduced, reduced_members) if reduces_last(producer.domain, reduced) else None
    if producer.reduced and not consumer.reduced and consumer.domain == unreduced_extents(producer):
        return producer.domain, producer.reduced, reduced_members | set(consumer.members)
    if consumer.reduced and not producer.reduced and producer.domain == unreduced_extents(consumer):
        return consumer.domain, consumer.reduced, reduced_members | set(producer.members)
    return None


def reads_same_point(cluster: Cluster, node: Value, inside: set[Value], views: dict[Value, Strided]) -> bool:
    """Return whether ``node`` reads other members of ``cluster`` only at its own point; a full-rank node that does not
    read its operands at its point must not read members at all."""
    lowering = lowering_of(node)
    if not lowering.reads_at_point:
        return node not in cluster.reduced_members and not any(views[x].base in inside for x in node.inputs)
    full = bool(lowering.reduced_axes(node)) or node not in cluster.reduced_members
    shape = lowering.point_shape(node)
    unreduced_shape = unreduced_extents(cluster)
    for x in node.inputs:
        view = views[x]
        if view.base not in inside:
            continue
        if view.base in cluster.reduced_members:
            expected = unreduced_strides(cluster) if full else row_major(unreduced_shape)
        elif full:
            expected = row_major(cluster.domain)
        else:
            return False
        if view.offset != 0 or aligned_strides(x.aval.shape, view.strides, shape) != expected:
            return False
    return True


class Traffic(NamedTuple):
    """The values in planned memory that each cluster writes and reads, by number, and the bytes of every value."""

    makes: Mapping[Cluster, Sequence[int]]
    reads: Mapping[Cluster, Sequence[int]]
    nbytes: Sequence[int]
    live_out: frozenset[int]  # values that are read after the last cluster


def ordered(clusters: Sequence[Cluster], traffic: Traffic) -> list[Cluster]:
    """Return ``clusters`` in the order of execution; fewer than given if there is a cycle."""
    by_program = _scheduled(clusters, None)
    if len(by_program) < len(clusters) or len(traffic.nbytes) < 2:
        return by_program
    thrifty = _scheduled(clusters, _LiveBytes(traffic))
    return min((by_program, thrifty), key=lambda order: _fullest(order, traffic))


class _LiveBytes:
    """The change of live bytes if a cluster runs next."""

    def __init__(self, traffic: Traffic) -> None:
        self.traffic = traffic
        self.readers: list[set[Cluster]] = [set() for _ in traffic.nbytes]
        for cluster, values in traffic.reads.items():
            for value in values:
                self.readers[value].add(cluster)

    def growth(self, cluster: Cluster) -> int:
        """Return the bytes of its results, minus the bytes of values that it is the last to read."""
        nbytes, live_out = self.traffic.nbytes, self.traffic.live_out
        produced = sum(nbytes[v] for v in self.traffic.makes.get(cluster, ()))
        read = self.traffic.reads.get(cluster, ())
        return produced - sum(nbytes[v] for v in read if len(self.readers[v]) == 1 and v not in live_out)

    def run(self, cluster: Cluster) -> list[Cluster]:
        """Note that it has run; returns the clusters whose growth has changed."""
        changed: list[Cluster] = []
        for value in self.traffic.reads.get(cluster, ()):
            self.readers[value].discard(cluster)
            if len(self.readers[value]) == 1:
                changed += self.readers[value]
        return changed


def _scheduled(clusters: Sequence[Cluster], live: _LiveBytes | None) -> list[Cluster]:
    """List scheduling by least growth; without ``live``, and among equals, by the order of the program."""
    waiting = {c: len(c.predecessors) for c in clusters}
    by_number = {c.last: c for c in clusters}
    ready: list[tuple[int, int]] = []

    def push(cluster: Cluster) -> None:
        heapq.heappush(ready, (live.growth(cluster) if live is not None else 0, cluster.last))

    for c in clusters:
        if not waiting[c]:
            push(c)
    order: list[Cluster] = []
    done: set[Cluster] = set()
    while ready:
        cluster = by_number[heapq.heappop(ready)[1]]
        if cluster in done:  # it is pushed again when its growth changes
            continue
        done.add(cluster)
        order.append(cluster)
        for c in cluster.successors:
            waiting[c] -= 1
            if not waiting[c]:
                push(c)
        for c in live.run(cluster) if live is not None else ():
            if not waiting[c] and c not in done:
                push(c)
    return order


def _fullest(order: Sequence[Cluster], traffic: Traffic) -> int:
    """Return the peak of live bytes."""
    last = {value: cluster for cluster in order for value in traffic.reads.get(cluster, ())}
    live = most = 0
    for cluster in order:
        produced = traffic.makes.get(cluster, ())
        live += sum(traffic.nbytes[v] for v in produced)
        most = max(most, live)
        live -= sum(traffic.nbytes[v] for v in produced if v not in last and v not in traffic.live_out)
        read = traffic.reads.get(cluster, ())
        live -= sum(traffic.nbytes[v] for v in read if last[v] is cluster and v not in traffic.live_out)
    return most
