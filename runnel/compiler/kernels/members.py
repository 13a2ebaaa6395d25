"""The statements that compute the members of a cluster at a point, in any loops.

An :class:`Addressing` returns the address of a value at the point: loops over a domain (:class:`NestAddressing`), rows
and columns of a kernel's result (``epilogue.py``), pixels of tiles (``winograd.py``).
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping
from typing import Any, Final

from runnel.compiler.lowering.parts import Parts, bits_of, from_bits, is_common, literal
from runnel.compiler.lowering.protocol import Request, cost_of, inline_constant, is_reduction, lowering_of
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, BufferView, MemorySpace, hull
from runnel.compiler.plan_ir.clusters import aligned_strides, unreduced_strides
from runnel.core.avals import Shape, row_major
from runnel.core.dtypes import DType, int64
from runnel.core.errors import VerifierError
from runnel.core.lengths import expected
from runnel.core.records import record
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.loops.ir import Apply, Const, Expr, Index, Let, Load, Param, Position, Ref, Stmt, Store, Var

POSITION: Final = Allocation(
    MemorySpace.SCRATCH, int64, 0, "position"
)  # no memory: numbers that are linear in the position


@record(frozen=False, eq=False)
class Reach:
    """An access of the cluster: its strides over the whole domain, later over the axes of the addressing."""

    allocation: Allocation
    offset: int
    strides: list[int]


class Addressing(abc.ABC):
    """The indexing of reaches at the current point of the loops; buffers are declared at first use."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._numbers: dict[Reach, int] = {}  # of buffers

    @abc.abstractmethod
    def arrange(self, reaches: Iterable[Reach]) -> None:
        """Choose the axes for all reaches, and set their strides over them."""

    @abc.abstractmethod
    def access(self, reach: Reach, *, writes: bool) -> BufferAccess:
        """Return the access of the call through ``reach``."""

    @abc.abstractmethod
    def index(self, reach: Reach) -> Index:
        """Return the index of its element at the current point; called after its buffer is declared."""

    @abc.abstractmethod
    def position(self, reach: Reach) -> Expr:
        """Σ strides·position at the point."""

    def buffer(self, reach: Reach, *, writes: bool) -> tuple[str, Index]:
        """Return the buffer and the index of an access at the point."""
        number = self._numbers.get(reach)
        if number is None:
            number = self._numbers[reach] = len(self.parts.buffers)
            self.parts.declare(self.access(reach, writes=writes), "out" if writes else "in")
        index, mode = self.index(reach), self.parts.buffers[number].mode
        if mode == ("in" if writes else "out"):
            self.parts.buffers[number] = ir.Buffer(f"b{number}", reach.allocation.dtype, "inout")
            self.parts.accesses[number].writes = True
        return f"b{number}", index

    def axis_of(self, reach: Reach) -> Var:
        """Return the variable of the loop along which ``reach`` has a stride of 1."""
        raise VerifierError("This kernel has no loop over rows that a member could look something up in.")

    def forget_pattern(self, reach: Reach) -> str:
        """Return the buffer of a declared reach, whose access pattern is marked as unknown."""
        number = self._numbers[reach]
        access = self.parts.accesses[number]
        access.row_step = access.column_step = None
        return self.parts.buffers[number].name


class Members:
    """Emits the members of one cluster. ``spilled`` are members that are stored in memory between passes of the kernel;
    ``names`` those that are bound at the point, ``reload`` those to be read back from memory."""

    def __init__(
        self, request: Request, addressing: Addressing, spilled: Mapping[Value, Allocation] | None = None
    ) -> None:
        self.cluster = request.cluster
        self.views, self.sources = request.operands.views, request.operands.sources
        self.targets, self.subviews = request.targets, request.subviews
        self.addressing, self.parts = addressing, addressing.parts
        self.inside = set(self.cluster.members)
        self.names: dict[Value, str] = {}
        self.reload: dict[Value, Reach] = {}
        self.reaches: dict[tuple[Allocation, int, Shape], Reach] = {}
        self.before_rows: list[Stmt] = []  # lookups once for each row
        self.row_lengths: list[Expr] = []  # the number of elements of each sum over a row
        self.looked_up: dict[Value, Any] = {}  # state of lowerings for their nodes
        self.flops = 0.0
        self._numbers: dict[tuple[int, DType], Expr] = {}
        self._named = 0
        self._collect(spilled or {})
        addressing.arrange(self.reaches.values())

    # Reaches ----------------------------------------------------------------------------------------------------------

    def _collect(self, spilled: Mapping[Value, Allocation]) -> None:
        for node in self.cluster.members:
            lowering = lowering_of(node)
            lowering.declare(node, self)
            for x in node.inputs if lowering.reads_at_point else ():
                view = self.views[x]
                if view.base not in self.inside and not inline_constant(view.base):
                    self.reach(self.sources[view.base], view.offset, self._operand_strides(node, x))
            if lowering.position_steps(node) is not None:
                self.reach(POSITION, 0, self._position_strides(node))
            for allocation in self.targets.get(node, ()):
                self.reach(allocation, 0, self.home_strides(node))
            for part in self.subviews.get(node, ()):
                self.reach(*part)
        for node, allocation in spilled.items():
            self.reach(allocation, 0, self.home_strides(node))

    def reach(self, allocation: Allocation, offset: int, strides: Shape) -> Reach:
        """Return the access of ``place`` with these strides over the domain."""
        key = (allocation, offset, strides)
        if key not in self.reaches:
            self.reaches[key] = Reach(allocation, offset, list(strides))
        return self.reaches[key]

    def _operand_strides(self, node: Value, x: Value) -> Shape:
        """Strides of operand ``x`` over the cluster's domain."""
        steps = aligned_strides(x.aval.shape, self.views[x].strides, lowering_of(node).point_shape(node))
        if node in self.cluster.reduced_members and not is_reduction(node):
            return self._spread(steps)
        return steps

    def _position_strides(self, node: Value) -> Shape:
        """Return the steps of the position argument of an expression along the axes of the domain."""
        shape = node.aval.shape
        steps = aligned_strides(shape, lowering_of(node).position_steps(node) or (), shape)
        return self._spread(steps) if node in self.cluster.reduced_members else steps

    def home_strides(self, node: Value) -> Shape:
        """Strides over the domain of a dense array of the values of ``node``."""
        return (
            unreduced_strides(self.cluster) if node in self.cluster.reduced_members else row_major(self.cluster.domain)
        )

    def _spread(self, steps: Shape) -> Shape:
        """Strides over the axes that are not reduced as strides over the whole domain."""
        result = [0] * len(self.cluster.domain)
        for axis, step in zip(self.cluster.unreduced_axes, steps, strict=True):
            result[axis] = step
        return tuple(result)

    # Values -----------------------------------------------------------------------------------------------------------

    def operand(self, node: Value, x: Value) -> Expr:
        """Operand ``x`` of ``node`` at the point."""
        base = self.views[x].base
        if base in self.inside:
            stored = self.reload.get(base)
            if stored is not None:
                return self.load(stored, base.aval.dtype)
            return Ref(self.names[base], base.aval.dtype)
        if inline_constant(base):
            return self._constant(base, lowering_of(node).has_literals)
        reach = self.reaches[self.sources[base], self.views[x].offset, self._operand_strides(node, x)]
        return self.load(reach, base.aval.dtype)

    def load(self, reach: Reach, dtype: DType) -> Load:
        name, index = self.addressing.buffer(reach, writes=False)
        return Load(name, index, dtype)

    def _constant(self, node: Value, has_literals: bool) -> Expr:
        """Return a constant of one element."""
        if has_literals or is_common(node):
            return literal(node)
        key = (bits_of(node), node.aval.dtype)
        if key not in self._numbers:
            self._numbers[key] = from_bits(self.parts.param(key[0]), node.aval.dtype)
        return self._numbers[key]

    def _value(self, node: Value) -> Expr:
        """Return the value of a member (not a reduction) at the point."""
        lowering = lowering_of(node)
        operands = [self.operand(node, x) for x in node.inputs]
        if lowering.position_steps(node) is None:
            return lowering.expression(node, operands, None)
        reach = self.reaches[POSITION, 0, self._position_strides(node)]
        return lowering.expression(node, operands, self.addressing.position(reach))

    def name(self, node: Value) -> str:
        """Return a new name for ``node``, which may be computed in several passes, each time in another variable."""
        name = self.names[node] = f"v{self._named}"
        self._named += 1
        return name

    def let(self, node: Value) -> Let:
        """Bind ``node`` to the value of its expression."""
        value = self._value(node)
        self.count_flops(node)
        return Let(self.name(node), value)

    def count_flops(self, node: Value) -> None:
        shape = node.inputs[0].aval if is_reduction(node) else node.aval
        self.flops += expected(shape.size) * cost_of(node)

    # Statements -------------------------------------------------------------------------------------------------------

    def needed(self, values: list[Value]) -> list[Stmt]:
        """Return the statements that bind the full-rank members that ``values`` need and that are not bound yet, in
        order."""
        needed: set[Value] = set()
        stack = list(values)
        while stack:
            node = stack.pop()
            if node in needed or node in self.names or node in self.reload:
                continue
            needed.add(node)
            stack.extend(b for b in (self.views[x].base for x in node.inputs) if b in self.inside)
        return [s for node in self.cluster.members if node in needed for s in lowering_of(node).statements(node, self)]

    def stores(self, nodes: Iterable[Value], targets: Mapping[Value, list[Allocation]]) -> list[Stmt]:
        """Return the stores of ``nodes`` to their ``targets``."""
        views = {n: [(allocation, 0, self.home_strides(n)) for allocation in targets[n]] for n in nodes if n in targets}
        return self._stored(views)

    def subview_stores(self) -> list[Stmt]:
        """Return the stores of members into larger arrays."""
        return self._stored({n: self.subviews[n] for n in self.cluster.members if n in self.subviews})

    def _stored(self, views: Mapping[Value, list[BufferView]]) -> list[Stmt]:
        statements: list[Stmt] = []
        for node, node_views in views.items():
            for view in node_views:
                name, index = self.addressing.buffer(self.reaches[view], writes=True)
                statements.append(Store(name, index, Ref(self.names[node], node.aval.dtype)))
        return statements

    def all_stores(self) -> list[Stmt]:
        """Return all stores of members."""
        return [*self.stores(self.cluster.members, self.targets), *self.subview_stores()]

    @property
    def stored(self) -> list[Value]:
        """The members that are stored somewhere."""
        return [n for n in self.cluster.members if n in self.targets or n in self.subviews]


class LoopIndices:
    """Indices and positions by the variables of loops, each created once. Unit steps along the last one are part of the
    code."""

    def __init__(self, parts: Parts, variables: list[Var]) -> None:
        self.parts = parts
        self.variables = variables
        self._indices: dict[Reach, Index] = {}
        self._positions: dict[Reach, Expr] = {}

    def index(self, reach: Reach) -> Index:
        index = self._indices.get(reach)
        if index is None:
            terms: list[tuple[Var, ir.Stride]] = []
            for var, step in zip(self.variables, reach.strides, strict=True):
                if step != 0:
                    terms.append((var, 1 if var is self.variables[-1] and step == 1 else self.parts.param(step)))
            index = self._indices[reach] = Index(tuple(terms))
        return index

    def position(self, reach: Reach) -> Expr:
        position = self._positions.get(reach)
        if position is None:
            for var, step in zip(self.variables, reach.strides, strict=True):
                if step != 0:
                    here: Expr = Position(var, int64)
                    term = here if step == 1 else Apply(scalar.mul, (here, self.parts.param(step)), int64)
                    position = term if position is None else Apply(scalar.add, (position, term), int64)
            position = self._positions[reach] = position or Const(0, int64)
        return position


class NestAddressing(Addressing):
    """The axes of a cluster's domain; adjacent ones are merged into one loop where every access allows it, except into
    a reduced vector axis, whose length determines the reduction's tree. ``row`` and ``column`` are the partitioned
    axes, ``rows`` the axes of the loops around the column's."""

    def __init__(self, parts: Parts, domain: Shape, reduced: tuple[int, ...]) -> None:
        super().__init__(parts)
        self.axes: list[tuple[int, bool]] = [(n, a in reduced) for a, n in enumerate(domain)]  # extents, reduced
        self._extents: dict[int, Param] = {}

    def arrange(self, reaches: Iterable[Reach]) -> None:
        reaches = list(reaches)
        axis = len(self.axes) - 2
        while axis >= 0:
            (outer, outer_reduced), (inner, inner_reduced) = self.axes[axis], self.axes[axis + 1]
            into_tree = inner_reduced and axis + 1 == len(self.axes) - 1
            if (
                outer_reduced == inner_reduced
                and not into_tree
                and all(r.strides[axis] == r.strides[axis + 1] * inner for r in reaches)
            ):
                self.axes[axis : axis + 2] = [(outer * inner, outer_reduced)]
                for r in reaches:
                    del r.strides[axis]
            axis -= 1
        self.vars = [Var(f"x{a}") for a in range(len(self.axes))]
        self._loops = LoopIndices(self.parts, self.vars)
        self.unreduced = [a for a, (_, reduced) in enumerate(self.axes) if not reduced]
        self.has_row_form = bool(self.axes) and self.axes[-1][1]
        self.column = None if self.has_row_form or not self.unreduced else self.unreduced[-1]
        self.rows = self.unreduced if self.has_row_form else self.unreduced[:-1]
        self.row = self.rows[0] if self.rows else None

    def access(self, reach: Reach, *, writes: bool) -> BufferAccess:
        axes = enumerate(zip(self.axes, reach.strides, strict=True))
        before, span = hull((extent, step) for a, ((extent, _), step) in axes if a not in (self.row, self.column))
        row = 0 if self.row is None else reach.strides[self.row]
        column = 0 if self.column is None else reach.strides[self.column]
        return BufferAccess(reach.allocation, writes, reach.offset, row, column, span, before=before)

    def index(self, reach: Reach) -> Index:
        return self._loops.index(reach)

    def position(self, reach: Reach) -> Expr:
        return self._loops.position(reach)

    def axis_of(self, reach: Reach) -> Var:
        return self.vars[reach.strides.index(1)]

    def extent(self, axis: int) -> Param:
        """Return the extent of a loop."""
        if axis not in self._extents:
            self._extents[axis] = self.parts.param(self.axes[axis][0])
        return self._extents[axis]
