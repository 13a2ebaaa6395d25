"""Graph → plan: the kernels, their order and their memory.

The steps: views become index arithmetic, nodes become clusters, clusters are ordered, each becomes calls of kernels,
values get places, the arena is planned, calls are partitioned among threads and barriers set where a thread needs the
results of another. A plan is data: ``program.py`` binds it to memory and machine code.
"""

from __future__ import annotations

from runnel.compiler.fusion import Clustering, Traffic, ordered
from runnel.compiler.kernels import bounds
from runnel.compiler.kernels.families import FAMILIES
from runnel.compiler.lowering.operands import OffsetTables, Operands, copy_of_place
from runnel.compiler.lowering.protocol import Request, inline_constant, lowering_of, register, resolve_views
from runnel.compiler.memory import arena, in_place
from runnel.compiler.memory.arena import MemoryPlanner, name_of
from runnel.compiler.plan_ir.calls import Allocation, BufferView, Call, MemorySpace
from runnel.compiler.plan_ir.clusters import Cluster, Form, aligned_strides, unreduced_extents
from runnel.compiler.plan_ir.plan import BodyPlan, Bounded, Plan as Plan, Section
from runnel.compiler.schedule import partition, synchronization
from runnel.compiler.schedule.partition import split_calls
from runnel.compiler.verification import verifier
from runnel.core import switches
from runnel.core.avals import Shape, row_major
from runnel.core.records import replace
from runnel.graph import verifier as graphs
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind, Value

register(FAMILIES)


class Planner:
    """Builds a plan for one graph. ``strides`` are the strides of inputs that are not dense; with ``deals`` threads
    compute independent branches at the same time, in separate memory."""

    def __init__(
        self,
        graph: Graph,
        threads: int,
        strides: dict[Value, Shape] | None = None,
        *,
        fuse: bool = True,
        memory_planner: MemoryPlanner | None = None,
        deals: bool = True,
    ) -> None:
        if switches.verify.value:
            graphs.verify(graph)
        self.graph = graph
        self.threads = threads
        self.strides = strides or {}
        self.views = resolve_views(graph, strides)
        self._reader_lists: dict[Value, list[Value]] | None = None
        self.clustering = Clustering(graph, self.views, fuse=fuse)
        self.sources: dict[Value, Allocation] = {}
        self.targets: dict[Value, list[Allocation]] = {}
        self.inputs: list[Allocation] = []
        self.variables: dict[Value, Allocation] = {}
        self.overwritten: dict[Value, Cluster] = {}  # Variables that kernels update in place
        self.outputs: list[Allocation] = []
        self.output_of: list[int] = []
        self.constants: list[Allocation] = []
        self.first: list[Call] = []  # copies of inputs, before anything is overwritten
        self.last: list[Call] = []  # copies into Variables
        self.late: list[tuple[Value, Allocation]] = []  # results that no kernel stores in their place
        self.bounded = bounds.find_bounds(graph)
        self.bounded_inside: list[Bounded] = []  # by the bodies of loops
        self.first_code = 0  # codes below belong to the enclosing graph
        self.checking = {
            cluster_of for node, cluster_of in self.clustering.cluster_of.items() if lowering_of(node).may_fail(node)
        }
        self.offsets = OffsetTables()
        self.in_place = in_place.find_in_place(
            self.clustering.cluster_of, self.views, self.clustering.control_dependencies
        )
        self.subviews: dict[Value, list[BufferView]] = {}
        self.holders: dict[Value, Value] = {}  # padded arrays of values that are stored only inside them
        self.memory_planner = memory_planner
        self.deals = deals and memory_planner is None  # which is told the lifetimes of one call after another
        self._fuse = fuse
        self._place_inputs(self.strides)

    def build(self) -> Section:
        """Return the calls and loops, on places without offsets yet."""
        self._place_results()
        self._place_intermediates()
        order = self._order()
        verifier.check_clusters(self.clustering)
        verifier.check_order(order, self.clustering, self.overwritten)
        section = Section()
        section.add([*self.first, *self._checks(None)])
        for cluster in order:
            section.join(self._section(cluster))
            section.add(self._checks(cluster))
        section.add([self._copy(node, allocation) for node, allocation in self.late])
        section.add(self.last)
        return section

    def plan(self) -> Plan:
        section = self.build()
        calls, regions = section.calls, section.regions
        verifier.check_calls(calls)
        arena_plan = arena.lay_out(calls, regions, self.memory_planner)
        threads, blocks = split_calls(calls, self.threads, regions)
        stretches = partition.find_stretches(calls, blocks, self.threads, regions) if self.deals else []
        apart = arena.lay_out_apart(calls, arena_plan, stretches) if stretches else None
        if apart is None:
            stretches = []
        else:
            arena_plan = apart
            threads, blocks = partition.dealt(blocks, stretches)
        self._collect_constants(calls)
        self._number_slots()
        barriers, again = synchronization.barriers(calls, blocks, regions, stretches)
        plan = Plan(
            self.graph, calls, blocks, barriers, threads, arena_plan,
            self.inputs, self.variables, self.outputs, self.output_of, self.constants,
            self.bounded + self.bounded_inside, regions, again,
        )  # fmt: skip
        if self.memory_planner is not None:
            verifier.verify_places(plan, name_of(self.memory_planner))
        if switches.verify.value:
            verifier.verify(plan)
        return plan

    # Places -----------------------------------------------------------------------------------------------------------

    def _place_inputs(self, strides: dict[Value, Shape]) -> None:
        for node in self.graph.values:
            size, dtype = node.aval.size, node.aval.dtype
            if node.kind is InputKind.VARIABLE:
                allocation = Allocation(MemorySpace.VARIABLE, dtype, size, node.name, len(self.variables))
                self.variables[node] = allocation
            elif node.is_input:
                allocation = Allocation(MemorySpace.INPUT, dtype, size, node.name, len(self.inputs), node in strides)
                self.inputs.append(allocation)
            elif node.is_constant:
                allocation = Allocation(MemorySpace.CONSTANT, dtype, size, "constant", value=node.value)
                self.constants.append(allocation)
            else:
                continue
            self.sources[node] = allocation

    def _place_results(self) -> None:
        """Let producers store outputs and updates where possible; else copy them."""
        number_of: dict[Value, int] = {}
        for node in self.graph.outputs:
            if node in number_of:
                self.output_of.append(number_of[node])
                continue
            allocation = Allocation(
                MemorySpace.OUTPUT, node.aval.dtype, node.aval.size, f"output{len(self.outputs)}", len(self.outputs)
            )
            number_of[node] = len(self.outputs)
            self.output_of.append(len(self.outputs))
            self.outputs.append(allocation)
            view = self.views[node]
            if (
                view.base in self.clustering.cluster_of
                and view.is_dense(node.aval.shape)
                and view.base.aval.size == node.aval.size
            ):
                self.targets.setdefault(view.base, []).append(allocation)
            else:
                self._copy_later(node, allocation)
        for variable, node in self.graph.updates.items():
            view = self.views[node]
            if node is variable:
                continue
            if (
                view.base in self.clustering.cluster_of
                and view.is_dense(node.aval.shape)
                and view.base.aval.size == node.aval.size
                and self._can_update_in_place(variable, view.base)
            ):
                self.targets.setdefault(view.base, []).append(self.variables[variable])
                self.overwritten[variable] = self.clustering.cluster_of[view.base]
            else:
                self._copy_later(node, self.variables[variable])

    def _copy_later(self, node: Value, allocation: Allocation) -> None:
        """Copy a value that no kernel stores in its place; a view of an input is copied at the start, since the input
        may be a Variable that the program overwrites."""
        base = self.views[node].base
        if base in self.clustering.cluster_of:
            self.late.append((node, allocation))
        elif allocation.space is MemorySpace.VARIABLE or inline_constant(base):
            saved = Allocation(MemorySpace.ARENA, allocation.dtype, allocation.size, f"saved {allocation.label}")
            self.first.append(self._copy(node, saved))
            self.last.append(copy_of_place(node, saved, allocation))
        else:
            self.first.append(self._copy(node, allocation))

    def _copy(self, node: Value, allocation: Allocation) -> Call:
        return Operands(self.views, self.sources).copy(node, allocation)

    def _can_update_in_place(self, variable: Value, result: Value) -> bool:
        """Return whether the producer of ``result`` may store it over ``variable``: every other reader of the old value
        can run before, and the kernel itself reads it only at the point that it writes."""
        cluster = self.clustering.cluster_of[result]
        if not lowering_of(cluster.root).may_overwrite(cluster, result, self.views):
            return False
        checked = {self.clustering.cluster_of.get(self.views[b.indices].base) for b in self.bounded} - {None}
        checked |= self.checking
        order = self.clustering.order
        if any(cluster_of is cluster or (cluster_of and order.has_path(cluster, cluster_of)) for cluster_of in checked):
            return False  # it would be written before all indices are checked
        readers = self._readers(variable)
        for node in readers:
            cluster_of = self.clustering.cluster_of[node]
            if cluster_of is cluster:
                if not self._reads_where_it_writes(cluster, node, variable, result):
                    return False
            elif order.has_path(cluster, cluster_of):
                return False
        for cluster_of in {self.clustering.cluster_of[n] for n in readers} | {
            cluster_of for cluster_of in checked if cluster_of is not None
        }:
            if cluster_of is not cluster:
                order.precede(cluster_of, cluster)
        return True

    def _readers(self, base: Value) -> list[Value]:
        """Return the nodes that compute with ``base``, directly or through views."""
        if self._reader_lists is None:
            self._reader_lists = {}
            for node in self.clustering.cluster_of:
                for x in node.inputs:
                    self._reader_lists.setdefault(self.views[x].base, []).append(node)
        return self._reader_lists.get(base, [])

    def _reads_where_it_writes(self, cluster: Cluster, node: Value, variable: Value, result: Value) -> bool:
        lowering = lowering_of(node)
        if not lowering.reads_at_point:
            return False
        if (node in cluster.reduced_members) != (result in cluster.reduced_members):
            return False
        expected = (
            row_major(unreduced_extents(cluster)) if node in cluster.reduced_members else row_major(cluster.domain)
        )
        for x in node.inputs:
            view = self.views[x]
            if view.base is variable:
                steps = aligned_strides(x.aval.shape, view.strides, lowering.point_shape(node))
                if view.offset != 0 or steps != expected:
                    return False
        return True

    def _order(self) -> list[Cluster]:
        """Return the clusters in topological order, with few live bytes."""
        clusters = self.clustering.clusters
        if len(clusters) < 2:
            return clusters
        cluster_of = self.clustering.cluster_of
        values = [n for n in cluster_of if self._is_in_arena(n) and n not in self.holders]
        number = {n: i for i, n in enumerate(values)}
        makers = {number[whole]: cluster_of[n] for n, whole in self.holders.items() if whole in number}
        number |= {n: number[whole] for n, whole in self.holders.items() if whole in number}
        makes: dict[Cluster, list[int]] = {}
        reads: dict[Cluster, dict[int, None]] = {}
        for i, node in enumerate(values):
            makes.setdefault(makers.get(i, cluster_of[node]), []).append(i)
        for node in cluster_of:
            for x in node.inputs:
                base = self.views[x].base
                if base in number and cluster_of[base] is not cluster_of[node]:
                    reads.setdefault(cluster_of[node], {})[number[base]] = None
        late = frozenset(number[b] for b in (self.views[node].base for node, _ in self.late) if b in number)
        traffic = Traffic(makes, {c: list(r) for c, r in reads.items()}, [n.aval.nbytes for n in values], late)
        return ordered(clusters, traffic)

    def _is_in_arena(self, node: Value) -> bool:
        return node in self.sources and self.sources[node].space is MemorySpace.ARENA

    def _place_intermediates(self) -> None:
        """Choose a place for each value that another cluster reads."""
        needed = {self.views[x].base for node in self.clustering.cluster_of for x in node.inputs
                  if self.clustering.cluster_of.get(self.views[x].base) is not self.clustering.cluster_of[node]
                  and not self.in_place.spares(node, x)}  # fmt: skip
        needed |= {self.views[node].base for node, _ in self.late}
        needed |= {self.views[x].base for x in self.graph.effects}
        checked = {self.views[b.indices].base for b in self.bounded}
        needed |= checked
        cluster_of = self.clustering.cluster_of
        inside = in_place.find_aliases(
            self.graph, self.strides, self.views, cluster_of, self.in_place, {*self.targets, *checked}
        )
        self.views, self.holders = inside.views, inside.holders
        for node, cluster in cluster_of.items():
            if node in self.targets:
                self.sources[node] = self.targets[node][0]
            elif node in self.holders:
                continue
            elif node in needed or (cluster.form is Form.STANDALONE and lowering_of(node).stores_unread):
                allocation = Allocation(
                    MemorySpace.ARENA, node.aval.dtype, node.aval.size, node.op.name if node.op else "value"
                )
                self.sources[node] = allocation
                self.targets[node] = [allocation]
        self.sources.update({node: self.targets[holder][0] for node, holder in self.holders.items()})
        self.subviews = self.in_place.views(self.targets)

    def _collect_constants(self, calls: list[Call]) -> None:
        """Collect the constant tables of standalone kernels."""
        known = set(self.constants)
        for allocation in dict.fromkeys(a.allocation for c in calls for a in c.accesses):
            if allocation.space is MemorySpace.CONSTANT and allocation not in known:
                self.constants.append(allocation)

    def _number_slots(self) -> None:
        """Set the numbers of slots: 0 is the arena, 1 the constants, then inputs, Variables, outputs."""
        for i, allocation in enumerate((*self.inputs, *self.variables.values(), *self.outputs)):
            allocation.slot = 2 + i
        offset = 0
        for allocation in self.constants:
            allocation.slot, allocation.offset = 1, offset
            offset += -(-allocation.nbytes // 64) * 64

    # Calls ------------------------------------------------------------------------------------------------------------

    def _section(self, cluster: Cluster) -> Section:
        """Return the calls and loops of one cluster."""
        request = Request(
            cluster,
            Operands(self.views, self.sources),
            {n: self.targets[n] for n in cluster.members if n in self.targets},
            {n: self.subviews[n] for n in cluster.members if n in self.subviews},
            self.in_place.subviews.get(cluster.root, ()),
            self.offsets,
            self._plan_body,
        )
        return lowering_of(cluster.root).build(request)

    def _plan_body(self, graph: Graph, strides: dict[Value, Shape]) -> BodyPlan:
        """Return the calls of a node's body."""
        planner = Planner(graph, self.threads, strides, fuse=self._fuse)
        planner.first_code = self.first_code + len(self.bounded) + len(self.bounded_inside)
        planner.bounded = [replace(b, code=b.code + planner.first_code) for b in planner.bounded]
        section = planner.build()
        self.bounded_inside += planner.bounded + planner.bounded_inside
        return BodyPlan(section, planner.inputs, planner.variables, planner.outputs, planner.output_of)

    def _checks(self, cluster: Cluster | None) -> list[Call]:
        """Return the checks of indices that ``cluster`` computes; without one, of those available from the start."""
        operands = Operands(self.views, self.sources)
        return [
            bounds.bounds_check(b, operands.view(b.indices))
            for b in self.bounded
            if self.clustering.cluster_of.get(self.views[b.indices].base) is cluster
        ]
