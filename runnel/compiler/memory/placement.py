"""The places of a graph's values: inputs, Variables, results, and intermediate values that another kernel reads.

The producer of a result stores it where the caller wants it, and the producer of an update stores it over the Variable,
if every reader of the old value can run before; otherwise the value is copied.
"""

from __future__ import annotations

from collections.abc import Collection

from runnel.compiler.fusion import Clustering, Traffic, ordered
from runnel.compiler.kernels.bounds import find_bounds
from runnel.compiler.lowering.operands import Operands, copy_of_place
from runnel.compiler.lowering.protocol import inline_constant, lowering_of, resolve_views
from runnel.compiler.memory.in_place import InPlace, find_aliases, find_in_place
from runnel.compiler.plan_ir.calls import Allocation, Call, MemorySpace
from runnel.compiler.plan_ir.clusters import Cluster, aligned_strides, unreduced_extents
from runnel.compiler.plan_ir.plan import Bounded, Interface
from runnel.compiler.plan_ir.strides import Strided
from runnel.core import switches
from runnel.core.avals import Shape, row_major
from runnel.core.lengths import expected
from runnel.core.records import record
from runnel.graph import verifier as graphs
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind, Value

Sources = dict[Value, Allocation]


@record
class Results:
    """The stores of results and updates. ``targets`` are the places where their producers store them;
    ``overwritten`` are the Variables that are updated so. The other values are copied: ``first`` before all kernels,
    ``late`` and then ``last`` after them."""

    targets: dict[Value, list[Allocation]]
    overwritten: dict[Value, Cluster]
    first: list[Call]
    late: list[tuple[Value, Allocation]]
    last: list[Call]


@record
class Placement:
    """The clusters of a graph in the order of execution, and the places of its values.

    A value is read from the place of its base in ``sources``, as ``views`` say; its producer stores it to all of
    ``targets``. ``bounded`` are the checks of the graph's indices.
    """

    graph: Graph
    clustering: Clustering
    order: list[Cluster]
    views: dict[Value, Strided]
    sources: Sources
    targets: dict[Value, list[Allocation]]
    in_place: InPlace
    interface: Interface
    results: Results
    bounded: list[Bounded]


def place(
    graph: Graph, strides: dict[Value, Shape] | None = None, *, fuse: bool = True, first_code: int = 1
) -> Placement:
    """Group the nodes of ``graph`` into clusters, order these, and choose the places of values.

    ``strides`` are the strides of inputs that are not dense; ``first_code`` is the status of the first check of
    indices.
    """
    if switches.verify.value:
        graphs.verify(graph)
    strides = strides or {}
    views = resolve_views(graph, strides)
    clustering = Clustering(graph, views, fuse=fuse)
    bounded = find_bounds(graph, first_code)
    in_place = find_in_place(clustering.cluster_of, views, clustering.control_dependencies)
    interface, sources = _interface(graph, strides)
    results = _results(graph, clustering, interface, sources, bounded)
    cluster_of = clustering.cluster_of
    checked = {views[b.indices].base for b in bounded}
    needed = {views[x].base for node in cluster_of for x in node.inputs
              if cluster_of.get(views[x].base) is not cluster_of[node] and not in_place.spares(node, x)}  # fmt: skip
    needed |= {views[node].base for node, _ in results.late} | {views[x].base for x in graph.effects} | checked
    aliases = find_aliases(graph, strides, views, cluster_of, in_place, {*results.targets, *checked})
    targets = dict(results.targets)
    for node in cluster_of:
        if node in needed and node not in targets and node not in aliases.holders:
            name = node.op.name if node.op else "value"
            targets[node] = [Allocation(MemorySpace.ARENA, node.aval.dtype, node.aval.size, name)]
        if node in targets:
            sources[node] = targets[node][0]
    sources.update({node: targets[holder][0] for node, holder in aliases.holders.items()})
    order = clustering.clusters
    if len(order) > 1:
        late = [node for node, _ in results.late]
        order = ordered(order, _traffic(clustering, aliases.views, sources, aliases.holders, late))
    return Placement(graph, clustering, order, aliases.views, sources, targets, in_place, interface, results, bounded)


def _interface(graph: Graph, strides: Collection[Value]) -> tuple[Interface, Sources]:
    """Return the memory that the caller provides, and the places of inputs, Variables and constants."""
    inputs: list[Allocation] = []
    variables: dict[Value, Allocation] = {}
    constants: list[Allocation] = []
    sources: Sources = {}
    for node in graph.values:
        size, dtype = node.aval.size, node.aval.dtype
        if node.kind is InputKind.VARIABLE:
            allocation = Allocation(MemorySpace.VARIABLE, dtype, size, node.name, len(variables))
            variables[node] = allocation
        elif node.is_input:
            allocation = Allocation(MemorySpace.INPUT, dtype, size, node.name, len(inputs), node in strides)
            inputs.append(allocation)
        elif node.is_constant:
            allocation = Allocation(MemorySpace.CONSTANT, dtype, size, "constant", value=node.value)
            constants.append(allocation)
        else:
            continue
        sources[node] = allocation
    numbers = {node: number for number, node in enumerate(dict.fromkeys(graph.outputs))}
    outputs = [
        Allocation(MemorySpace.OUTPUT, node.aval.dtype, node.aval.size, f"output{number}", number)
        for node, number in numbers.items()
    ]
    return Interface(inputs, variables, outputs, [numbers[node] for node in graph.outputs], constants), sources


def _results(
    graph: Graph, clustering: Clustering, interface: Interface, sources: Sources, bounded: list[Bounded]
) -> Results:
    """Let producers store results and updates where possible; else copy them."""
    cluster_of, views = clustering.cluster_of, clustering.views
    results = Results({}, {}, [], [], [])
    copy = Operands(views, sources).copy

    def copy_later(node: Value, allocation: Allocation) -> None:
        """Copy a view of an input at the start: the input may be a Variable that the program overwrites."""
        base = views[node].base
        if base in cluster_of:
            results.late.append((node, allocation))
        elif allocation.space is MemorySpace.VARIABLE or inline_constant(base):
            saved = Allocation(MemorySpace.ARENA, allocation.dtype, allocation.size, f"saved {allocation.label}")
            results.first.append(copy(node, saved))
            results.last.append(copy_of_place(node, saved, allocation))
        else:
            results.first.append(copy(node, allocation))

    def is_whole(node: Value) -> bool:
        """Return whether ``node`` is all that a kernel stores, in order."""
        base, shape = views[node].base, node.aval.shape
        return base in cluster_of and views[node].is_dense(shape) and base.aval.size == node.aval.size

    for node, allocation in zip(dict.fromkeys(graph.outputs), interface.outputs, strict=True):
        if is_whole(node):
            results.targets.setdefault(views[node].base, []).append(allocation)
        else:
            copy_later(node, allocation)
    updates = {variable: node for variable, node in graph.updates.items() if node is not variable}
    readers = _readers(clustering) if updates else {}
    checked = _checked(clustering, bounded) if updates else []
    for variable, node in updates.items():
        base, allocation = views[node].base, interface.variables[variable]
        if is_whole(node) and _may_overwrite(variable, base, clustering, readers.get(variable, []), checked):
            results.targets.setdefault(base, []).append(allocation)
            results.overwritten[variable] = cluster_of[base]
        else:
            copy_later(node, allocation)
    return results


def _readers(clustering: Clustering) -> dict[Value, list[Value]]:
    """Return the nodes that compute with each value, directly or through views."""
    readers: dict[Value, list[Value]] = {}
    for node in clustering.cluster_of:
        for x in node.inputs:
            readers.setdefault(clustering.views[x].base, []).append(node)
    return readers


def _checked(clustering: Clustering, bounded: list[Bounded]) -> list[Cluster]:
    """Return the clusters that must run before any Variable is overwritten: they may stop the program, or compute
    indices that are checked."""
    cluster_of, views = clustering.cluster_of, clustering.views
    bases = [views[b.indices].base for b in bounded]
    failing = [node for node in cluster_of if lowering_of(node).may_fail(node)]
    return list(dict.fromkeys(cluster_of[node] for node in (*bases, *failing) if node in cluster_of))


def _may_overwrite(
    variable: Value, result: Value, clustering: Clustering, readers: list[Value], checked: list[Cluster]
) -> bool:
    """Return whether the producer of ``result`` may store it over ``variable``, and then let it run after ``checked``
    and the other readers of the old value; its own kernel must read that only at the point that it writes."""
    cluster_of, order = clustering.cluster_of, clustering.order
    cluster = cluster_of[result]
    if not lowering_of(cluster.root).may_overwrite(cluster, result, clustering.views):
        return False
    if any(other is cluster or order.has_path(cluster, other) for other in checked):
        return False
    for node in readers:
        if cluster_of[node] is cluster:
            if not _reads_where_it_writes(cluster, node, variable, result, clustering.views):
                return False
        elif order.has_path(cluster, cluster_of[node]):
            return False
    for other in dict.fromkeys((*(cluster_of[node] for node in readers), *checked)):
        if other is not cluster:
            order.precede(other, cluster)
    return True


def _reads_where_it_writes(
    cluster: Cluster, node: Value, variable: Value, result: Value, views: dict[Value, Strided]
) -> bool:
    lowering = lowering_of(node)
    reduced = node in cluster.reduced_members
    if not lowering.reads_at_point or reduced != (result in cluster.reduced_members):
        return False
    expected = row_major(unreduced_extents(cluster) if reduced else cluster.domain)
    for x in node.inputs:
        view = views[x]
        if view.base is variable:
            steps = aligned_strides(x.aval.shape, view.strides, lowering.point_shape(node))
            if view.offset != 0 or steps != expected:
                return False
    return True


def _traffic(
    clustering: Clustering,
    views: dict[Value, Strided],
    sources: Sources,
    holders: dict[Value, Value],
    late: list[Value],
) -> Traffic:
    """Return the values of the arena that each cluster writes and reads; values of ``late`` are read at the end."""
    cluster_of = clustering.cluster_of
    values = [n for n in cluster_of if n in sources and sources[n].space is MemorySpace.ARENA and n not in holders]
    number = {n: i for i, n in enumerate(values)}
    makers = {number[whole]: cluster_of[n] for n, whole in holders.items() if whole in number}
    number |= {n: number[whole] for n, whole in holders.items() if whole in number}
    makes: dict[Cluster, list[int]] = {}
    reads: dict[Cluster, dict[int, None]] = {}
    for i, node in enumerate(values):
        makes.setdefault(makers.get(i, cluster_of[node]), []).append(i)
    for node in cluster_of:
        for x in node.inputs:
            base = views[x].base
            if base in number and cluster_of[base] is not cluster_of[node]:
                reads.setdefault(cluster_of[node], {})[number[base]] = None
    live_out = frozenset(number[b] for b in (views[node].base for node in late) if b in number)
    return Traffic(makes, {c: list(r) for c, r in reads.items()}, [expected(n.aval.nbytes) for n in values], live_out)
