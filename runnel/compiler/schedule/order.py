"""The order of clusters: after all they need and, where there is a choice, so that little memory is held.

Two orders are made: that of the program, and one that always takes the cluster after which the fewest bytes are held
(list scheduling; for registers: J. Goodman, W. Hsu, "Code Scheduling and Register Allocation in Large Basic Blocks",
1988). In a training step the second computes the gradient of a weight, and updates the weight, as soon as it can, so
that what the gradient is made of need not wait. The order that holds fewer bytes at its fullest moment is taken.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runnel.compiler.fusion.cluster import Cluster


class Traffic(NamedTuple):
    """The values in planned memory that a cluster makes and reads, by number, and the bytes of every value."""

    makes: Mapping[Cluster, Sequence[int]]
    reads: Mapping[Cluster, Sequence[int]]
    nbytes: Sequence[int]
    kept: frozenset[int]  # values that are read after the last cluster, too


def ordered(clusters: Sequence[Cluster], traffic: Traffic) -> list[Cluster]:
    """``clusters`` in the order they run in; fewer than there were if some wait for one another in a circle."""
    by_program = _scheduled(clusters, None)
    if len(by_program) < len(clusters) or len(traffic.nbytes) < 2:
        return by_program
    thrifty = _scheduled(clusters, _Held(traffic))
    return min((by_program, thrifty), key=lambda order: _fullest(order, traffic))


class _Held:
    """What running a cluster next would add to the memory that is held."""

    def __init__(self, traffic: Traffic) -> None:
        self.traffic = traffic
        self.readers: list[set[Cluster]] = [set() for _ in traffic.nbytes]
        for cluster, values in traffic.reads.items():
            for value in values:
                self.readers[value].add(cluster)

    def growth(self, cluster: Cluster) -> int:
        """The bytes that it makes, less those that it is the last to read."""
        nbytes, kept = self.traffic.nbytes, self.traffic.kept
        made = sum(nbytes[v] for v in self.traffic.makes.get(cluster, ()))
        read = self.traffic.reads.get(cluster, ())
        return made - sum(nbytes[v] for v in read if len(self.readers[v]) == 1 and v not in kept)

    def run(self, cluster: Cluster) -> list[Cluster]:
        """Take note that it has run; gives the clusters whose growth has changed."""
        changed: list[Cluster] = []
        for value in self.traffic.reads.get(cluster, ()):
            self.readers[value].discard(cluster)
            if len(self.readers[value]) == 1:
                changed += self.readers[value]
        return changed


def _scheduled(clusters: Sequence[Cluster], held: _Held | None) -> list[Cluster]:
    """Always the ready cluster of least growth; without ``held``, and among equals, the first in the program."""
    waiting = {c: len(c.predecessors) for c in clusters}
    by_number = {c.last: c for c in clusters}
    ready: list[tuple[int, int]] = []

    def push(cluster: Cluster) -> None:
        heapq.heappush(ready, (held.growth(cluster) if held is not None else 0, cluster.last))

    for c in clusters:
        if not waiting[c]:
            push(c)
    order: list[Cluster] = []
    done: set[Cluster] = set()
    while ready:
        cluster = by_number[heapq.heappop(ready)[1]]
        if cluster in done:  # it was pushed again when its growth changed
            continue
        done.add(cluster)
        order.append(cluster)
        for c in cluster.successors:
            waiting[c] -= 1
            if not waiting[c]:
                push(c)
        for c in held.run(cluster) if held is not None else ():
            if not waiting[c] and c not in done:
                push(c)
    return order


def _fullest(order: Sequence[Cluster], traffic: Traffic) -> int:
    """The bytes held at the fullest moment."""
    last = {value: cluster for cluster in order for value in traffic.reads.get(cluster, ())}
    held = most = 0
    for cluster in order:
        made = traffic.makes.get(cluster, ())
        held += sum(traffic.nbytes[v] for v in made)
        most = max(most, held)
        held -= sum(traffic.nbytes[v] for v in made if v not in last and v not in traffic.kept)
        read = traffic.reads.get(cluster, ())
        held -= sum(traffic.nbytes[v] for v in read if last[v] is cluster and v not in traffic.kept)
    return most
