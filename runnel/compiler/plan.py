"""Graph → plan: which kernels run, in which order, on which memory.

The steps: views become index arithmetic, nodes become clusters, clusters are put in order, each becomes calls of
kernels, values get places, the arena is laid out, calls are split among threads and barriers set where a thread needs
what another one made. A plan is data: ``program.py`` binds it to memory and machine code.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from runnel.compiler.cost.costs import inline_constant
from runnel.compiler.fusion.clusters import (
    Cluster,
    Clustering,
    Form,
    aligned_strides,
    is_batched,
    kept_extents,
    point_shape,
    reduces_last,
)
from runnel.compiler.fusion.strided import resolve_views
from runnel.compiler.kernels.builders import BUILDERS, Builder
from runnel.compiler.kernels.contraction import contraction
from runnel.compiler.kernels.contraction.matrices import OffsetLists, extents
from runnel.compiler.kernels.control_flow import control
from runnel.compiler.kernels.control_flow.bodies import BodyPlan, Piece, Results
from runnel.compiler.kernels.convolution import winograd
from runnel.compiler.kernels.copies import alone, border
from runnel.compiler.kernels.elementwise.nests import NestBuilder
from runnel.compiler.kernels.elementwise.rows import Passes
from runnel.compiler.kernels.elementwise.transposing import through_scratch
from runnel.compiler.kernels.indexing import bounds
from runnel.compiler.kernels.indexing.bounds import Bounded
from runnel.compiler.kernels.operands import Operands
from runnel.compiler.kernels.places import Call, Place, Space
from runnel.compiler.memory import interiors, laying, memory
from runnel.compiler.memory.memory import ArenaPlan
from runnel.compiler.schedule import hazards
from runnel.compiler.schedule.order import Traffic, ordered
from runnel.compiler.schedule.partition import Block, split_calls
from runnel.compiler.schedule.repeat import AnySpan
from runnel.compiler.verification import invariants, verifier
from runnel.core import switches, tables
from runnel.core.avals import Shape, row_major
from runnel.core.errors import MissingRuleError
from runnel.graph import verifier as graphs
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind, Result, Value
from runnel.loops.ir import TILE_K
from runnel.loops.rules import BucketSums, HostCall, Padding, Winograd


@dataclass(eq=False, slots=True)
class Plan:
    """Everything about a program but its memory addresses and machine code."""

    graph: Graph
    calls: list[Call]
    blocks: list[list[Block | None]]  # for each call, the block of each thread
    barriers: list[bool]  # whether a barrier stands before each call, in a loop before its first iteration's
    threads: int
    arena: ArenaPlan
    inputs: list[Place]
    variables: dict[Value, Place]
    outputs: list[Place]
    output_of: list[int]  # which output place holds each result
    constants: list[Place] = field(default_factory=list)
    bounded: list[Bounded] = field(default_factory=list)  # what is checked; a status is the code of one of these
    spans: list[AnySpan] = field(default_factory=list)  # the loops and branches among the calls
    again: list[bool] = field(default_factory=list)  # barriers of a loop's later iterations

    @property
    def slots(self) -> int:
        return 2 + len(self.inputs) + len(self.variables) + len(self.outputs)


class Planner:
    """Builds a plan for one graph. ``strides`` gives those of inputs that are not dense."""

    def __init__(
        self, graph: Graph, threads: int, strides: dict[Value, Shape] | None = None, *, fuse: bool = True
    ) -> None:
        if switches.verify.value:
            graphs.verify(graph)
        self.graph = graph
        self.threads = threads
        self.strides = strides or {}
        self.views = resolve_views(graph, strides)
        self._reader_lists: dict[Value, list[Value]] | None = None
        self.clustering = Clustering(graph, self.views, fuse=fuse)
        self.sources: dict[Value, Place] = {}
        self.targets: dict[Value, list[Place]] = {}
        self.inputs: list[Place] = []
        self.variables: dict[Value, Place] = {}
        self.overwritten: dict[Value, Cluster] = {}  # Variables that kernels update in place
        self.outputs: list[Place] = []
        self.output_of: list[int] = []
        self.constants: list[Place] = []
        self.first: list[Call] = []  # copies of inputs, before anything is overwritten
        self.last: list[Call] = []  # copies into Variables
        self.late: list[tuple[Value, Place]] = []  # results that no kernel stores where they are wanted
        self.bounded = bounds.find(graph)
        self.bounded_inside: list[Bounded] = []  # by the bodies of loops
        self.codes_taken = 0  # by the graph that this one is inside of
        self.checking = {home for node, home in self.clustering.home.items() if _may_fail(node)}
        self.offsets = OffsetLists()
        self.laying = laying.find(self.clustering.home, self.views, self.clustering.behind)
        self.laid: dict[Value, list[alone.Lie]] = {}
        self.holders: dict[Value, Value] = {}  # padded arrays of values that lie inside of them alone
        self._fuse = fuse
        self._place_inputs(self.strides)

    def build(self) -> Piece:
        """The calls and loops, on places that do not lie anywhere yet."""
        self._place_results()
        self._place_intermediates()
        order = self._order()
        invariants.check_clusters(self.clustering)
        invariants.check_order(order, self.clustering, self.overwritten)
        piece = Piece()
        piece.add([*self.first, *self._checks(None)])
        for cluster in order:
            if control.has_bodies(cluster.members[0]):
                piece.join(self._with_bodies(cluster))
            else:
                piece.add(self._calls(cluster))
            piece.add(self._checks(cluster))
        piece.add([self._copy(node, place) for node, place in self.late])
        piece.add(self.last)
        return piece

    def plan(self) -> Plan:
        piece = self.build()
        calls, spans = piece.calls, piece.spans
        invariants.check_calls(calls)
        arena = memory.lay_out(calls, spans)
        self._collect_constants(calls)
        self._number_slots()
        threads, blocks = split_calls(calls, self.threads, spans)
        barriers, again = hazards.barriers(calls, blocks, spans)
        plan = Plan(
            self.graph, calls, blocks, barriers, threads, arena,
            self.inputs, self.variables, self.outputs, self.output_of, self.constants,
            self.bounded + self.bounded_inside, spans, again,
        )  # fmt: skip
        if switches.verify.value:
            verifier.verify(plan)
        return plan

    # Places -----------------------------------------------------------------------------------------------------------

    def _place_inputs(self, strides: dict[Value, Shape]) -> None:
        for node in self.graph.values:
            size, dtype = node.aval.size, node.aval.dtype
            if node.kind is InputKind.VARIABLE:
                place = Place(Space.VARIABLE, dtype, size, node.name, len(self.variables))
                self.variables[node] = place
            elif node.is_input:
                place = Place(Space.INPUT, dtype, size, node.name, len(self.inputs), node in strides)
                self.inputs.append(place)
            elif node.is_constant:
                place = Place(Space.CONSTANT, dtype, size, "constant", value=node.value)
                self.constants.append(place)
            else:
                continue
            self.sources[node] = place

    def _place_results(self) -> None:
        """Outputs and updates: stored by the kernel that makes them where possible, else copied."""
        made: dict[Value, int] = {}
        for node in self.graph.outputs:
            if node in made:
                self.output_of.append(made[node])
                continue
            place = Place(
                Space.OUTPUT, node.aval.dtype, node.aval.size, f"output{len(self.outputs)}", len(self.outputs)
            )
            made[node] = len(self.outputs)
            self.output_of.append(len(self.outputs))
            self.outputs.append(place)
            view = self.views[node]
            if (
                view.base in self.clustering.home
                and view.is_dense(node.aval.shape)
                and view.base.aval.size == node.aval.size
            ):
                self.targets.setdefault(view.base, []).append(place)
            else:
                self._copy_later(node, place)
        for variable, node in self.graph.updates.items():
            view = self.views[node]
            if node is variable:
                continue
            if (
                view.base in self.clustering.home
                and view.is_dense(node.aval.shape)
                and view.base.aval.size == node.aval.size
                and self._can_update_in_place(variable, view.base)
            ):
                self.targets.setdefault(view.base, []).append(self.variables[variable])
                self.overwritten[variable] = self.clustering.home[view.base]
            else:
                self._copy_later(node, self.variables[variable])

    def _copy_later(self, node: Value, place: Place) -> None:
        """Copy a value that no kernel stores where it is wanted; one that lies in an input is saved at the start, since
        the input may be a Variable that the program overwrites."""
        base = self.views[node].base
        if base in self.clustering.home:
            self.late.append((node, place))
        elif place.space is Space.VARIABLE or inline_constant(base):
            saved = Place(Space.ARENA, place.dtype, place.size, f"saved {place.label}")
            self.first.append(self._copy(node, saved))
            steps = row_major(node.aval.shape)
            self.last.append(
                alone.elementwise(node.aval.shape, [(saved, 0, steps)], (place, 0, steps), lambda loads: loads[0], node)
            )
        else:
            self.first.append(self._copy(node, place))

    def _copy(self, node: Value, place: Place) -> Call:
        return Operands(self.views, self.sources).copy(node, place)

    def _can_update_in_place(self, variable: Value, result: Value) -> bool:
        """Whether the kernel that makes ``result`` may store it over ``variable``: every other reader of the old value
        can run before, and the kernel itself reads it only at the point that it writes."""
        cluster = self.clustering.home[result]
        if cluster.form is Form.ALONE or (cluster.reduced and not self._is_stored_last(cluster, result)):
            return False
        if cluster.form is Form.CONTRACTION and not self._writes_each_row_once(cluster.product):
            return False
        checked = {self.clustering.home.get(self.views[b.indices].base) for b in self.bounded} - {None}
        checked |= self.checking
        order = self.clustering.order
        if any(home is cluster or (home and order.has_path(cluster, home)) for home in checked):
            return False  # it would be written before all indices are known to be in range
        readers = self._readers(variable)
        for node in readers:
            home = self.clustering.home[node]
            if home is cluster:
                if not self._reads_where_it_writes(cluster, node, variable, result):
                    return False
            elif order.has_path(cluster, home):
                return False
        for home in {self.clustering.home[n] for n in readers} | {home for home in checked if home is not None}:
            if home is not cluster:
                order.precede(home, cluster)
        return True

    def _writes_each_row_once(self, product: Value) -> bool:
        """Whether the kernel of a product stores each element of its result only once, with an epilogue."""
        rule = tables.lower.get(product.op) if product.op is not None else None
        return not isinstance(rule, Winograd) and not is_batched(product)

    def _is_stored_last(self, cluster: Cluster, result: Value) -> bool:
        """Whether a kernel that folds stores ``result`` after all that it reads, or in its last pass along a row."""
        if result in cluster.kept:
            return True
        passes = Passes(cluster, self.views, {})
        return reduces_last(cluster.domain, cluster.reduced) and passes.level[result] == passes.last

    def _readers(self, base: Value) -> list[Value]:
        """The nodes that compute with ``base``, directly or through views."""
        if self._reader_lists is None:
            self._reader_lists = {}
            for node in self.clustering.home:
                for x in node.inputs:
                    self._reader_lists.setdefault(self.views[x].base, []).append(node)
        return self._reader_lists.get(base, [])

    def _reads_where_it_writes(self, cluster: Cluster, node: Value, variable: Value, result: Value) -> bool:
        if cluster.form is Form.CONTRACTION and node is cluster.product:
            return False
        if isinstance(tables.lower.get(node.op) if node.op else None, BucketSums):
            return False
        if (node in cluster.kept) != (result in cluster.kept):
            return False
        expected = row_major(kept_extents(cluster)) if node in cluster.kept else row_major(cluster.domain)
        for x in node.inputs:
            view = self.views[x]
            if view.base is variable:
                steps = aligned_strides(x.aval.shape, view.strides, point_shape(node))
                if view.offset != 0 or steps != expected:
                    return False
        return True

    def _order(self) -> list[Cluster]:
        """Clusters after all they need, with little memory held."""
        clusters = self.clustering.clusters
        if len(clusters) < 2:
            return clusters
        home = self.clustering.home
        values = [n for n in home if self._lies_in_arena(n) and n not in self.holders]
        number = {n: i for i, n in enumerate(values)}
        makers = {number[whole]: home[n] for n, whole in self.holders.items() if whole in number}
        number |= {n: number[whole] for n, whole in self.holders.items() if whole in number}
        makes: dict[Cluster, list[int]] = {}
        reads: dict[Cluster, dict[int, None]] = {}
        for i, node in enumerate(values):
            makes.setdefault(makers.get(i, home[node]), []).append(i)
        for node in home:
            for x in node.inputs:
                base = self.views[x].base
                if base in number and home[base] is not home[node]:
                    reads.setdefault(home[node], {})[number[base]] = None
        late = frozenset(number[b] for b in (self.views[node].base for node, _ in self.late) if b in number)
        traffic = Traffic(makes, {c: list(r) for c, r in reads.items()}, [n.aval.nbytes for n in values], late)
        return ordered(clusters, traffic)

    def _lies_in_arena(self, node: Value) -> bool:
        return node in self.sources and self.sources[node].space is Space.ARENA

    def _place_intermediates(self) -> None:
        """A place for each value that another cluster reads."""
        wanted = {self.views[x].base for node in self.clustering.home for x in node.inputs
                  if self.clustering.home.get(self.views[x].base) is not self.clustering.home[node]
                  and not self.laying.spares(node, x)}  # fmt: skip
        wanted |= {self.views[node].base for node, _ in self.late}
        wanted |= {self.views[x].base for x in self.graph.effects}
        checked = {self.views[b.indices].base for b in self.bounded}
        wanted |= checked
        home = self.clustering.home
        inside = interiors.find(self.graph, self.strides, self.views, home, self.laying, {*self.targets, *checked})
        self.views, self.holders = inside.views, inside.holders
        for node, cluster in home.items():
            if node in self.targets:
                self.sources[node] = self.targets[node][0]
            elif node in self.holders:
                continue
            elif node in wanted or (cluster.form is Form.ALONE and not control.has_bodies(node)):
                place = Place(Space.ARENA, node.aval.dtype, node.aval.size, node.op.name if node.op else "value")
                self.sources[node] = place
                self.targets[node] = [place]
        self.sources.update({node: self.targets[holder][0] for node, holder in self.holders.items()})
        self.laid = self.laying.lies(self.targets)

    def _collect_constants(self, calls: list[Call]) -> None:
        """The tables that kernels of their own brought along."""
        known = set(self.constants)
        for place in dict.fromkeys(a.place for c in calls for a in c.accesses):
            if place.space is Space.CONSTANT and place not in known:
                self.constants.append(place)

    def _number_slots(self) -> None:
        """Slot 0 is the arena, 1 the constants, then inputs, Variables, outputs."""
        for i, place in enumerate((*self.inputs, *self.variables.values(), *self.outputs)):
            place.slot = 2 + i
        offset = 0
        for place in self.constants:
            place.slot, place.offset = 1, offset
            offset += -(-place.nbytes // 64) * 64

    # Calls ------------------------------------------------------------------------------------------------------------

    def _calls(self, cluster: Cluster) -> list[Call]:
        where = cluster.members[-1].where
        if cluster.form is Form.MAP:
            targets, laid = self._targets_of(cluster), self._laid_of(cluster)
            return [through_scratch(NestBuilder(cluster, self.views, self.sources, targets, laid).build(where))]
        if cluster.form is Form.CONTRACTION:
            return self._contraction(cluster, where)
        node = cluster.members[0]
        builder = BUILDERS.get(type(tables.lower.get(node.op))) if node.op is not None else None
        if builder is None:
            raise MissingRuleError(
                f"[{node.op.name if node.op else '?'}] has no rule in table 'lower' that a program can run "
                f"(docs/tables.md, section 'lower'); it was applied at {node.where}."
            )
        operands = Operands(self.views, self.sources)
        first, *more = self.targets[node]
        if isinstance(node, Result) and len(node.node.avals) > 1:
            return self._several(cluster, builder, operands)
        if node in self.laying.pieces and isinstance(tables.lower.get(node.op) if node.op else None, Padding):
            calls = border.border(node, operands.lie(node.inputs[1]), first)
        elif node in self.laying.pieces:
            calls = alone.concatenation(node, operands.lie, first, self.laying.pieces[node])
        else:
            calls = builder(node, operands, [first])
        return operands.before + calls + [self._copy(node, place) for place in more]

    def _several(self, cluster: Cluster, builder: Builder, operands: Operands) -> list[Call]:
        """An op of several results, as a kernel of its own; what is not needed of them is stored and forgotten."""
        needed = {x.index: x for x in cluster.members if isinstance(x, Result)}
        places: list[Place] = []
        copies: list[Call] = []
        for i, aval in enumerate(next(iter(needed.values())).node.avals):
            if i in needed:
                first, *more = self.targets[needed[i]]
                copies += [self._copy(needed[i], place) for place in more]
            else:
                first = Place(Space.ARENA, aval.dtype, aval.size, "unused")
            places.append(first)
        calls = builder(cluster.members[0], operands, places)
        return operands.before + calls + copies

    def _with_bodies(self, cluster: Cluster) -> Piece:
        """A node that runs graphs of its own."""
        results: Results = {
            x.index: self.targets[x] for x in cluster.members if isinstance(x, Result) and x in self.targets
        }
        return control.lower(cluster.members[0], Operands(self.views, self.sources), results, self._plan_body)

    def _plan_body(self, graph: Graph, strides: dict[Value, Shape]) -> BodyPlan:
        """The calls of a graph that a node of this one runs."""
        planner = Planner(graph, self.threads, strides, fuse=self._fuse)
        planner.codes_taken = self.codes_taken + len(self.bounded) + len(self.bounded_inside)
        planner.bounded = [replace(b, code=b.code + planner.codes_taken) for b in planner.bounded]
        piece = planner.build()
        self.bounded_inside += planner.bounded + planner.bounded_inside
        return BodyPlan(piece, planner.inputs, planner.variables, planner.outputs, planner.output_of)

    def _checks(self, cluster: Cluster | None) -> list[Call]:
        """The checks of indices that ``cluster`` has made; without one, of those that are there from the start."""
        return [
            bounds.check(b, *contraction.operand(self.views, self.sources, b.indices))
            for b in self.bounded
            if self.clustering.home.get(self.views[b.indices].base) is cluster
        ]

    def _targets_of(self, cluster: Cluster) -> dict[Value, list[Place]]:
        return {n: self.targets[n] for n in cluster.members if n in self.targets}

    def _laid_of(self, cluster: Cluster) -> dict[Value, list[alone.Lie]]:
        return {n: self.laid[n] for n in cluster.members if n in self.laid}

    def _contraction(self, cluster: Cluster, where: str) -> list[Call]:
        product = cluster.product
        if is_batched(product):
            calls = contraction.batched_products(product, self.views, self.sources, self.targets[product][0])
            return calls + [self._copy(product, place) for place in self.targets[product][1:]]
        operands = Operands(self.views, self.sources)
        if isinstance(tables.lower.get(product.op) if product.op is not None else None, Winograd):
            call = winograd.winograd(cluster, operands, self._targets_of(cluster), self._laid_of(cluster))
            return [*operands.before, call]
        result = self._product_place(cluster)
        builder = contraction.EpilogueBuilder(
            cluster,
            self.views,
            self.sources,
            self._targets_of(cluster),
            self._laid_of(cluster),
            operands.dense,
            self.offsets,
        )
        call = builder.build_product(result, where)
        return [*operands.before, call]

    def _product_place(self, cluster: Cluster) -> Place | None:
        """Where the product accumulates: its own place, that of an epilogue value that overwrites it, or a tile (None)
        where k is short enough to finish a block in one go, or a new one."""
        product = cluster.product
        candidates = [p for n in cluster.members for p in self.targets.get(n, ()) if p.dtype is product.aval.dtype]
        for place in candidates:
            if place.space in (Space.ARENA, Space.OUTPUT):
                return place
        if extents(product).k <= TILE_K:
            return None
        return Place(Space.ARENA, product.aval.dtype, product.aval.size, "product")


def _may_fail(node: Value) -> bool:
    """Whether a node calls the host, or runs graphs that do or that check indices."""
    if node.op is not None and isinstance(tables.lower.get(node.op), HostCall):
        return True
    return control.has_bodies(node) and any(
        bounds.find(graph) or any(map(_may_fail, graph.values)) for graph in control.bodies(node)
    )
