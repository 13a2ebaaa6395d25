"""What must hold of every plan, checked on every plan: it costs a few percent of making one.

Of a clustering: an order exists in which clusters can run, and inside a cluster each value is computed after those that
it reads, which it reads at its own point only. Of a plan: no call reads memory that nothing has written yet. The
thorough checker (``verifier.py``), which carries a plan out on sets of bytes, runs under ``RUNNEL_VERIFY`` only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runnel.compiler.fusion import Clustering, reads_same_point
from runnel.compiler.plan_ir.calls import Allocation, Call, MemorySpace
from runnel.compiler.plan_ir.clusters import Cluster, Form
from runnel.core.errors import VerifierError
from runnel.graph.node import Value


def check_clusters(clustering: Clustering) -> None:
    """Raise VerifierError unless each cluster is one loop nest: its values are computed one after another, each from
    values of the same point."""
    inside: dict[Cluster, set[Value]] = {}
    for node, cluster in clustering.cluster_of.items():  # in the order of the graph
        before = inside.setdefault(cluster, set())
        if cluster.form is not Form.STANDALONE and not reads_same_point(cluster, node, before, clustering.views):
            raise VerifierError(f"Fusion: {node} reads other values of its kernel at other points than its own.")
        before.add(node)
    for cluster, members in inside.items():
        if len(members) != len(cluster.members) or not members.issuperset(cluster.members):
            raise VerifierError(f"Fusion: {cluster} and the nodes that it is the home of are not the same.")


def check_order(order: Sequence[Cluster], clustering: Clustering, overwritten: Mapping[Value, Cluster]) -> None:
    """Raise VerifierError unless every cluster runs after those whose values it reads, and before the one that stores a
    new value over a Variable of which it reads the old one (``overwritten``)."""
    cluster_of, views = clustering.cluster_of, clustering.views
    position = {cluster: number for number, cluster in enumerate(order)}
    if len(position) != len(set(cluster_of.values())):
        raise VerifierError("Fusion: some kernels wait for one another in a circle.")
    computed: set[Value] = set()
    for node, cluster in cluster_of.items():
        for x in node.inputs:
            base = views[x].base
            for needed in (base, *(views[y].base for y in clustering.control_dependencies.get(x, ()))):
                maker = cluster_of.get(needed)
                if maker is not None and (
                    needed not in computed if maker is cluster else position[maker] >= position[cluster]
                ):
                    raise VerifierError(f"Fusion: {node} is computed before {needed}, which it reads.")
            if base in overwritten and position[overwritten[base]] < position[cluster]:
                raise VerifierError(f"Fusion: {node} reads {base}, over which its next value is stored before.")
        computed.add(node)


def check_calls(calls: Sequence[Call]) -> None:
    """Raise VerifierError if a call reads a value of the arena that no call before it has made."""
    written: set[Allocation] = set()
    for call in calls:
        outputs: list[Allocation] = []
        for access, buffer in zip(call.accesses, call.kernel.buffers, strict=True):
            if access.allocation.space is MemorySpace.ARENA and access.allocation.size:
                if buffer.mode == "in" and access.allocation not in written:
                    raise VerifierError(
                        f"Plan: kernel '{call.kernel.name}' reads '{access.allocation.label}' before anything "
                        "writes it."
                    )
                if buffer.mode != "in":
                    outputs.append(access.allocation)
        written.update(outputs)
