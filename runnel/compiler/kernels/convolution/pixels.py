"""What follows a Winograd convolution, at each pixel as it leaves the registers.

The loops of the convolution are over tiles; a pixel's row of the result is known only as a value, so every operand is
reached by that value and by the first channel of the turn.
"""

from __future__ import annotations

from runnel.compiler.fusion.clusters import Cluster
from runnel.compiler.kernels.contraction.contraction import EpilogueBuilder
from runnel.compiler.kernels.contraction.matrices import OffsetLists
from runnel.compiler.kernels.copies.alone import Lie
from runnel.compiler.kernels.elementwise.nests import POSITION, Reach
from runnel.compiler.kernels.operands import Operands
from runnel.compiler.kernels.places import Access, Place
from runnel.core.dtypes import int64
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.loops.ir import Apply, Expr, Index, Let, Position, Ref, Stmt, Stride, Var


class PixelEpilogue(EpilogueBuilder):
    """Writes the statements of one pixel after the other. ``lane`` is the variable over channels of a turn, ``first``
    the turn's first channel."""

    def __init__(
        self,
        cluster: Cluster,
        operands: Operands,
        targets: dict[Value, list[Place]],
        laid: dict[Value, list[Lie]],
        lane: Var,
        first: Expr,
    ) -> None:
        super().__init__(cluster, operands.views, operands.sources, targets, laid, operands.dense, OffsetLists())
        self.lane = lane
        self.first = first
        self.number = 0
        self.declared: dict[int, tuple[int, Index]] = {}
        self.steps: dict[int, tuple[Stride, Stride]] = {}
        self.reload: dict[Value, Reach] = {}
        self.prelude: list[Stmt] = []
        self.row_axis, self.column_axis = 0, 1

    def pixel(self, number: int, value: Expr) -> list[Stmt]:
        """The statements that make and store what is wanted of pixel ``number``, whose product is ``value``."""
        product = self.cluster.product
        self.number = number
        self.positions = {}
        self.names = {product: f"product{number}"}
        wanted = [x for x in self.cluster.members if x is not product and (x in self.targets or x in self.laid)]
        statements: list[Stmt] = [Let(f"product{number}", value), *self._emit_needed(wanted)]
        return [*statements, *self._stores(self.cluster.members, self.targets), *self._laid_stores()]

    @property
    def row(self) -> Ref:
        """Which row of the result the pixel is."""
        return Ref(f"row{self.number}", int64)

    def _row_of(self, rows: Place) -> Ref:
        """Where it begins in an array with such a list of rows."""
        name = self.row_names.setdefault(rows, f"at{len(self.row_names)}_")
        return Ref(f"{name}{self.number}", int64)

    def _buffer(self, reach: Reach, *, writes: bool) -> tuple[str, Index]:
        found = self.declared.get(id(reach))
        if found is None:
            position = len(self.buffers)
            self.buffers.append(ir.Buffer(f"b{position}", reach.place.dtype, "out" if writes else "in"))
            self.accesses.append(Access(reach.place, writes, reach.offset, None, None, reach.place.size))
            self.steps[id(reach)] = (self._step(reach.strides[0]), self._step(reach.strides[1]))
            found = self.declared[id(reach)] = (position, Index())
        row, column = self.steps[id(reach)]
        terms = ((self.lane, column),) if column != 0 else ()
        rows = self.listed.get(id(reach))
        begin: tuple[Ref, Stride] = (self.row, row) if rows is None else (self._row_of(rows), 1)
        gathered = [(expr, step) for expr, step in (begin, (self.first, column)) if step != 0]
        return f"b{found[0]}", Index(terms, 0, tuple(gathered))

    def _step(self, step: int) -> Stride:
        return step if step in (0, 1) else self._param(step)

    def _position(self, node: Value) -> Expr:
        reach = self.reaches[POSITION, 0, self._position_strides(node)]
        channel = Apply(scalar.add, (self.first, Position(self.lane, int64)), int64)
        where: tuple[Expr, Expr] = (self.row, channel)
        terms = [
            Apply(scalar.mul, (x, self._param(step)), int64)
            for x, step in zip(where, reach.strides, strict=True)
            if step != 0
        ]
        total: Expr = ir.Const(0, int64)
        for term in terms:
            total = Apply(scalar.add, (total, term), int64)
        return total
