"""Tiled transpose: map kernels that read along another axis than they write, block by block through scratch memory.

A nest traverses its result in order. An operand whose adjacent elements are along another axis would be gathered from
as many cache lines as a vector has lanes, and the lines would be evicted before their other elements are used. So such
a kernel is rewritten: for each block of both axes the operand's rows are copied into scratch memory vector by vector,
and the nest's own statements gather from there. Where the result's last axis is too short for vectors, vectors are
along the operand's axis instead, and the result is scattered. The last block of an axis is moved back to end with it:
some elements are computed twice, with the same value.
"""

from __future__ import annotations

from typing import Final

from runnel.compiler.kernels.allocations import BufferAccess, Call, hull
from runnel.compiler.kernels.elementwise.transpose_tiling import Nest, Tiling, blocks_of, nest_of
from runnel.compiler.kernels.naming import named
from runnel.compiler.kernels.parts import Parts, binary, count
from runnel.core.dtypes import DType, int64
from runnel.core.records import replace
from runnel.loops import ir, scalar
from runnel.loops.ir import (
    Apply,
    Const,
    Expr,
    For,
    Index,
    Let,
    Load,
    Position,
    RangeBound,
    Stmt,
    Store,
    Stride,
    Var,
)

_RUN: Final = 256  # bytes of a block's row
_APART: Final = 64  # bytes between two rows, so that they begin in different sets of the cache
_EVEN: Final = 512  # least extent whose blocks are whole vectors, with some elements computed twice


def through_scratch(call: Call) -> Call:
    """``call``, with blocks of transposed operands copied into scratch memory first."""
    nest = nest_of(call)
    blocks = None if nest is None else blocks_of(nest)
    return call if nest is None or blocks is None else _Rewriting(nest, blocks).call()


class _Rewriting:
    """Builds the kernel."""

    def __init__(self, nest: Nest, blocks: Tiling) -> None:
        self.nest = nest
        self.blocks = blocks
        self.parts = Parts.of(nest.call)
        self.starts = {blocks.along: count("begin")}
        if blocks.width:
            self.starts[nest.column] = count("column")
        self.names = {access: f"s{number}" for number, access in enumerate(blocks.turned)}
        self.unit = 1 if blocks.unit is None else nest.extents[blocks.unit]
        self.unit_step: Stride = 1 if blocks.unit is None else self.parts.param(self.unit)
        self.longest = _RUN // max((dtype.itemsize for dtype in self.dtypes()), default=1)

    def dtypes(self) -> list[DType]:
        of = {b.name: b.dtype for b in self.nest.call.kernel.buffers}
        return [of[buffer] for buffer, _ in self.blocks.turned]

    def call(self) -> Call:
        """The kernel and its call."""
        nest, blocks, old = self.nest, self.blocks, self.nest.call
        before, body = self._blocks()
        inner = [v for v in nest.extents if v not in (nest.column, blocks.unit, blocks.along, blocks.rows)]
        for var in reversed(inner):
            body = (For(var, 0, self.parts.param(nest.extents[var]), "seq", body),)
        if blocks.rows != blocks.along:
            body = (For(blocks.rows, RangeBound.I0, RangeBound.I1, "seq", body),)
        parts = self.parts
        parts.accesses[:] = self._accesses()
        for access, dtype in zip(blocks.turned, self.dtypes(), strict=True):
            parts.scratch(self.names[access], dtype, blocks.width * _distance(dtype))
        prefix = old.kernel.name.rsplit("_", 1)[0]
        kernel = named(prefix, tuple(parts.buffers), tuple(parts.params), (*before, *body), old.kernel.doc)
        rows = nest.extents[blocks.rows]
        return replace(old, kernel=kernel, accesses=parts.accesses, params=parts.values, rows=rows, split="rows")

    # Loops ------------------------------------------------------------------------------------------------------------

    def _blocks(self) -> tuple[list[Stmt], tuple[Stmt, ...]]:
        """All blocks of both axes, and the values bound before them."""
        if not self.blocks.width:
            return self._along((self._scattering(),))
        body = (*self._reading(), self._writing())
        if self.blocks.unit is not None:
            return self._along(self._columns(body))
        before, body = self._along(body)
        return before, self._columns(body)  # the operand's rows are read as a whole

    def _columns(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """``body`` for each block of columns."""
        extent, width = self.nest.extents[self.nest.column], self.blocks.width
        number, block = self.parts.param(-(-extent // width)), Var("columns")
        first = binary(scalar.mul, Position(block, int64), Const(width, int64))
        start = Let("column", binary(scalar.minimum, first, self.parts.param(extent - width)))
        return (For(block, 0, number, "seq", (start, *body)),)

    def _along(self, body: tuple[Stmt, ...]) -> tuple[list[Stmt], tuple[Stmt, ...]]:
        """``body`` for each block of the other axis, and the values bound before all loops: the length of a block, and
        the number of blocks, which have equal lengths."""
        var, extent = self.blocks.along, self.nest.extents[self.blocks.along]
        shared = self.blocks.rows == var
        first: Expr = RangeBound.I0 if shared else Const(0, int64)
        whole: Expr = binary(scalar.sub, RangeBound.I1, RangeBound.I0) if shared else self.parts.param(extent)
        longest, grain = max(self.longest // self.unit, 1), ir.LANES if extent >= _EVEN and self.unit == 1 else 1
        most, even = self.parts.param(longest), self.parts.param(grain)
        before: list[Stmt] = [
            Let("whole", whole),
            Let("blocks", _parts(count("whole"), most)),
            Let("equal", _parts(count("whole"), binary(scalar.maximum, count("blocks"), Const(1, int64)))),
            Let("grains", _parts(count("equal"), even)),
            Let("length", binary(scalar.minimum, binary(scalar.mul, count("grains"), even), count("whole"))),
            Let("run", binary(scalar.mul, count("length"), self.parts.param(self.unit))),
            Let("last", binary(scalar.sub, binary(scalar.add, first, count("whole")), count("length"))),
        ]
        block = Var("block")
        at = binary(scalar.add, first, binary(scalar.mul, Position(block, int64), count("length")))
        start = Let("begin", binary(scalar.minimum, at, count("last")))
        return before, (For(block, 0, count("blocks"), "seq", (start, *body)),)

    def _reading(self) -> list[Stmt]:
        """Copies of the operands' blocks to scratch memory."""
        column, run = Var("c"), Var("r")
        statements: list[Stmt] = []
        for access, dtype in zip(self.blocks.turned, self.dtypes(), strict=True):
            buffer, index = access
            terms = tuple(t for t in index.terms if t[0] not in (self.nest.column, self.blocks.along, self.blocks.unit))
            step = next(step for var, step in index.terms if var == self.nest.column)
            where = ((count("column"), step), (count("begin"), self.unit_step))
            load = Load(buffer, Index((*terms, (column, step), (run, 1)), index.offset, where), dtype)
            target = Index(((column, _distance(dtype)), (run, 1)))
            loop = For(run, 0, count("run"), "vec", (Store(self.names[access], target, load),))
            statements.append(For(column, 0, self.blocks.width, "seq", (loop,)))
        return statements

    def _writing(self) -> Stmt:
        """The nest's own statements for a block."""
        blocks, moved = self.blocks, _Moved(self)
        body: Stmt = For(self.nest.column, 0, blocks.width, "vec", tuple(moved.statement(s) for s in self.nest.body))
        if blocks.unit is not None:
            body = For(blocks.unit, 0, self.parts.param(self.unit), "seq", (body,))
        return For(blocks.along, 0, count("length"), "seq", (body,))

    def _scattering(self) -> Stmt:
        """The nest's own statements, with vectors along the other axis."""
        column, along, moved = self.nest.column, self.blocks.along, _Moved(self)
        vectors = For(along, 0, count("length"), "vec", tuple(moved.statement(s) for s in self.nest.body))
        return For(column, 0, self.parts.param(self.nest.extents[column]), "seq", (vectors,))

    # Memory -----------------------------------------------------------------------------------------------------------

    def _accesses(self) -> list[BufferAccess]:
        """The accesses of the nest, with the new rows."""
        nest, rows = self.nest, self.blocks.rows
        steps = {buffer: steps for (buffer, _), steps in nest.steps.items()}
        accesses = []
        for buffer, access in zip(nest.call.kernel.buffers, nest.call.accesses, strict=True):
            mine = steps[buffer.name]
            before, span = hull((n, mine.get(v, 0)) for v, n in nest.extents.items() if v not in (rows, nest.column))
            accesses.append(replace(access, row_step=mine.get(rows, 0), span=span, before=before))
        return accesses


class _Moved:
    """The statements of a nest inside a block: their variables count from the block's first element."""

    def __init__(self, rewriting: _Rewriting) -> None:
        self.of = rewriting
        self.rewritten: dict[int, Expr] = {}

    def statement(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Let):
            return Let(stmt.name, self.value(stmt.value))
        if isinstance(stmt, Store):
            return Store(stmt.buffer, self.index(stmt.buffer, stmt.index), self.value(stmt.value))
        return stmt

    def value(self, expr: Expr) -> Expr:
        """The expression in the block; shared subexpressions remain shared."""
        new = self.rewritten.get(id(expr))
        if new is None:
            new = self.rewritten[id(expr)] = self._value(expr)
        return new

    def _value(self, expr: Expr) -> Expr:
        if isinstance(expr, Apply):
            return Apply(expr.op, tuple(self.value(x) for x in expr.args), expr.dtype)
        if isinstance(expr, Position) and expr.var in self.of.starts:
            start: Expr = self.of.starts[expr.var]
            if expr.dtype is not int64:
                start = Apply(scalar.cast, (start,), expr.dtype)
            return binary(scalar.add, start, expr)
        if isinstance(expr, Load):
            scratch = self.of.names.get((expr.buffer, expr.index))
            if scratch is None:
                return Load(expr.buffer, self.index(expr.buffer, expr.index), expr.dtype)
            return Load(scratch, self._in_scratch(_distance(expr.dtype)), expr.dtype)
        return expr

    def _in_scratch(self, distance: int) -> Index:
        blocks = self.of.blocks
        unit = () if blocks.unit is None else ((blocks.unit, 1),)
        return Index(((self.of.nest.column, distance), (blocks.along, self.of.unit_step), *unit))

    def index(self, buffer: str, index: Index) -> Index:
        """The index of an access, with a unit step where vectors are along adjacent elements."""
        starts, along = self.of.starts, self.of.blocks.along
        adjacent = not self.of.blocks.width and self.of.nest.steps[buffer, index].get(along) == 1
        terms = tuple((var, 1 if adjacent and var == along else step) for var, step in index.terms)
        return Index(terms, index.offset, tuple((starts[var], step) for var, step in terms if var in starts))


def _distance(dtype: DType) -> int:
    """The row stride of a block in elements."""
    return int((_RUN + _APART) // dtype.itemsize)


def _parts(whole: Expr, part: Expr) -> Expr:
    """The number of parts of ``whole``, the last one possibly smaller than ``part``."""
    up = binary(scalar.sub, binary(scalar.add, whole, part), Const(1, int64))
    return binary(scalar.floor_divide, up, part)
