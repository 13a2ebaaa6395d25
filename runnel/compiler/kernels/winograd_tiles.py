"""Kernels over tiles of a Winograd convolution, shared by the convolution and its gradient.

Tables hold the offset of each tile's inputs and the rows of the result (pixels) that it computes. The last tile is
repeated until its block is full. Transforms are small constant matrices, applied to values in registers as
straight-line statements. They process LANES channels at a time; where the number of channels is not a multiple of
LANES, the last step overlaps the one before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from runnel.backends import context
from runnel.compiler.lowering.operands import Operands
from runnel.compiler.lowering.parts import Parts, binary
from runnel.compiler.plan_ir.calls import Call
from runnel.core.avals import Shape, row_major
from runnel.core.dtypes import DType, int32, int64
from runnel.core.lengths import expected
from runnel.core.records import record
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.ops.convolution.winograd import INPUT, OUTPUTS, SPAN, tiles

Row = Sequence[Fraction]


class StraightLine:
    """Straight-line code under construction: each intermediate value gets a name, beginning with ``prefix``."""

    def __init__(self, prefix: str, dtype: DType) -> None:
        self.prefix = prefix
        self.dtype = dtype
        self.statements: list[ir.Stmt] = []

    def let(self, value: ir.Expr) -> ir.Ref:
        name = f"{self.prefix}{len(self.statements)}"
        self.statements.append(ir.Let(name, value))
        return ir.Ref(name, self.dtype)

    def multiply(self, matrix: Sequence[Row], values: Sequence[ir.Expr]) -> list[ir.Expr]:
        """matrix · values. Columns that are equal up to signs share sums and differences of their values; rows that are
        share the parts in which they agree and differ."""
        recipe = _recipe(tuple(map(tuple, matrix)))
        known = list(values)
        for op, operands, factor in recipe.steps:
            read: list[ir.Expr] = [known[i] for i in operands]
            if factor is not None:
                read.insert(1, ir.Const(float(self.dtype.numpy.type(float(factor))), self.dtype))
            known.append(self.let(ir.Apply(op, tuple(read), self.dtype)))
        return [known[i] for i in recipe.results]


class _Step(NamedTuple):
    """``op`` of earlier values, by number; ``factor`` is its second operand, if it is not None."""

    op: scalar.ScalarOp
    operands: tuple[int, ...]
    factor: Fraction | None = None


class _Recipe:
    """The steps that apply a matrix, and the numbers of the results. Values of steps are numbered after the
    operands."""

    def __init__(self, operands: int) -> None:
        self.operands = operands
        self.steps: list[_Step] = []
        self.results: list[int] = []

    def step(self, op: scalar.ScalarOp, operands: tuple[int, ...], factor: Fraction | None = None) -> int:
        self.steps.append(_Step(op, operands, factor))
        return self.operands + len(self.steps) - 1

    def add(self, x: int, y: int) -> int:
        return self.step(scalar.add, (x, y))

    def subtract(self, x: int, y: int) -> int:
        return self.step(scalar.sub, (x, y))

    def combination(self, row: Row, values: Sequence[int]) -> int:
        """Sum row·values, the terms with coefficients ±1 first, then a fused multiply-add for each other one."""
        pairs = [(c, v) for c, v in zip(row, values, strict=True) if c]
        (c, v), *rest = sorted(pairs, key=lambda t: (abs(t[0]) != 1, -t[0]))
        total = v if c == 1 else self.step(scalar.mul, (v,), c)
        for c, v in rest:
            if c == 1:
                total = self.add(total, v)
            elif c == -1:
                total = self.subtract(total, v)
            else:
                total = self.step(scalar.fma, (v, total), c)
        return total

    def by_columns(self, columns: list[list[Fraction]], twins: dict[int, int]) -> None:
        new_columns: list[list[Fraction]] = []
        new_values: list[int] = []
        for j, column in enumerate(columns):
            other = twins.get(j)
            if other is None:
                if j not in twins.values():
                    new_columns.append(column)
                    new_values.append(j)
                continue
            new_columns += _equal_and_opposite(column, columns[other])
            new_values += [self.add(j, other), self.subtract(j, other)]
        rows = [[column[i] for column in new_columns] for i in range(len(columns[0]))]
        self.results = [self.combination(row, new_values) for row in rows]

    def by_rows(self, matrix: Sequence[Row]) -> None:
        twins, values = _twins(matrix), range(self.operands)
        results: dict[int, int] = {}
        for i, row in enumerate(matrix):
            other = twins.get(i)
            if other is not None:
                equal, opposite = _equal_and_opposite(row, matrix[other])
                same, different = self.combination(equal, values), self.combination(opposite, values)
                results[i], results[other] = self.add(same, different), self.subtract(same, different)
            elif i not in results:
                results[i] = self.combination(row, values)
        self.results = [results[i] for i in range(len(matrix))]


@functools.cache
def _recipe(matrix: tuple[tuple[Fraction, ...], ...]) -> _Recipe:
    columns = [list(column) for column in zip(*matrix, strict=True)]
    twins = _twins(columns)
    recipe = _Recipe(len(columns))
    if twins:
        recipe.by_columns(columns, twins)
    else:
        recipe.by_rows(matrix)
    return recipe


def _equal_and_opposite(x: Row, y: Row) -> tuple[list[Fraction], list[Fraction]]:
    """Return the entries of ``x`` where ``y`` has the same, and the others; 0 elsewhere."""
    equal = [c if c == d else Fraction(0) for c, d in zip(x, y, strict=True)]
    return equal, [c if c != d else Fraction(0) for c, d in zip(x, y, strict=True)]


def _twins(rows: Sequence[Row]) -> dict[int, int]:
    """Pair rows that are equal up to the signs of entries, with entries of both kinds: first → second."""
    twins: dict[int, int] = {}
    paired: set[int] = set()
    for i, row in enumerate(rows):
        for j in range(i + 1, len(rows)):
            pairs = [(c, d) for c, d in zip(row, rows[j], strict=True) if c or d]
            alike = all(abs(c) == abs(d) for c, d in pairs)
            if alike and len({c == d for c, d in pairs}) == 2 and i not in paired and j not in paired:
                twins[i] = j
                paired |= {i, j}
    return twins


Table = np.ndarray[Any, np.dtype[np.int32]]
Grid = Sequence[Sequence[ir.Expr]]

PLANES = SPAN * SPAN
PIXELS = OUTPUTS * OUTPUTS
SHARE = 3 / 4  # of the second-level cache for a block's two matrices; the rest is for streamed data
STEP, MOST = 6, 48  # tiles of a block: a multiple of the product's tile rows, at most its block of rows
OUTSIDE = -1  # the pixel of a result outside the image


def block_tiles(channels: int, filters: int, count: int, dtype: DType) -> int:
    """Return the number of tiles in a block, which minimizes the cache traffic per tile: its part of reading the 36
    matrices of filters, and the block's own two matrices, written and read again, where they are too large."""
    room = SHARE * context.current().cache
    own, shared = (PLANES * n * dtype.itemsize for n in (channels + filters, channels * filters))

    def traffic(block: int) -> float:
        return shared / block + (2.0 * own if block * own > room else 0.0)

    limit = min(range(2 * STEP, MOST + 1, STEP), key=traffic)
    return limit if count >= 4 * limit else max(-(-count // max(-(-count // limit), 1)), 1)


def tile_tables(shape: Shape, strides: Shape) -> tuple[Table, Table]:
    """Return, for each tile of results of ``shape`` (N, H, W, ·), the first element of x, and its 16 pixels."""
    n, height, width, _ = shape
    grid = (n, tiles(height), tiles(width))
    image, row, column = np.meshgrid(*map(np.arange, grid), indexing="ij", sparse=True)
    starts = image * strides[0] + row * OUTPUTS * strides[1] + column * OUTPUTS * strides[2]
    y = row[..., None, None] * OUTPUTS + np.arange(OUTPUTS)[:, None]
    x = column[..., None, None] * OUTPUTS + np.arange(OUTPUTS)
    pixels = (image[..., None, None] * height + y) * width + x
    pixels = np.where((y < height) & (x < width), pixels, OUTSIDE)
    pixels = np.broadcast_to(pixels, (*grid, OUTPUTS, OUTPUTS)).reshape(-1, PIXELS)
    return np.broadcast_to(starts, grid).reshape(-1).astype(np.int32), pixels.astype(np.int32)


Gathered = tuple[tuple[ir.Expr, ir.Stride], ...]


@record
class FirstTile:
    """The number of a block's first tile: ``before`` plus ``size`` for each earlier block."""

    block: ir.Var
    size: int
    before: ir.Expr | None = None

    def terms(self, parts: Parts, each: int) -> tuple[tuple[ir.Var, ir.Stride], ...]:
        """Return the terms of an index into a table with ``each`` entries for a tile."""
        return ((self.block, parts.param(self.size * each)),)

    def gathered(self, parts: Parts, each: int) -> Gathered:
        """Return the rest of that index."""
        return () if self.before is None else ((self.before, 1 if each == 1 else parts.param(each)),)


class TileKernel(Parts):
    """The parts of a kernel whose loops are over blocks of tiles of ``x``."""

    def __init__(self, node: Value, x: Value, operands: Operands, filters: int) -> None:
        super().__init__()
        self.node = node
        self.dtype = node.aval.dtype
        self.channels, self.filters = x.aval.shape[3], filters
        allocation, offset, self.strides = operands.view(x)
        if self.strides[3] != 1 and self.channels != 1:
            allocation, offset = operands.dense(x)
            self.strides = row_major(x.aval.shape)
        self.buffer("x", allocation, offset)

    def grid(self, code: StraightLine, size: int, load: Callable[[int, int], ir.Expr]) -> Grid:
        return [[code.let(load(r, s)) for s in range(size)] for r in range(size)]

    def both_ways(self, code: StraightLine, matrix: Any, values: Grid) -> Grid:
        """matrix · values · matrixᵀ."""
        half = [code.multiply(matrix, column) for column in zip(*values, strict=True)]
        return [code.multiply(matrix, row) for row in zip(*half, strict=True)]

    def lane_steps(self, begin: ir.Expr, end: ir.Expr, extent: int, prefix: str) -> LaneSteps:
        """Return the channels from ``begin`` to ``end``, LANES at a time; the last step may overlap the one before."""
        step_var = ir.Var(f"{prefix}_step")
        if extent < ir.LANES:
            return LaneSteps(step_var, (), 1, extent, (), begin)
        width = ir.Const(ir.LANES, int64)
        count = binary(scalar.add, binary(scalar.sub, end, begin), ir.Const(ir.LANES - 1, int64))
        number = ir.Let(f"{prefix}_steps", binary(scalar.floor_divide, count, width))
        here = binary(scalar.add, begin, binary(scalar.mul, ir.Position(step_var, int64), width))
        last = binary(scalar.sub, end, width)
        first = ir.Let(f"{prefix}_first", binary(scalar.minimum, here, last))
        return LaneSteps(step_var, (number,), ir.Ref(number.name, int64), ir.LANES, (first,), ir.Ref(first.name, int64))

    def inputs(self, block: int, first: FirstTile, size: int, channel: Gathered = ()) -> tuple[ir.Stmt, ...]:
        """Compute V, the transformed inputs of a block's tiles, for ``size`` channels from ``channel`` on."""
        terms, tile, lane = first.terms(self, 1), ir.Var("tile"), ir.Var("c")
        start = ir.Load("starts", ir.Index((*terms, (tile, 1)), 0, first.gathered(self, 1)), int32)
        where = ir.Let("start", ir.Apply(scalar.cast, (start,), int64))
        channels = self.param(size)
        lane_steps = self.lane_steps(ir.Const(0, int64), channels, size, "c")
        code = StraightLine("i", self.dtype)

        def load(r: int, s: int) -> ir.Expr:
            step = self.param(r * self.strides[1] + s * self.strides[2])
            place = ((ir.Ref("start", int64), 1), (lane_steps.first, 1), *channel)
            return ir.Load("x", ir.Index(((lane, 1),), step, place), self.dtype)

        planes = self.both_ways(code, INPUT, self.grid(code, SPAN, load))
        self.store_planes(code, "v", planes, block * size, tile, channels, lane, lane_steps)
        return (
            *lane_steps.before,
            ir.For(tile, 0, self.param(block), "seq", (where, lane_steps.loop(lane, code.statements))),
        )

    def store_planes(
        self,
        code: StraightLine,
        name: str,
        planes: Grid,
        step: int,
        tile: ir.Var,
        row: ir.Param,
        lane: ir.Var,
        lane_steps: LaneSteps,
    ) -> None:
        for e in range(PLANES):
            at = ir.Index(((tile, row), (lane, 1)), self.param(e * step), ((lane_steps.first, 1),))
            code.statements.append(ir.Store(name, at, planes[e // SPAN][e % SPAN]))

    def pixel_rows(self, first: FirstTile, tile: ir.Var, table: str = "pixels", prefix: str = "row") -> list[ir.Stmt]:
        """Return the entries of ``table`` for a tile's 16 pixels, as row0 … row15."""
        terms, gathered = first.terms(self, PIXELS), first.gathered(self, PIXELS)
        rows: list[ir.Stmt] = []
        for p in range(PIXELS):
            row = ir.Load(table, ir.Index((*terms, (tile, PIXELS)), p, gathered), int32)
            rows.append(ir.Let(f"{prefix}{p}", ir.Apply(scalar.cast, (row,), int64)))
        return rows

    def tile_call(self, body: tuple[ir.Stmt, ...], shape: tuple[int, int], count: int, split: str = "rows") -> Call:
        """Return the call over ``count`` tiles."""
        flops = 2.0 * expected(PLANES * count * self.channels * self.filters)
        return self.call("winograd", body, shape, flops, self.node, split)


@record
class LaneSteps:
    """A loop over channels: the statements ``before`` it and of ``each`` step; the step's ``first`` channel and number
    of ``lanes``."""

    step_var: ir.Var
    before: tuple[ir.Stmt, ...]
    number: int | ir.Ref
    lanes: int
    each: tuple[ir.Stmt, ...]
    first: ir.Expr

    def loop(self, lane: ir.Var, statements: list[ir.Stmt]) -> ir.Stmt:
        lanes = ir.For(lane, 0, self.lanes, "vec", tuple(statements))
        return ir.For(self.step_var, 0, self.number, "seq", (*self.each, lanes))
