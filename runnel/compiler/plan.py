"""Graph → plan: the kernels, their order and their memory.

The steps: views become index arithmetic, nodes become clusters, clusters are ordered and values get places
(``memory/placement.py``); each cluster becomes calls of kernels, the arena is planned, calls are partitioned among
threads, and barriers are set where a thread needs the results of another. A plan is data: ``program.py`` binds it to
memory and machine code.
"""

from __future__ import annotations

from runnel.compiler.kernels import bounds
from runnel.compiler.kernels.families import FAMILIES
from runnel.compiler.lowering.operands import OffsetTables, Operands
from runnel.compiler.lowering.protocol import Request, lowering_of, register
from runnel.compiler.memory import arena
from runnel.compiler.memory.arena import MemoryPlanner, name_of
from runnel.compiler.memory.placement import Placement, place
from runnel.compiler.plan_ir.calls import Allocation, Call, MemorySpace
from runnel.compiler.plan_ir.clusters import Cluster
from runnel.compiler.plan_ir.plan import BodyPlan, Bounded, Interface, Lowered, Plan as Plan, Section
from runnel.compiler.schedule import partition, synchronization
from runnel.compiler.verification import verifier
from runnel.core import switches
from runnel.core.avals import Shape
from runnel.graph.graph import Graph
from runnel.graph.node import Value

register(FAMILIES)


def plan_graph(
    graph: Graph,
    threads: int,
    strides: dict[Value, Shape] | None = None,
    *,
    fuse: bool = True,
    memory_planner: MemoryPlanner | None = None,
) -> Plan:
    """Return the plan of ``graph``. ``strides`` are the strides of inputs that are not dense."""
    return plan_placed(place(graph, strides, fuse=fuse), threads, memory_planner)


def plan_placed(
    placement: Placement, threads: int, memory_planner: MemoryPlanner | None = None, *, deals: bool = True
) -> Plan:
    """Return the plan of a graph whose values have places; with ``deals`` threads compute independent branches at the
    same time, in separate memory."""
    return finished(lowered(placement), threads, memory_planner, deals=deals)


def lowered(placement: Placement) -> Lowered:
    """Return the calls of a graph whose values have places."""
    bounded = list(placement.bounded)
    return Lowered(placement.graph, _lowered(placement, bounded), placement.interface, bounded)


def finished(code: Lowered, threads: int, memory_planner: MemoryPlanner | None = None, *, deals: bool = True) -> Plan:
    """Plan the arena, partition calls among ``threads``, and set barriers."""
    calls, regions, interface = code.section.calls, code.section.regions, code.interface
    verifier.check_calls(calls)
    arena_plan = arena.lay_out(calls, regions, memory_planner)
    active, blocks = partition.split_calls(calls, threads, regions)
    stretches = []
    if deals and memory_planner is None:  # a memory planner is told the lifetimes of one call after another
        stretches = partition.find_stretches(calls, blocks, threads, regions)
        apart = arena.lay_out_apart(calls, arena_plan, stretches) if stretches else None
        if apart is None:
            stretches = []
        else:
            arena_plan = apart
            active, blocks = partition.dealt(blocks, stretches)
    constants = _constants(interface, calls)
    _number_slots(interface, constants)
    barriers, again = synchronization.barriers(calls, blocks, regions, stretches)
    plan = Plan(
        code.graph, calls, blocks, barriers, active, arena_plan,
        interface.inputs, interface.variables, interface.outputs, interface.output_of, constants,
        code.bounded, regions, again,
    )  # fmt: skip
    if memory_planner is not None:
        verifier.verify_places(plan, name_of(memory_planner))
    if switches.verify.value:
        verifier.verify(plan)
    return plan


def _lowered(placement: Placement, bounded: list[Bounded]) -> Section:
    """Return the calls and loops of a graph, on places without offsets yet, and add the checks of the bodies of loops
    to ``bounded``."""
    clustering, results = placement.clustering, placement.results
    verifier.check_clusters(clustering)
    verifier.check_order(placement.order, clustering, results.overwritten)
    offsets = OffsetTables()
    subviews = placement.in_place.views(placement.targets)

    def plan_body(graph: Graph, strides: dict[Value, Shape]) -> BodyPlan:
        body = place(graph, strides, fuse=clustering.fuse, first_code=len(bounded) + 1)
        bounded.extend(body.bounded)
        return BodyPlan(_lowered(body, bounded), body.interface)

    section = Section()
    section.add([*results.first, *_checks(placement, None)])
    for cluster in placement.order:
        request = Request(
            cluster,
            Operands(placement.views, placement.sources),
            {n: placement.targets[n] for n in cluster.members if n in placement.targets},
            {n: subviews[n] for n in cluster.members if n in subviews},
            placement.in_place.subviews.get(cluster.root, ()),
            offsets,
            plan_body,
        )
        section.join(lowering_of(cluster.root).build(request))
        section.add(_checks(placement, cluster))
    operands = Operands(placement.views, placement.sources)
    section.add([operands.copy(node, allocation) for node, allocation in results.late])
    section.add(results.last)
    return section


def _checks(placement: Placement, cluster: Cluster | None) -> list[Call]:
    """Return the checks of indices that ``cluster`` computes; without one, of those available from the start."""
    operands = Operands(placement.views, placement.sources)
    return [
        bounds.bounds_check(b, operands.view(b.indices))
        for b in placement.bounded
        if placement.clustering.cluster_of.get(placement.views[b.indices].base) is cluster
    ]


def _constants(interface: Interface, calls: list[Call]) -> list[Allocation]:
    """Return the constants of a graph, and the tables of its kernels."""
    accessed = (a.allocation for c in calls for a in c.accesses if a.allocation.space is MemorySpace.CONSTANT)
    return list(dict.fromkeys((*interface.constants, *accessed)))


def _number_slots(interface: Interface, constants: list[Allocation]) -> None:
    """Set the numbers of slots: 0 is the arena, 1 the constants, then inputs, Variables, outputs."""
    for i, allocation in enumerate((*interface.inputs, *interface.variables.values(), *interface.outputs)):
        allocation.slot = 2 + i
    offset = 0
    for allocation in constants:
        allocation.slot, allocation.offset = 1, offset
        offset += -(-allocation.nbytes // 64) * 64
