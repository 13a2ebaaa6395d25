"""Addressing by loops: the strides of an access over the axes of a kernel's loops are params."""

from __future__ import annotations

from collections.abc import Iterable

from runnel.compiler.kernels.elementwise.members import Addressing, Reach
from runnel.compiler.lowering.parts import Parts
from runnel.compiler.plan_ir.calls import BufferAccess, hull
from runnel.core.avals import Shape
from runnel.core.dtypes import int64
from runnel.loops import ir, scalar
from runnel.loops.ir import Apply, Const, Expr, Index, Param, Position, Var


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
    axes, ``rows`` those of the loops around the column's."""

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
