"""The epilogue of a kernel: elementwise members of its cluster, at each row and column of the result."""

from __future__ import annotations

from collections.abc import Iterable

from runnel.compiler.kernels.members import POSITION, Addressing, LoopIndices, Members, Reach
from runnel.compiler.lowering.operands import OffsetTables
from runnel.compiler.lowering.parts import Parts
from runnel.compiler.lowering.protocol import Request, lowering_of
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess
from runnel.compiler.plan_ir.clusters import aligned_strides
from runnel.compiler.plan_ir.strides import ResultAxes, merged_stride
from runnel.core.avals import row_major
from runnel.core.dtypes import int32, int64
from runnel.core.errors import VerifierError
from runnel.core.records import replace
from runnel.graph.node import Value
from runnel.loops import scalar
from runnel.loops.ir import Apply, Expr, Index, Let, Load, Ref, Stmt, Var


def axes_of_result(node: Value) -> ResultAxes:
    """Return the rows and columns of the root of a cluster with an epilogue."""
    axes = lowering_of(node).epilogue_axes(node)
    if axes is None:
        raise VerifierError(f"[{node.op}] takes no epilogue.")
    return axes


class RowTables:
    """Strides of reaches over rows and columns. Where rows have no single stride (the interior of a padded array), a
    table holds the offset of each row."""

    def __init__(self, axes: ResultAxes, offsets: OffsetTables) -> None:
        self.axes = axes
        self.offsets = offsets
        self._tables: dict[Reach, Allocation] = {}

    def arrange(self, node: Value, reaches: Iterable[Reach]) -> None:
        """Set the strides of ``reaches`` over rows and columns."""
        for r in reaches:
            rows = self.axes.point_rows(tuple(r.strides))
            row = None if rows is None else merged_stride(rows.shape, rows.strides)
            table = self.offsets.allocation(rows.shape, rows.strides) if rows is not None and row is None else None
            if rows is None or (row is None and (table is None or r.allocation is POSITION)):
                raise VerifierError(f"[{node.op}] an operand of its epilogue has no strides of rows and columns.")
            if table is not None:
                self._tables[r] = table
            r.strides[:] = [row or 0, rows.column if self.axes.n != 1 else 1]

    def of(self, reach: Reach) -> Allocation | None:
        return self._tables.get(reach)


class RowsAndColumns(Addressing):
    """Two loops, over rows and columns of the result of ``node``, for any extents."""

    def __init__(self, node: Value, parts: Parts, offsets: OffsetTables, row: Var, column: Var) -> None:
        super().__init__(parts)
        self.node = node
        self.row = row
        self.tables = RowTables(axes_of_result(node), offsets)
        self.before: list[Stmt] = []  # values bound once for each row
        self._loops = LoopIndices(parts, [row, column])
        self._names: dict[Allocation, str] = {}

    def arrange(self, reaches: Iterable[Reach]) -> None:
        self.tables.arrange(self.node, reaches)

    def access(self, reach: Reach, *, writes: bool) -> BufferAccess:
        if self.tables.of(reach) is not None:
            return BufferAccess(reach.allocation, writes, reach.offset, None, None, reach.allocation.size)
        return BufferAccess(reach.allocation, writes, reach.offset, reach.strides[0], reach.strides[1], 1)

    def index(self, reach: Reach) -> Index:
        index, table = self._loops.index(reach), self.tables.of(reach)
        return index if table is None else replace(index, gathered=((self._begin(table), 1),))

    def position(self, reach: Reach) -> Expr:
        return self._loops.position(reach)

    def _begin(self, table: Allocation) -> Ref:
        """Return the offset of the current row, by a table."""
        if table not in self._names:
            name = f"row{len(self._names)}"
            buffer = self.parts.declare(BufferAccess(table, False, 0, 1, 0, 1), "in")
            begin = Load(buffer, Index(((self.row, 1),)), int32)
            self.before.append(Let(name, Apply(scalar.cast, (begin,), int64)))
            self._names[table] = name
        return Ref(self._names[table], int64)


class Epilogue:
    """The epilogue of a kernel that visits each element of its result once, in loops over ``row`` and ``column``; in
    these the result is called ``name``. The statements of :meth:`at_point` are inside both loops; the statements of
    ``before``, which is complete after that, are only in the loop over rows."""

    def __init__(self, request: Request, parts: Parts, row: Var, column: Var, name: str = "result") -> None:
        self.node, self.operands = request.node, request.operands
        self.name = name
        self.addressing = RowsAndColumns(self.node, parts, request.offsets, row, column)
        self.members = Members(request, self.addressing)

    @property
    def before(self) -> list[Stmt]:
        return self.addressing.before

    @property
    def flops(self) -> float:
        """Operations that the members add to the kernel's."""
        return self.members.flops

    def operand(self, x: Value) -> Load:
        """Return the element at the point of an operand with the result's shape; without suitable strides, of a dense
        copy."""
        allocation, offset, strides = self.operands.view(x)
        axes, shape = self.addressing.tables.axes, self.node.aval.shape
        if not axes.has_steps(aligned_strides(x.aval.shape, strides, shape)):
            allocation, offset = self.operands.dense(x)
            strides = row_major(x.aval.shape)
        reach = Reach(allocation, offset, [*aligned_strides(x.aval.shape, strides, shape)])
        self.addressing.arrange([reach])
        return self.members.load(reach, x.aval.dtype)

    def at_point(self, value: Expr) -> list[Stmt]:
        """Return the statements that bind the result to ``value``, compute the epilogue and store its results."""
        self.members.names = {self.node: self.name}
        stored = [x for x in self.members.stored if x is not self.node]
        return [Let(self.name, value), *self.members.needed(stored), *self.members.all_stores()]
