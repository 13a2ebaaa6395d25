"""Elementwise ops and reductions: a fused cluster of them becomes one kernel in loop IR.

The outer loops are over the axes that are not reduced; threads share the outermost of them. The inner loops are over
the reduced axes. The domain's last axis is the vector axis. If it is reduced (row form), the kernel makes several
passes along the row, one for each level of dependent reductions. Otherwise (column form) each lane reduces by itself.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from runnel.compiler.kernels.members import Members, NestAddressing
from runnel.compiler.lowering.parts import Parts, named
from runnel.compiler.lowering.protocol import IndexBound, Lowering, Request, chain_is_costly, is_reduction, lowering_of
from runnel.compiler.lowering.transposes import through_scratch
from runnel.compiler.plan_ir.calls import Allocation, Call, MemorySpace
from runnel.compiler.plan_ir.clusters import Cluster, Form, essential_strides, reduces_last
from runnel.compiler.plan_ir.plan import Section
from runnel.compiler.plan_ir.strides import Strided
from runnel.core import tables
from runnel.core.avals import Shape
from runnel.core.dtypes import int64
from runnel.graph.node import Constant, Value
from runnel.loops import scalar
from runnel.loops.ir import CHAIN, LANES, Acc, Apply, Const, Expr, For, Let, RangeBound, Ref, Stmt, Update, Var
from runnel.loops.uses import parts
from runnel.ops.elementwise.comparison import where_p


def leaves_empty_rows(
    cluster: Cluster,
    views: dict[Value, Strided],
    sources: dict[Value, Allocation],
    targets: dict[Value, list[Allocation]],
) -> bool:
    """Return whether rows of ``cluster`` remain unchanged if none of its sums over rows has an element there."""
    known: dict[Value, Any] = {}  # values that are constant in such a row
    same: dict[Value, Value] = {}  # members that equal another node there
    for node in cluster.members:
        values = [_value(views[x].base, x, known) for x in node.inputs]
        if node.op is where_p and values[0] is not None and not values[0].any():
            base = views[node.inputs[2]].base
            same[node] = same.get(base, base)
        else:
            value = lowering_of(node).value_in_empty_row(node, values)
            if value is not None:
                known[node] = value
    return all(
        allocation.space is MemorySpace.VARIABLE and node in same and sources.get(same[node]) is allocation
        for node in cluster.members
        for allocation in targets.get(node, ())
    )


def _value(base: Value, read: Value, known: dict[Value, Any]) -> Any:
    """Return the value that is read there, as an array of one element; None if unknown."""
    value = known.get(base)
    if value is None and base.is_constant and base.aval.size == 1:
        value = base.value
    return None if value is None else np.reshape(value, (1,) * read.aval.ndim)


def unless_empty(lengths: Sequence[Expr], block: Sequence[Stmt]) -> list[Stmt]:
    """Run ``block`` unless all ``lengths`` are 0."""
    total = functools.reduce(lambda x, y: Apply(scalar.add, (x, y), int64), lengths)
    once = Apply(scalar.minimum, (total, Const(1, int64)), int64)
    return [Let("named", once), For(Var("turn"), 0, Ref("named", int64), "seq", tuple(block))]


class Passes:
    """``level`` of a member: the length of the longest chain of reductions that it depends on, which is the first pass
    that can compute it. ``spilled``: costly full-rank members that a later pass needs too, with the memory that holds
    them in between: the memory of a value stored later, if there is one."""

    def __init__(self, cluster: Cluster, views: dict[Value, Strided], targets: dict[Value, list[Allocation]]) -> None:
        self.cluster = cluster
        self.views = views
        self.inside = set(cluster.members)
        self.level: dict[Value, int] = {}
        for node in cluster.members:
            below = max((self.level[b] for b in self._producers(node)), default=0)
            self.level[node] = below + (1 if is_reduction(node) else 0)
        self.last = max(self.level.values(), default=0)
        self.spilled: dict[Value, Allocation] = {}
        if cluster.reduced and self.last > 0:
            self._keep(targets)

    def reductions(self, level: int) -> list[Value]:
        """Return the reductions of pass ``level``."""
        return [n for n in self.cluster.members if is_reduction(n) and self.level[n] == level + 1]

    def full(self, level: int, among: dict[Value, list[Allocation]]) -> list[Value]:
        """Return the full-rank members of ``among`` that pass ``level`` is the first to compute."""
        members = [n for n in self.cluster.members if n in among and n not in self.cluster.reduced_members]
        return [n for n in members if self.level[n] == level]

    def _producers(self, node: Value) -> list[Value]:
        return [b for b in (self.views[x].base for x in node.inputs) if b in self.inside]

    def _keep(self, targets: dict[Value, list[Allocation]]) -> None:
        borrowed: set[Allocation] = set()
        last_use = self._last_uses(targets)
        before: set[Value] = set()  # the values of earlier passes
        for k in range(1, self.last + 1):
            before |= self._computed(k - 1, targets)
            for node in self._needed(self._roots(k, targets), targets, before):
                if node in before and chain_is_costly(node, self.inside, self.views):
                    allocation = self._memory(node, last_use[node], targets, borrowed)
                    borrowed.add(allocation)
                    self.spilled[node] = allocation

    def _roots(self, level: int, targets: dict[Value, list[Allocation]]) -> list[Value]:
        """Return the values that pass ``level`` must compute at each point: operands of its reductions and stored
        values."""
        return [b for n in self.reductions(level) for b in self._producers(n)] + self.full(level, targets)

    def _last_uses(self, targets: dict[Value, list[Allocation]]) -> dict[Value, int]:
        """Return the last pass that may read each full-rank member if nothing else is spilled."""
        return {node: k for k in range(self.last + 1) for node in self._computed(k, targets)}

    def _computed(self, level: int, targets: dict[Value, list[Allocation]]) -> set[Value]:
        """Return the full-rank members that pass ``level`` would compute if nothing were spilled."""
        computed: set[Value] = set()
        stack = self._roots(level, targets)
        while stack:
            node = stack.pop()
            if node not in computed and node not in self.cluster.reduced_members:
                computed.add(node)
                stack += self._producers(node)
        return computed

    def _needed(self, roots: list[Value], targets: dict[Value, list[Allocation]], before: set[Value]) -> list[Value]:
        """Return the full-rank members that ``roots`` need and that are neither stored nor spilled already, outermost
        first."""
        needed: dict[Value, None] = {}
        stack = [n for n in roots if n not in self.cluster.reduced_members]
        while stack:
            node = stack.pop(0)
            if node in needed or node in self.spilled:
                continue
            if node in targets and node not in roots:
                continue
            needed[node] = None
            if node in roots or node not in before or not chain_is_costly(node, self.inside, self.views):
                stack += [b for b in self._producers(node) if b not in self.cluster.reduced_members]
        return list(needed)

    def _memory(
        self, node: Value, last_use: int, targets: dict[Value, list[Allocation]], borrowed: set[Allocation]
    ) -> Allocation:
        """Return the memory of a value that is stored after the last read of ``node``, or new memory."""
        for other in self.cluster.members:
            later = (
                other in targets and other not in self.cluster.reduced_members and self.level[other] > self.level[node]
            )
            if later and self.level[other] >= last_use and other.aval.dtype is node.aval.dtype:
                allocation = targets[other][0]
                if allocation.space in (MemorySpace.ARENA, MemorySpace.OUTPUT) and allocation not in borrowed:
                    return allocation
        return Allocation(MemorySpace.ARENA, node.aval.dtype, node.aval.size, "row")


def build(request: Request) -> Call:
    """Return the call of a cluster of form NEST."""
    return through_scratch(_Nest(request).build(request.cluster.members[-1].where))


class _Nest:
    """The kernel of one cluster."""

    def __init__(self, request: Request) -> None:
        self.cluster, self.views, self.targets = request.cluster, request.operands.views, request.targets
        self.passes = Passes(self.cluster, self.views, self.targets)
        self.loops = NestAddressing(Parts(), self.cluster.domain, self.cluster.reduced)
        self.members = Members(request, self.loops, self.passes.spilled)

    def build(self, doc: str) -> Call:
        """Return the kernel and its arguments."""
        loops, members, parts = self.loops, self.members, self.loops.parts
        if loops.has_row_form:
            block = self._row_form()
        elif len(loops.unreduced) < len(loops.axes):
            block = [self._vector_loop(self._column_form())]
        else:
            block = [*members.needed(members.stored), *members.all_stores()]
            if loops.column is not None:
                block = [self._vector_loop(block)]
        rows = loops.rows
        for axis in reversed(rows[1:]):
            block = [For(loops.vars[axis], 0, loops.extent(axis), "seq", tuple(block))]
        if members.row_lengths and leaves_empty_rows(self.cluster, self.views, members.sources, self.targets):
            block = unless_empty(members.row_lengths, block)
        block = [*members.before_rows, *block]
        outer = loops.vars[rows[0]] if rows else Var("once")
        body = (For(outer, RangeBound.I0, RangeBound.I1, "seq", tuple(block)),)
        prefix = "reduce" if self.cluster.reduced else "map"
        return Call(
            named(prefix, tuple(parts.buffers), tuple(parts.params), body, doc),
            parts.accesses,
            parts.values,
            rows=loops.axes[rows[0]][0] if rows else 1,
            columns=1 if loops.column is None else loops.axes[loops.column][0],
            split=("both" if loops.column is not None else "rows") if rows else ("columns" if loops.unreduced else ""),
            flops=members.flops,
            nodes=list(self.cluster.members),
        )

    def _vector_loop(self, block: list[Stmt]) -> Stmt:
        return For(self.loops.vars[-1], RangeBound.J0, RangeBound.J1, "vec", tuple(block))

    def _reduced_loops(self, block: list[Stmt]) -> Stmt:
        """Wrap ``block`` in the loops over the reduced axes; the last one is a vector loop in the row form."""
        loops = self.loops
        for axis in reversed([a for a, (_, reduced) in enumerate(loops.axes) if reduced]):
            kind = "vec" if axis == len(loops.axes) - 1 else "seq"
            block = [For(loops.vars[axis], 0, loops.extent(axis), kind, tuple(block))]
        return block[0]

    def _column_form(self) -> list[Stmt]:
        """Return accumulators per lane, the reduced loops, then the values computed from the results."""
        members = self.members
        accumulators = {n: f"a{k}" for k, n in enumerate(n for n in self.cluster.members if is_reduction(n))}
        sources = [self.views[n.inputs[0]].base for n in accumulators]
        statements = self._folded(accumulators, [b for b in sources if b in members.inside], [], {})
        members.names.update(accumulators)
        reduced_members = [n for n in self.cluster.members if n in self.cluster.reduced_members]
        statements += [members.let(n) for n in reduced_members if n not in accumulators]
        return statements + members.stores(reduced_members, self.targets)

    def _row_form(self) -> list[Stmt]:
        """Return a pass along the row for each level of reductions, with the row's reduced values between them."""
        passes, members, cluster = self.passes, self.members, self.cluster
        reduced_members = [n for n in cluster.members if n in cluster.reduced_members]
        statements: list[Stmt] = [members.let(n) for n in reduced_members if passes.level[n] == 0]
        row_names = dict(members.names)
        memory = {**{n: [allocation] for n, allocation in passes.spilled.items()}, **self.targets}
        number = 0
        for k in range(passes.last + 1):
            reductions = passes.reductions(k)
            stores = passes.full(k, memory)
            if not reductions and not stores:
                continue
            number += 1
            members.names = dict(row_names)
            accumulators = {node: f"a{number}_{i}" for i, node in enumerate(reductions)}
            sources = [self.views[n.inputs[0]].base for n in reductions]
            inside = [b for b in sources if b in members.inside and b not in cluster.reduced_members]
            statements += self._folded(accumulators, inside + stores, stores, memory)
            members.names = {**row_names, **accumulators}
            for node in stores:  # their memory is overwritten
                members.reload = {n: r for n, r in members.reload.items() if r.allocation not in memory[node]}
            for node in stores:
                if node in passes.spilled or chain_is_costly(node, members.inside, self.views):
                    members.reload[node] = members.reaches[memory[node][0], 0, members.home_strides(node)]
            here = [n for n in reduced_members if passes.level[n] == k + 1 and n not in accumulators]
            statements += [members.let(n) for n in here]
            row_names = dict(members.names)
        return statements + members.stores(reduced_members, self.targets)

    def _folded(
        self,
        accumulators: dict[Value, str],
        needed: list[Value],
        stores: list[Value],
        memory: dict[Value, list[Allocation]],
    ) -> list[Stmt]:
        """Return the reductions of one pass, which also stores the values ``stores`` to ``memory``."""
        members = self.members
        statements: list[Stmt] = [self._accumulator(name, node) for node, name in accumulators.items()]
        inner = members.needed(needed)
        for node, name in accumulators.items():
            inner.append(Update(name, members.operand(node, node.inputs[0])))
            members.count_flops(node)
        inner += members.stores(stores, memory)
        return [*statements, self._reduced_loops(inner)]

    def _accumulator(self, name: str, node: Value) -> Acc:
        """Return the accumulator of a reduction; short where its loops are."""
        updates = 1
        axes = self.loops.axes
        for axis, (extent, reduced) in enumerate(axes):
            if reduced:
                updates *= -(-extent // LANES) if axis == len(axes) - 1 else extent
        order = "short" if updates <= CHAIN else "blocks"
        return Acc(name, lowering_of(node).reduction or "", node.aval.dtype, order)


SHORTEST: Final = 16  # adjacent elements that are worth storing into a subview
_OF_EQUAL_VALUES: Final = ("any", "all", "max", "min")  # idempotent: the reduction of equal values is that value
_ROUNDED_ONCE: Final = {
    scalar.maximum, scalar.minimum,
    scalar.add, scalar.sub, scalar.mul, scalar.div, scalar.sqrt, scalar.neg, scalar.abs_, scalar.sign,
    scalar.floor, scalar.ceil, scalar.trunc, scalar.rint, scalar.cast, scalar.bitcast, scalar.select,
    scalar.lt, scalar.le, scalar.gt, scalar.ge, scalar.eq, scalar.ne, scalar.isnan, scalar.isinf,
}  # fmt: skip


class NestLowering(Lowering):
    """The base of all members of nests."""

    recompute_rank: ClassVar[int] = 0

    def form(self, node: Value, views: dict[Value, Strided]) -> Form:
        return Form.NEST

    def build(self, request: Request) -> Section:
        section = Section()
        section.add([build(request)])
        return section

    def may_overwrite(self, cluster: Cluster, result: Value, views: dict[Value, Strided]) -> bool:
        """With reductions, ``result`` must be stored after all reads: in the last pass along a row."""
        if not cluster.reduced or result in cluster.reduced_members:
            return True
        passes = Passes(cluster, views, {})
        return reduces_last(cluster.domain, cluster.reduced) and passes.level[result] == passes.last

    def reads_by_strides(self, node: Value, x: Value, view: Strided) -> bool:
        return True

    def takes_subview(self, node: Value, shape: Shape, strides: Shape, size: int) -> bool:
        """Return whether enough elements are adjacent."""
        run = 1
        for n, step in reversed([*zip((n for n in shape if n != 1), essential_strides(shape, strides), strict=True)]):
            if step != run:
                break
            run *= n
        return run >= SHORTEST


class ElementwiseLowering(NestLowering):
    """Each element is an expression of the operands' elements."""

    is_expression: ClassVar[bool] = True
    merges_rows: ClassVar[bool] = True

    def __init__(self, rule: Any) -> None:
        super().__init__(rule)
        self.has_literals = rule.literal

    def expression(self, node: Value, operands: list[Expr], position: Expr | None) -> Expr:
        value: Expr = self.rule.expr((*(x.aval for x in node.inputs), node.aval), *operands, **node.attrs)
        return value

    def value_in_empty_row(self, node: Value, values: list[Any]) -> Any:
        return _of_single_elements(node, values)

    def agrees_with_reference(self, node: Value) -> bool:
        """True for integers and bools, and for single correctly rounded operations of IEEE 754."""
        value = self.expression(node, [Ref(f"x{i}", x.aval.dtype) for i, x in enumerate(node.inputs)], None)
        if isinstance(value, Apply) and all(isinstance(arg, Ref) for arg in value.args):
            return value.op in _ROUNDED_ONCE or not _has_floats(node)
        return not any(part.dtype.is_float for part in parts(value))


class BoundsCheckedLowering(ElementwiseLowering):
    """Elementwise, with a bounds check of indices."""

    merges_rows: ClassVar[bool] = False
    stays_in_step: ClassVar[bool] = True

    def index_bound(self, node: Value) -> IndexBound:
        return node.inputs[0], node.attrs["extent"], node.attrs["allowed"]

    def agrees_with_reference(self, node: Value) -> bool:
        """True where the indices are known to be in the range; else the check remains in the program."""
        indices, extent, allowed = self.index_bound(node)
        if not isinstance(indices, Constant):
            return False
        known = np.asarray(indices.value)
        return bool((((known >= 0) & (known < extent)) | (known == allowed)).all())


class PositionLowering(NestLowering):
    """Elementwise, with a number that depends on the position (iota-like)."""

    is_expression: ClassVar[bool] = True
    merges_rows: ClassVar[bool] = True

    def position_steps(self, node: Value) -> Shape:
        steps: Shape = self.rule.steps(node.aval, **node.attrs)
        return steps

    def expression(self, node: Value, operands: list[Expr], position: Expr | None) -> Expr:
        value: Expr = self.rule.expr((*(x.aval for x in node.inputs), node.aval), position, *operands, **node.attrs)
        return value

    def agrees_with_reference(self, node: Value) -> bool:
        return not _has_floats(node)


class ReductionLowering(NestLowering):
    """Reduces the elements along some axes."""

    merges_rows: ClassVar[bool] = True
    recompute_rank: ClassVar[int] = 1

    def __init__(self, rule: Any) -> None:
        super().__init__(rule)
        self.reduction = rule.op

    def point_shape(self, node: Value) -> Shape:
        return node.inputs[0].aval.shape

    def reduced_axes(self, node: Value) -> tuple[int, ...]:
        shape, axes = node.inputs[0].aval.shape, node.attrs["axes"]
        essential = [axis for axis, n in enumerate(shape) if n != 1]
        return tuple(position for position, axis in enumerate(essential) if axis in axes)

    def value_in_empty_row(self, node: Value, values: list[Any]) -> Any:
        return _of_single_elements(node, values) if self.reduction in _OF_EQUAL_VALUES else None

    def agrees_with_reference(self, node: Value) -> bool:
        return not _has_floats(node)


def _of_single_elements(node: Value, values: list[Any]) -> Any:
    """Return what table ``reference`` computes of arrays of one element; None if one is unknown."""
    if node.op is None or any(v is None for v in values):
        return None
    with np.errstate(all="ignore"):
        return np.asarray(tables.reference[node.op](*values, **node.attrs))


def _has_floats(node: Value) -> bool:
    return node.aval.dtype.is_float or any(x.aval.dtype.is_float for x in node.inputs)
