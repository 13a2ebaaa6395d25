"""A fused cluster of elementwise ops and reductions as a loop-IR kernel.

The loops: first the axes that are not reduced (the outermost is partitioned among threads), then the reduced ones. The
domain's last axis is the vector axis. When it is reduced (row form) the kernel makes several passes along the row, one
for each level of dependent reductions; otherwise each lane reduces by itself (column form).
"""

from __future__ import annotations

from runnel.compiler.cost.costs import chain_is_costly
from runnel.compiler.kernels.allocations import Allocation, Call
from runnel.compiler.kernels.elementwise.addressing import NestAddressing
from runnel.compiler.kernels.elementwise.empty_rows import leaves_empty_rows, unless_empty
from runnel.compiler.kernels.elementwise.members import Members
from runnel.compiler.kernels.elementwise.rows import Passes
from runnel.compiler.kernels.elementwise.tiled_transpose import through_scratch
from runnel.compiler.kernels.lowering import Request, is_reduction, lowering_of
from runnel.compiler.kernels.naming import named
from runnel.compiler.kernels.parts import Parts
from runnel.graph.node import Value
from runnel.loops.ir import CHAIN, LANES, Acc, For, RangeBound, Stmt, Update, Var


def build(request: Request) -> Call:
    """The call of a cluster of form NEST."""
    return through_scratch(_Nest(request).build(request.cluster.members[-1].where))


class _Nest:
    """The kernel of one cluster."""

    def __init__(self, request: Request) -> None:
        self.cluster, self.views, self.targets = request.cluster, request.operands.views, request.targets
        self.passes = Passes(self.cluster, self.views, self.targets)
        self.loops = NestAddressing(Parts(), self.cluster.domain, self.cluster.reduced)
        self.members = Members(request, self.loops, self.passes.spilled)

    def build(self, doc: str) -> Call:
        """The kernel and its arguments."""
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
        """The loops over the reduced axes; the last one is a vector loop in the row form."""
        loops = self.loops
        for axis in reversed([a for a, (_, reduced) in enumerate(loops.axes) if reduced]):
            kind = "vec" if axis == len(loops.axes) - 1 else "seq"
            block = [For(loops.vars[axis], 0, loops.extent(axis), kind, tuple(block))]
        return block[0]

    def _column_form(self) -> list[Stmt]:
        """Accumulators per lane, the reduced loops, then the values computed from the results."""
        members = self.members
        accumulators = {n: f"a{k}" for k, n in enumerate(n for n in self.cluster.members if is_reduction(n))}
        sources = [self.views[n.inputs[0]].base for n in accumulators]
        statements = self._folded(accumulators, [b for b in sources if b in members.inside], [], {})
        members.names.update(accumulators)
        reduced_members = [n for n in self.cluster.members if n in self.cluster.reduced_members]
        statements += [members.let(n) for n in reduced_members if n not in accumulators]
        return statements + members.stores(reduced_members, self.targets)

    def _row_form(self) -> list[Stmt]:
        """One pass along the row for each level of reductions, with the row's reduced values between them."""
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
        """The reductions of one pass, which also stores the values ``stores`` to ``memory``."""
        members = self.members
        statements: list[Stmt] = [self._accumulator(name, node) for node, name in accumulators.items()]
        inner = members.needed(needed)
        for node, name in accumulators.items():
            inner.append(Update(name, members.operand(node, node.inputs[0])))
            members.count_flops(node)
        inner += members.stores(stores, memory)
        return [*statements, self._reduced_loops(inner)]

    def _accumulator(self, name: str, node: Value) -> Acc:
        """The accumulator of a reduction; short where its loops are."""
        updates = 1
        axes = self.loops.axes
        for axis, (extent, reduced) in enumerate(axes):
            if reduced:
                updates *= -(-extent // LANES) if axis == len(axes) - 1 else extent
        order = "short" if updates <= CHAIN else "blocks"
        return Acc(name, lowering_of(node).reduction or "", node.aval.dtype, order)
