"""The epilogue of a Winograd convolution, at each pixel while it is in registers.

The loops of the convolution are over tiles; a pixel's row of the result is known only as a value, so every operand is
addressed by that value and by the first channel of the loop's step.
"""

from __future__ import annotations

from collections.abc import Iterable

from runnel.compiler.kernels.allocations import Allocation, BufferAccess
from runnel.compiler.kernels.elementwise.members import Addressing, Members, Reach
from runnel.compiler.kernels.epilogue import RowTables, axes_of_result
from runnel.compiler.kernels.lowering import Request
from runnel.compiler.kernels.offsets import OffsetTables
from runnel.compiler.kernels.parts import Parts, step_of
from runnel.core.dtypes import int64
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.loops.ir import Apply, Expr, Index, Let, Position, Ref, Stmt, Stride, Var


class _PixelAddressing(Addressing):
    """Addressing by the row of pixel ``number``, the step's first channel and the lane."""

    def __init__(self, node: Value, parts: Parts, lane: Var, first: Expr) -> None:
        super().__init__(parts)
        self.node = node
        self.lane = lane
        self.first = first
        self.number = 0
        self.tables = RowTables(axes_of_result(node), OffsetTables())
        self.row_tables: dict[Allocation, str] = {}
        self._steps: dict[Reach, tuple[Stride, Stride]] = {}

    @property
    def row(self) -> Ref:
        """The pixel's row of the result."""
        return Ref(f"row{self.number}", int64)

    def arrange(self, reaches: Iterable[Reach]) -> None:
        self.tables.arrange(self.node, reaches)

    def access(self, reach: Reach, *, writes: bool) -> BufferAccess:
        return BufferAccess(reach.allocation, writes, reach.offset, None, None, reach.allocation.size)

    def index(self, reach: Reach) -> Index:
        if reach not in self._steps:
            self._steps[reach] = (step_of(self.parts, reach.strides[0]), step_of(self.parts, reach.strides[1]))
        row, column = self._steps[reach]
        terms = ((self.lane, column),) if column != 0 else ()
        table = self.tables.of(reach)
        begin: tuple[Ref, Stride] = (self.row, row) if table is None else (self._begin(table), 1)
        gathered = [(expr, step) for expr, step in (begin, (self.first, column)) if step != 0]
        return Index(terms, 0, tuple(gathered))

    def _begin(self, table: Allocation) -> Ref:
        """The start of the pixel's row, by a table."""
        name = self.row_tables.setdefault(table, f"at{len(self.row_tables)}_")
        return Ref(f"{name}{self.number}", int64)

    def position(self, reach: Reach) -> Expr:
        channel = Apply(scalar.add, (self.first, Position(self.lane, int64)), int64)
        where: tuple[Expr, Expr] = (self.row, channel)
        terms = [
            Apply(scalar.mul, (x, self.parts.param(step)), int64)
            for x, step in zip(where, reach.strides, strict=True)
            if step != 0
        ]
        total: Expr = ir.Const(0, int64)
        for term in terms:
            total = Apply(scalar.add, (total, term), int64)
        return total


class PixelEpilogue:
    """Emits the statements of one pixel after the other into the kernel ``parts``. ``lane`` is the variable over the
    channels of a step, ``first`` the step's first channel."""

    def __init__(self, request: Request, parts: Parts, lane: Var, first: Expr) -> None:
        self.node = request.node
        self.addressing = _PixelAddressing(self.node, parts, lane, first)
        self.members = Members(request, self.addressing)

    @property
    def flops(self) -> float:
        return self.members.flops

    @property
    def row_tables(self) -> dict[Allocation, str]:
        """The tables of rows that statements look up, with the prefixes of the names bound to their entries."""
        return self.addressing.row_tables

    def pixel(self, number: int, value: Expr) -> list[Stmt]:
        """The statements that compute and store the epilogue of pixel ``number``, whose product is ``value``."""
        self.addressing.number = number
        members, name = self.members, f"product{number}"
        members.names = {self.node: name}
        stored = [x for x in members.stored if x is not self.node]
        return [Let(name, value), *members.needed(stored), *members.all_stores()]
