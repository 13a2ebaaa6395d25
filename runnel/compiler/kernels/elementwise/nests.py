"""A fused cluster of pointwise ops and reductions as a loop-IR kernel.

The loops: first the kept axes (the outermost is split among threads), then the reduced ones. The domain's last axis
is the vector axis. When it is reduced (row form) the kernel makes several passes along the row, one for each level of
reductions that rest on one another; when it is kept, each lane reduces by itself (column form).
Adjacent axes are merged wherever every access allows, except into a reduced vector axis, whose length fixes the
reduction's tree.
"""

from __future__ import annotations

from dataclasses import dataclass

from runnel.compiler.cost.costs import chain_is_costly, cost_of, inline_constant
from runnel.compiler.fusion.clusters import Cluster, aligned_strides, is_reduction, kept_strides, point_shape
from runnel.compiler.fusion.strided import Strided
from runnel.compiler.kernels import numbers
from runnel.compiler.kernels.copies.alone import Lie
from runnel.compiler.kernels.elementwise.rows import Passes
from runnel.compiler.kernels.elementwise.untouched import leaves_empty_rows
from runnel.compiler.kernels.indexing.buckets import Bucket, any_in
from runnel.compiler.kernels.naming import named
from runnel.compiler.kernels.places import Access, Call, Place, Space, hull
from runnel.core import tables
from runnel.core.avals import Shape, row_major
from runnel.core.dtypes import DType, int64
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.loops.ir import (
    CHAIN,
    LANES,
    Acc,
    Apply,
    Const,
    Expr,
    For,
    Index,
    Let,
    Load,
    Param,
    Position,
    RangeBound,
    Ref,
    Stmt,
    Store,
    Update,
    Var,
)
from runnel.loops.rules import BucketSums, IndexFunction, Pointwise, Reduction, Rule

POSITION = Place(Space.SCRATCH, int64, 0, "position")  # no memory: what index functions are given merges axes likewise


def rule_of(node: Value) -> Rule | None:
    return tables.lower.get(node.op) if node.op is not None else None


@dataclass(eq=False, slots=True)
class Reach:
    """An access of the cluster over its whole domain, before axes are merged."""

    place: Place
    offset: int
    strides: list[int]


class NestBuilder:
    """Builds the kernel of one cluster. ``sources`` maps base nodes outside the cluster to their places, ``targets``
    the members that must be stored to theirs (several, when a value is both an output and a Variable's update), and
    ``laid`` those that are pieces of larger values to where these lie."""

    def __init__(
        self,
        cluster: Cluster,
        views: dict[Value, Strided],
        sources: dict[Value, Place],
        targets: dict[Value, list[Place]],
        laid: dict[Value, list[Lie]] | None = None,
    ) -> None:
        self.cluster = cluster
        self.views = views
        self.sources = sources
        self.targets = targets
        self.laid = {} if laid is None else laid
        self.inside = set(cluster.members)
        self.reaches: dict[tuple[Place, int, tuple[int, ...]], Reach] = {}
        self.buffers: list[ir.Buffer] = []
        self.accesses: list[Access] = []
        self.params: list[Param] = []
        self.values: list[int] = []
        self.extents: dict[int, Param] = {}
        self.numbers: dict[tuple[int, DType], Expr] = {}
        self.positions: dict[int, Expr] = {}
        self.flops = 0.0
        self.named = 0  # values, so far
        self.row_passes = Passes(cluster, views, targets)
        self._collect()
        self._merge_axes()

    # Accesses and axes ------------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        for node in self.cluster.members:
            if isinstance(rule_of(node), BucketSums):
                self._bucket_reaches(node)
            for x in self._point_operands(node):
                view = self.views[x]
                if view.base not in self.inside and not inline_constant(view.base):
                    self._reach(self.sources[view.base], view.offset, self._operand_strides(node, x))
            if isinstance(rule_of(node), IndexFunction):
                self._reach(POSITION, 0, self._position_strides(node))
            for place in self.targets.get(node, ()):
                self._reach(place, 0, self._home_strides(node))
            for place, offset, strides in self.laid.get(node, ()):
                self._reach(place, offset, strides)
        for node, place in self.row_passes.kept_for_later.items():
            self._reach(place, 0, self._home_strides(node))

    def _point_operands(self, node: Value) -> tuple[Value, ...]:
        """The operands that ``node`` reads at the points of the domain."""
        return () if isinstance(rule_of(node), BucketSums) else node.inputs

    def _reach(self, place: Place, offset: int, strides: Shape) -> Reach:
        key = (place, offset, strides)
        if key not in self.reaches:
            self.reaches[key] = Reach(place, offset, list(strides))
        return self.reaches[key]

    def _operand_strides(self, node: Value, x: Value) -> Shape:
        """Strides of operand ``x`` over the cluster's domain."""
        steps = aligned_strides(x.aval.shape, self.views[x].strides, point_shape(node))
        if node in self.cluster.kept and not is_reduction(node):
            return self._spread(steps)
        return steps

    def _position_strides(self, node: Value) -> Shape:
        """What the number that an index function is given grows by along the axes of the domain."""
        rule: IndexFunction = tables.lower[node.op]  # type: ignore[index]
        shape = node.aval.shape
        steps = aligned_strides(shape, rule.steps(node.aval, **node.attrs), shape)
        return self._spread(steps) if node in self.cluster.kept else steps

    def _home_strides(self, node: Value) -> Shape:
        return kept_strides(self.cluster) if node in self.cluster.kept else row_major(self.cluster.domain)

    def _spread(self, steps: Shape) -> Shape:
        """Strides over the kept axes as strides over the whole domain."""
        result = [0] * len(self.cluster.domain)
        for axis, step in zip(self.cluster.kept_axes, steps, strict=True):
            result[axis] = step
        return tuple(result)

    def _merge_axes(self) -> None:
        """Decide the loop axes: lists of (extent, reduced)."""
        domain, reduced = self.cluster.domain, set(self.cluster.reduced)
        self.axes: list[tuple[int, bool]] = [(n, a in reduced) for a, n in enumerate(domain)]
        axis = len(self.axes) - 2
        while axis >= 0:
            (outer, outer_reduced), (inner, inner_reduced) = self.axes[axis], self.axes[axis + 1]
            into_tree = inner_reduced and axis + 1 == len(self.axes) - 1
            if (
                outer_reduced == inner_reduced
                and not into_tree
                and all(r.strides[axis] == r.strides[axis + 1] * inner for r in self.reaches.values())
            ):
                self.axes[axis : axis + 2] = [(outer * inner, outer_reduced)]
                for r in self.reaches.values():
                    del r.strides[axis]
            axis -= 1
        self.vars = [Var(f"x{a}") for a in range(len(self.axes))]

    # Buffers and params -----------------------------------------------------------------------------------------------

    def _param(self, value: int) -> Param:
        param = Param(f"p{len(self.params)}")
        self.params.append(param)
        self.values.append(value)
        return param

    def _extent(self, axis: int) -> Param:
        if axis not in self.extents:
            self.extents[axis] = self._param(self.axes[axis][0])
        return self.extents[axis]

    def _buffer(self, reach: Reach, *, writes: bool) -> tuple[str, Index]:
        """The buffer and index of an access, declared at first use."""
        found = self.declared.get(id(reach))
        if found is None:
            position = len(self.buffers)
            self.buffers.append(ir.Buffer(f"b{position}", reach.place.dtype, "out" if writes else "in"))
            self.accesses.append(self._access(reach, writes))
            terms: list[tuple[Var, ir.Stride]] = []
            for a, (var, step) in enumerate(zip(self.vars, reach.strides, strict=True)):
                if step != 0:
                    terms.append((var, 1 if a == len(self.axes) - 1 and step == 1 else self._param(step)))
            found = self.declared[id(reach)] = (position, Index(tuple(terms)))
        position, index = found
        if (writes and self.buffers[position].mode == "in") or (not writes and self.buffers[position].mode == "out"):
            self.buffers[position] = ir.Buffer(f"b{position}", reach.place.dtype, "inout")
            self.accesses[position].writes = True
        return f"b{position}", index

    def _access(self, reach: Reach, writes: bool) -> Access:
        row = self.row_axis
        column = self.column_axis
        axes = enumerate(zip(self.axes, reach.strides, strict=True))
        before, span = hull((extent, step) for a, ((extent, _), step) in axes if a not in (row, column))
        return Access(
            reach.place,
            writes,
            reach.offset,
            0 if row is None else reach.strides[row],
            0 if column is None else reach.strides[column],
            span,
            before=before,
        )

    # Values -----------------------------------------------------------------------------------------------------------

    def _operand(self, node: Value, x: Value) -> Expr:
        view = self.views[x]
        if view.base in self.inside:
            stored = self.reload.get(view.base)
            if stored is not None:
                name, index = self._buffer(stored, writes=False)
                return Load(name, index, view.base.aval.dtype)
            return Ref(self.names[view.base], view.base.aval.dtype)
        if inline_constant(view.base):
            return self._constant(view.base, isinstance(rule := rule_of(node), Pointwise) and rule.literal)
        reach = self.reaches[self.sources[view.base], view.offset, self._operand_strides(node, x)]
        name, index = self._buffer(reach, writes=False)
        return Load(name, index, view.base.aval.dtype)

    def _constant(self, node: Value, literal: bool) -> Expr:
        """A constant of one element."""
        if literal or numbers.is_common(node):
            return numbers.literal(node)
        key = (numbers.bits(node), node.aval.dtype)
        if key not in self.numbers:
            self.numbers[key] = numbers.from_bits(self._param(key[0]), node.aval.dtype)
        return self.numbers[key]

    def _value(self, node: Value) -> Expr:
        """What a member (not a reduction) computes at a point."""
        rule = rule_of(node)
        operands = [self._operand(node, x) for x in node.inputs]
        avals = (*(x.aval for x in node.inputs), node.aval)
        if isinstance(rule, Pointwise):
            value: Expr = rule.expr(avals, *operands, **node.attrs)
            return value
        if isinstance(rule, IndexFunction):
            value = rule.expr(avals, self._position(node), *operands, **node.attrs)
            return value
        return operands[0]  # a copy: a view that strides cannot express, or a reduction over nothing

    def _position(self, node: Value) -> Expr:
        """The number that an index function is given: a sum over the loops."""
        reach = self.reaches[POSITION, 0, self._position_strides(node)]
        found = self.positions.get(id(reach))
        if found is None:
            for var, step in zip(self.vars, reach.strides, strict=True):
                if step != 0:
                    here: Expr = Position(var, int64)
                    term = here if step == 1 else Apply(scalar.mul, (here, self._param(step)), int64)
                    found = term if found is None else Apply(scalar.add, (found, term), int64)
            found = self.positions[id(reach)] = found or Const(0, int64)
        return found

    def _bucket_reaches(self, node: Value) -> tuple[Reach, Reach]:
        """Which axis is that of the rows, and where the columns of the updates lie."""
        steps = self.views[node.inputs[2]]
        columns = aligned_strides(node.aval.shape, (0, *steps.strides[1:]), node.aval.shape)
        rows = self._reach(POSITION, 0, (1, *[0] * (len(columns) - 1)))
        return rows, self._reach(self.sources[steps.base], steps.offset, columns)

    def _bucket_sum(self, node: Value) -> list[Stmt]:
        """The sum of a row's bucket."""
        updates = self.views[node.inputs[2]]
        columns = self._bucket_reaches(node)[1]
        index = self._buffer(columns, writes=False)[1]
        if node not in self.buckets:
            self.buckets[node] = self._bucket(node), self._param(updates.strides[0])
        bucket, step = self.buckets[node]
        name = self._name(node)
        self.flops += node.inputs[2].aval.size
        return bucket.sum(name, index, step)

    def _bucket(self, node: Value) -> Bucket:
        """Look up where a row's bucket begins, before the loops over columns."""
        table = self.views[node.inputs[0]]
        rows, columns = self._bucket_reaches(node)
        name = f"b{self.declared[id(columns)][0]}"
        place = self.accesses[self.declared[id(columns)][0]]
        place.row_step = place.column_step = None
        held = f"b{len(self.buffers)}"
        self.buffers.append(ir.Buffer(held, int64, "in"))
        self.accesses.append(Access(self.sources[table.base], False, table.offset, None, None, 0))
        count = node.inputs[2].aval.shape[0]
        params = (self._param(n) for n in (count, max(count - 1, 0), node.aval.shape[0] + 2))
        bucket = Bucket(f"s{len(self.buckets)}", node.aval.dtype, held, name, *params)
        self.prelude += bucket.begin(self.vars[rows.strides.index(1)])
        return bucket

    def _name(self, node: Value) -> str:
        """A new name for ``node``, which may be computed in several passes: each time it is another variable."""
        name = self.names[node] = f"v{self.named}"
        self.named += 1
        return name

    def _emit_needed(self, wanted: list[Value]) -> list[Stmt]:
        """Lets of the full members that ``wanted`` need and that are not bound in this pass yet, in order."""
        needed: set[Value] = set()
        stack = list(wanted)
        while stack:
            node = stack.pop()
            if node in needed or node in self.names or node in self.reload:
                continue
            needed.add(node)
            stack.extend(b for b in (self.views[x].base for x in node.inputs) if b in self.inside)
        return [s for node in self.cluster.members if node in needed for s in self._statements(node)]

    def _statements(self, node: Value) -> list[Stmt]:
        """What computes a member at a point."""
        return self._bucket_sum(node) if isinstance(rule_of(node), BucketSums) else [self._let(node)]

    def _let(self, node: Value) -> Let:
        value = self._value(node)
        self._count_flops(node)
        return Let(self._name(node), value)

    def _count_flops(self, node: Value) -> None:
        shape = node.inputs[0].aval if is_reduction(node) else node.aval
        self.flops += shape.size * cost_of(node)

    def _stores(self, nodes: list[Value], targets: dict[Value, list[Place]]) -> list[Stmt]:
        statements: list[Stmt] = []
        for node in nodes:
            for place in targets.get(node, ()):
                name, index = self._buffer(self.reaches[place, 0, self._home_strides(node)], writes=True)
                statements.append(Store(name, index, Ref(self.names[node], node.aval.dtype)))
        return statements

    def _laid_stores(self) -> list[Stmt]:
        statements: list[Stmt] = []
        for node in self.cluster.members:
            for lie in self.laid.get(node, ()):
                name, index = self._buffer(self.reaches[lie], writes=True)
                statements.append(Store(name, index, Ref(self.names[node], node.aval.dtype)))
        return statements

    # Forms ------------------------------------------------------------------------------------------------------------

    def build(self, doc: str = "") -> Call:
        """The kernel and its arguments."""
        self.declared: dict[int, tuple[int, Index]] = {}
        self.names: dict[Value, str] = {}
        self.reload: dict[Value, Reach] = {}
        self.passes = 0
        self.prelude: list[Stmt] = []
        self.buckets: dict[Value, tuple[Bucket, Param]] = {}
        kept = [a for a, (_, reduced) in enumerate(self.axes) if not reduced]
        row_form = bool(self.axes) and self.axes[-1][1]
        self.column_axis = None if row_form or not kept else kept[-1]
        rows = kept if row_form else kept[:-1]
        self.row_axis = rows[0] if rows else None
        if row_form:
            block = self._row_form()
        elif len(kept) < len(self.axes):
            block = [self._vector_loop(self._column_form())]
        else:
            block = self._emit_needed([n for n in self.cluster.members if n in self.targets or n in self.laid])
            block += self._stores(self.cluster.members, self.targets)
            block += self._laid_stores()
            if self.column_axis is not None:
                block = [self._vector_loop(block)]
        for axis in reversed(rows[1:]):
            block = [For(self.vars[axis], 0, self._extent(axis), "seq", tuple(block))]
        if self.buckets and leaves_empty_rows(self.cluster, self.views, self.sources, self.targets):
            block = any_in([bucket for bucket, _ in self.buckets.values()], block)
        block = [*self.prelude, *block]
        outer = self.vars[rows[0]] if rows else Var("once")
        body = (For(outer, RangeBound.I0, RangeBound.I1, "seq", tuple(block)),)
        kernel = named(self._prefix(), tuple(self.buffers), tuple(self.params), body, doc)
        return Call(
            kernel,
            self.accesses,
            self.values,
            rows=self.axes[rows[0]][0] if rows else 1,
            columns=1 if self.column_axis is None else self.axes[self.column_axis][0],
            split=("both" if self.column_axis is not None else "rows") if rows else ("columns" if kept else ""),
            flops=self.flops,
            nodes=list(self.cluster.members),
        )

    def _prefix(self) -> str:
        return "reduce" if self.cluster.reduced else "map"

    def _vector_loop(self, block: list[Stmt]) -> Stmt:
        return For(self.vars[-1], RangeBound.J0, RangeBound.J1, "vec", tuple(block))

    def _reduced_loops(self, block: list[Stmt]) -> Stmt:
        """The loops over the reduced axes; the last one is a vector loop in the row form."""
        reduced = [a for a, (_, r) in enumerate(self.axes) if r]
        for axis in reversed(reduced):
            kind = "vec" if axis == len(self.axes) - 1 else "seq"
            block = [For(self.vars[axis], 0, self._extent(axis), kind, tuple(block))]
        return block[0]

    def _column_form(self) -> list[Stmt]:
        """Accumulators per lane, the reduced loops, then what is computed from the results."""
        reductions = [n for n in self.cluster.members if is_reduction(n)]
        statements: list[Stmt] = []
        accumulators = {node: f"a{k}" for k, node in enumerate(reductions)}
        for node, name in accumulators.items():
            statements.append(self._accumulator(name, node))
        sources = [self.views[n.inputs[0]].base for n in reductions]
        inner = self._emit_needed([b for b in sources if b in self.inside])
        for node, name in accumulators.items():
            inner.append(Update(name, self._operand(node, node.inputs[0])))
            self._count_flops(node)
        statements.append(self._reduced_loops(inner))
        for node, name in accumulators.items():
            self.names[node] = name
        kept = [n for n in self.cluster.members if n in self.cluster.kept and n not in accumulators]
        statements += [self._let(n) for n in kept]
        return statements + self._stores([n for n in self.cluster.members if n in self.cluster.kept], self.targets)

    def _row_form(self) -> list[Stmt]:
        """One pass along the row for each level of reductions, with the row's own values between them."""
        passes = self.row_passes
        members = self.cluster.members
        statements: list[Stmt] = [self._let(n) for n in members if n in self.cluster.kept and passes.level[n] == 0]
        row_names = dict(self.names)
        held = {**{n: [place] for n, place in passes.kept_for_later.items()}, **self.targets}
        for k in range(passes.last + 1):
            reductions = passes.reductions(k)
            stores = passes.full(k, held)
            if not reductions and not stores:
                continue
            self.passes += 1
            self.names = dict(row_names)
            accumulators = {node: f"a{self.passes}_{i}" for i, node in enumerate(reductions)}
            for node, name in accumulators.items():
                statements.append(self._accumulator(name, node))
            sources = [self.views[n.inputs[0]].base for n in reductions]
            inner = self._emit_needed([b for b in sources if b in self.inside and b not in self.cluster.kept] + stores)
            for node, name in accumulators.items():
                inner.append(Update(name, self._operand(node, node.inputs[0])))
                self._count_flops(node)
            inner += self._stores(stores, held)
            statements.append(self._reduced_loops(inner))
            self.names = {**row_names, **accumulators}
            for node in stores:  # what lay there until now is there no more
                self.reload = {n: r for n, r in self.reload.items() if r.place not in held[node]}
            for node in stores:
                if node in passes.kept_for_later or chain_is_costly(node, self.inside, self.views):
                    self.reload[node] = self.reaches[held[node][0], 0, self._home_strides(node)]
            kept = [n for n in members if n in self.cluster.kept and passes.level[n] == k + 1 and n not in accumulators]
            statements += [self._let(n) for n in kept]
            row_names = dict(self.names)
        return statements + self._stores([n for n in members if n in self.cluster.kept], self.targets)

    def _accumulator(self, name: str, node: Value) -> Acc:
        """What a reduction adds up in; short where its loops are."""
        rule: Reduction = tables.lower[node.op]  # type: ignore[index]
        updates = 1
        for axis, (extent, reduced) in enumerate(self.axes):
            if reduced:
                updates *= -(-extent // LANES) if axis == len(self.axes) - 1 else extent
        return Acc(name, rule.op, node.aval.dtype, updates <= CHAIN)
