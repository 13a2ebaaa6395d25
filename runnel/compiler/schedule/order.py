"""The order of clusters: a topological order with few live bytes.

Two orders are computed: that of the program, and one that always takes the cluster after which the fewest bytes are
live (list scheduling; for registers: J. Goodman, W. Hsu, "Code Scheduling and Register Allocation in Large Basic
Blocks", 1988). In a training step the second computes the gradient of a weight, and updates the weight, as early as
possible, which frees the gradient's operands. The order with the lower peak of live bytes is chosen.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runnel.compiler.plan_ir.clusters import Cluster


class Traffic(NamedTuple):
    """The values in planned memory that each cluster writes and reads, by number, and the bytes of every value."""

    makes: Mapping[Cluster, Sequence[int]]
    reads: Mapping[Cluster, Sequence[int]]
    nbytes: Sequence[int]
    live_out: frozenset[int]  # values that are read after the last cluster


def ordered(clusters: Sequence[Cluster], traffic: Traffic) -> list[Cluster]:
    """``clusters`` in the order of execution; fewer than given if there is a cycle."""
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
        """Return the bytes of its results, less those of values that it is the last to read."""
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
