"""Tiled transpose: kernels that read along another axis than they write, block by block through scratch memory.

A nest traverses its result in order. It would gather an operand whose adjacent elements lie along another axis from as
many cache lines as a vector has lanes, and the cache would evict the lines before the kernel uses their other
elements. :func:`through_scratch` rewrites such a kernel: for each block of both axes it copies the operand's rows into
scratch memory vector by vector, and the nest's own statements gather from there. Where the result's last axis is too
short for vectors, the vectors lie along the operand's axis instead, and the kernel scatters the result. The last block
of an axis is moved back to end with the axis: some elements are computed twice, with the same value.
"""

from __future__ import annotations

from typing import Final

from runnel.compiler.lowering.parts import Parts, binary, count, named
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call, hull
from runnel.core.dtypes import DType, int64
from runnel.core.records import record, replace
from runnel.loops import ir, scalar, uses

_WIDTHS: Final = (16, 8)  # columns of a block
_SHORTEST: Final = 16  # least extent of an axis to vectorize along
_SHORT: Final = 32  # an axis of at most this extent is combined with the next one
_MANY_ROWS: Final = 32  # enough to partition among threads

Steps = dict[ir.Var, int]


@record
class Nest:
    """A kernel that is a perfect nest around a loop over vectors: the extent of each variable, outermost first, and the
    step of each access along them."""

    call: Call
    loops: tuple[ir.For, ...]
    extents: Steps
    steps: dict[uses.Access, Steps]

    @property
    def body(self) -> tuple[ir.Stmt, ...]:
        return self.loops[-1].body

    @property
    def column(self) -> ir.Var:
        return self.loops[-1].var


@record
class Tiling:
    """``turned`` are the accesses through scratch memory: along ``along``, or along the whole of ``unit`` and then
    ``along``. A ``width`` of 0 means that there are too few columns for that."""

    turned: tuple[uses.Access, ...]
    along: ir.Var
    unit: ir.Var | None
    rows: ir.Var  # partitioned among threads
    width: int


def nest_of(call: Call) -> Nest | None:
    """Return the kernel's loops, if it is a nest."""
    loops: list[ir.For] = []
    body = call.kernel.body
    while len(body) == 1 and isinstance(body[0], ir.For):
        loops.append(body[0])
        body = body[0].body
    if len(loops) < 2 or loops[-1].kind != "vec" or not all(isinstance(s, ir.Let | ir.Store) for s in body):
        return None
    values = dict(zip(call.kernel.params, call.params, strict=True))
    ends: dict[ir.Bound, int] = {ir.RangeBound.I1: call.rows, ir.RangeBound.J1: call.columns}
    ends.update(values.items())
    accesses = uses.accesses(body)
    if any(loop.end not in ends for loop in loops) or any(index.gathered for _, index in accesses):
        return None
    steps: dict[uses.Access, Steps] = {}
    for access in accesses:
        along = steps[access] = {}
        for var, step in access[1].terms:
            along[var] = along.get(var, 0) + (step if isinstance(step, int) else values[step])
    return Nest(call, tuple(loops), {loop.var: ends[loop.end] for loop in loops}, steps)


def tiling_of(nest: Nest) -> Tiling | None:
    """Return the tiling for the operands with the same axes as the first one that is transposed against the result."""
    extents, column = nest.extents, nest.column
    if any(a.writes and a.allocation in _read(nest.call) for a in nest.call.accesses):
        return None  # an in-place update must not be done twice
    stored = uses.stored_buffers(nest.body)
    across = {
        access: steps
        for access, steps in nest.steps.items()
        if access[0] not in stored and abs(steps.get(column, 0)) > 1 and 1 in steps.values()
    }
    if not across:
        return None
    along = max((v for v, step in next(iter(across.values())).items() if step == 1), key=lambda v: extents[v])
    turned = tuple(access for access, steps in across.items() if steps.get(along) == 1)
    width = _width(extents[column])
    unit: ir.Var | None = None
    if width and extents[along] < _SHORT:
        beyond = [v for v in extents if all(across[a].get(v) == extents[along] for a in turned) and v != column]
        unit, along = (along, beyond[0]) if beyond else (None, along)
    if extents[along] * (1 if unit is None else extents[unit]) < _SHORTEST:
        return None
    shared = [v for v in extents if v not in (column, unit)]
    rows = shared[0] if extents[shared[0]] >= _MANY_ROWS else max(shared, key=lambda v: extents[v])
    return Tiling(turned if width else (), along, unit, rows, width)


def _width(columns: int) -> int:
    """Return the largest width with which few columns are computed twice."""
    fitting = [n for n in _WIDTHS if n <= columns]
    return min(fitting, key=lambda n: (-(-columns // n) * n - columns) * 8 // columns, default=0)


def _read(call: Call) -> list[Allocation]:
    return [a.allocation for b, a in zip(call.kernel.buffers, call.accesses, strict=True) if b.mode != "out"]


_RUN: Final = 256  # bytes of a block's row
_APART: Final = 64  # bytes between two rows, so that they begin in different sets of the cache
_EVEN: Final = 512  # least extent whose blocks are whole vectors, with some elements computed twice


def through_scratch(call: Call) -> Call:
    """Rewrite ``call`` so that it first copies blocks of transposed operands into scratch memory."""
    nest = nest_of(call)
    blocks = None if nest is None else tiling_of(nest)
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
        self.unit_step: ir.Stride = 1 if blocks.unit is None else self.parts.param(self.unit)
        self.longest = _RUN // max((dtype.itemsize for dtype in self.dtypes()), default=1)

    def dtypes(self) -> list[DType]:
        of = {b.name: b.dtype for b in self.nest.call.kernel.buffers}
        return [of[buffer] for buffer, _ in self.blocks.turned]

    def call(self) -> Call:
        """Return the kernel and its call."""
        nest, blocks, old = self.nest, self.blocks, self.nest.call
        before, body = self._blocks()
        inner = [v for v in nest.extents if v not in (nest.column, blocks.unit, blocks.along, blocks.rows)]
        for var in reversed(inner):
            body = (ir.For(var, 0, self.parts.param(nest.extents[var]), "seq", body),)
        if blocks.rows != blocks.along:
            body = (ir.For(blocks.rows, ir.RangeBound.I0, ir.RangeBound.I1, "seq", body),)
        parts = self.parts
        parts.accesses[:] = self._accesses()
        for access, dtype in zip(blocks.turned, self.dtypes(), strict=True):
            parts.scratch(self.names[access], dtype, blocks.width * _distance(dtype))
        prefix = old.kernel.name.rsplit("_", 1)[0]
        kernel = named(prefix, tuple(parts.buffers), tuple(parts.params), (*before, *body), old.kernel.doc)
        rows = nest.extents[blocks.rows]
        return replace(old, kernel=kernel, accesses=parts.accesses, params=parts.values, rows=rows, split="rows")

    # Loops ------------------------------------------------------------------------------------------------------------

    def _blocks(self) -> tuple[list[ir.Stmt], tuple[ir.Stmt, ...]]:
        """Return all blocks of both axes, and the values bound before them."""
        if not self.blocks.width:
            return self._along((self._scattering(),))
        body = (*self._reading(), self._writing())
        if self.blocks.unit is not None:
            return self._along(self._columns(body))
        before, body = self._along(body)
        return before, self._columns(body)  # the operand's rows are read as a whole

    def _columns(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """Run ``body`` for each block of columns."""
        extent, width = self.nest.extents[self.nest.column], self.blocks.width
        number, block = self.parts.param(-(-extent // width)), ir.Var("columns")
        first = binary(scalar.mul, ir.Position(block, int64), ir.Const(width, int64))
        start = ir.Let("column", binary(scalar.minimum, first, self.parts.param(extent - width)))
        return (ir.For(block, 0, number, "seq", (start, *body)),)

    def _along(self, body: tuple[ir.Stmt, ...]) -> tuple[list[ir.Stmt], tuple[ir.Stmt, ...]]:
        """Run ``body`` for each block of the other axis; bind before all loops the length of a block, and
        the number of blocks, which have equal lengths."""
        var, extent = self.blocks.along, self.nest.extents[self.blocks.along]
        shared = self.blocks.rows == var
        first: ir.Expr = ir.RangeBound.I0 if shared else ir.Const(0, int64)
        whole: ir.Expr = binary(scalar.sub, ir.RangeBound.I1, ir.RangeBound.I0) if shared else self.parts.param(extent)
        longest, grain = max(self.longest // self.unit, 1), ir.LANES if extent >= _EVEN and self.unit == 1 else 1
        most, even = self.parts.param(longest), self.parts.param(grain)
        before: list[ir.Stmt] = [
            ir.Let("whole", whole),
            ir.Let("blocks", _parts(count("whole"), most)),
            ir.Let("equal", _parts(count("whole"), binary(scalar.maximum, count("blocks"), ir.Const(1, int64)))),
            ir.Let("grains", _parts(count("equal"), even)),
            ir.Let("length", binary(scalar.minimum, binary(scalar.mul, count("grains"), even), count("whole"))),
            ir.Let("run", binary(scalar.mul, count("length"), self.parts.param(self.unit))),
            ir.Let("last", binary(scalar.sub, binary(scalar.add, first, count("whole")), count("length"))),
        ]
        block = ir.Var("block")
        at = binary(scalar.add, first, binary(scalar.mul, ir.Position(block, int64), count("length")))
        start = ir.Let("begin", binary(scalar.minimum, at, count("last")))
        return before, (ir.For(block, 0, count("blocks"), "seq", (start, *body)),)

    def _reading(self) -> list[ir.Stmt]:
        """Copy the operands' blocks to scratch memory."""
        column, run = ir.Var("c"), ir.Var("r")
        statements: list[ir.Stmt] = []
        for access, dtype in zip(self.blocks.turned, self.dtypes(), strict=True):
            buffer, index = access
            terms = tuple(t for t in index.terms if t[0] not in (self.nest.column, self.blocks.along, self.blocks.unit))
            step = next(step for var, step in index.terms if var == self.nest.column)
            where = ((count("column"), step), (count("begin"), self.unit_step))
            load = ir.Load(buffer, ir.Index((*terms, (column, step), (run, 1)), index.offset, where), dtype)
            target = ir.Index(((column, _distance(dtype)), (run, 1)))
            loop = ir.For(run, 0, count("run"), "vec", (ir.Store(self.names[access], target, load),))
            statements.append(ir.For(column, 0, self.blocks.width, "seq", (loop,)))
        return statements

    def _writing(self) -> ir.Stmt:
        """Return the nest's statements for a block."""
        blocks, moved = self.blocks, _Moved(self)
        body: ir.Stmt = ir.For(
            self.nest.column, 0, blocks.width, "vec", tuple(moved.statement(s) for s in self.nest.body)
        )
        if blocks.unit is not None:
            body = ir.For(blocks.unit, 0, self.parts.param(self.unit), "seq", (body,))
        return ir.For(blocks.along, 0, count("length"), "seq", (body,))

    def _scattering(self) -> ir.Stmt:
        """Return the nest's statements, with vectors along the other axis."""
        column, along, moved = self.nest.column, self.blocks.along, _Moved(self)
        vectors = ir.For(along, 0, count("length"), "vec", tuple(moved.statement(s) for s in self.nest.body))
        return ir.For(column, 0, self.parts.param(self.nest.extents[column]), "seq", (vectors,))

    # Memory -----------------------------------------------------------------------------------------------------------

    def _accesses(self) -> list[BufferAccess]:
        """Return the accesses of the nest, with the new rows."""
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
        self.rewritten: dict[int, ir.Expr] = {}

    def statement(self, stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.Let):
            return ir.Let(stmt.name, self.value(stmt.value))
        if isinstance(stmt, ir.Store):
            return ir.Store(stmt.buffer, self.index(stmt.buffer, stmt.index), self.value(stmt.value))
        return stmt

    def value(self, expr: ir.Expr) -> ir.Expr:
        """Return the expression in the block; shared subexpressions remain shared."""
        new = self.rewritten.get(id(expr))
        if new is None:
            new = self.rewritten[id(expr)] = self._value(expr)
        return new

    def _value(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Apply):
            return ir.Apply(expr.op, tuple(self.value(x) for x in expr.args), expr.dtype)
        if isinstance(expr, ir.Position) and expr.var in self.of.starts:
            start: ir.Expr = self.of.starts[expr.var]
            if expr.dtype is not int64:
                start = ir.Apply(scalar.cast, (start,), expr.dtype)
            return binary(scalar.add, start, expr)
        if isinstance(expr, ir.Load):
            scratch = self.of.names.get((expr.buffer, expr.index))
            if scratch is None:
                return ir.Load(expr.buffer, self.index(expr.buffer, expr.index), expr.dtype)
            return ir.Load(scratch, self._in_scratch(_distance(expr.dtype)), expr.dtype)
        return expr

    def _in_scratch(self, distance: int) -> ir.Index:
        blocks = self.of.blocks
        unit = () if blocks.unit is None else ((blocks.unit, 1),)
        return ir.Index(((self.of.nest.column, distance), (blocks.along, self.of.unit_step), *unit))

    def index(self, buffer: str, index: ir.Index) -> ir.Index:
        """Return the index of an access, with a unit step where vectors are along adjacent elements."""
        starts, along = self.of.starts, self.of.blocks.along
        adjacent = not self.of.blocks.width and self.of.nest.steps[buffer, index].get(along) == 1
        terms = tuple((var, 1 if adjacent and var == along else step) for var, step in index.terms)
        return ir.Index(terms, index.offset, tuple((starts[var], step) for var, step in terms if var in starts))


def _distance(dtype: DType) -> int:
    """Return the row stride of a block in elements."""
    return int((_RUN + _APART) // dtype.itemsize)


def _parts(whole: ir.Expr, part: ir.Expr) -> ir.Expr:
    """Return the number of parts of ``whole``, the last one possibly smaller than ``part``."""
    up = binary(scalar.sub, binary(scalar.add, whole, part), ir.Const(1, int64))
    return binary(scalar.floor_divide, up, part)
