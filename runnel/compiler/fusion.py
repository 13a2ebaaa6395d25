"""Fusion: the partition of nodes into kernels.

Two clusters merge when every member reads other members only at its own point, when nothing else must run between the
two (``precedence.py``), and while the code stays small enough for LLVM, whose time grows superlinearly.
``verification/invariants.py`` checks these conditions.
"""

from __future__ import annotations

from typing import Final

from runnel.compiler.lowering.nodes import code_size
from runnel.compiler.lowering.protocol import lowering_of
from runnel.compiler.plan_ir.clusters import (
    Cluster,
    Form,
    aligned_strides,
    essential,
    has_rows,
    reduces_last,
    unreduced_extents,
    unreduced_strides,
)
from runnel.compiler.plan_ir.precedence import Precedence
from runnel.compiler.plan_ir.strides import Strided
from runnel.core.avals import Shape, row_major
from runnel.graph.graph import Graph
from runnel.graph.node import Node, Result, Value

HEAVIEST: Final = 512.0  # code in one kernel, in additions


class Clustering:
    """Each node starts as a cluster; then, in topological order, it is merged with the clusters of its producers."""

    def __init__(self, graph: Graph, views: dict[Value, Strided], *, fuse: bool = True) -> None:
        self.views = views
        self.cluster_of: dict[Value, Cluster] = {}
        self.order: Precedence[Cluster] = Precedence()
        self.control_dependencies: dict[
            Value, tuple[Value, ...]
        ] = {}  # views that are read only after other values are computed
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
