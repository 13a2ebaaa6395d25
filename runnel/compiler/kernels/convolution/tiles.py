"""Kernels over tiles of a Winograd convolution: shared by forward and gradient.

Tables have the offset of each tile's inputs and the rows of the result (pixels) that it computes; the last tile is
repeated until its block is full. Transforms run LANES channels at a time; where channels are not a multiple, the last
step overlaps the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.backends import context
from runnel.compiler.kernels.allocations import Call
from runnel.compiler.kernels.convolution.transforms import StraightLine
from runnel.compiler.kernels.operands import Operands
from runnel.compiler.kernels.parts import Parts, binary
from runnel.core.avals import Shape, row_major
from runnel.core.dtypes import DType, int32, int64
from runnel.core.records import record
from runnel.graph.node import Value
from runnel.loops import scalar
from runnel.loops.ir import (
    LANES,
    Apply,
    Const,
    Expr,
    For,
    Index,
    Let,
    Load,
    Param,
    Position,
    Ref,
    Stmt,
    Store,
    Var,
)
from runnel.ops.winograd import INPUT, OUTPUTS, SPAN, tiles

Table = np.ndarray[Any, np.dtype[np.int32]]
Grid = Sequence[Sequence[Expr]]

PLANES = SPAN * SPAN
PIXELS = OUTPUTS * OUTPUTS
SHARE = 3 / 4  # of the second-level cache for a block's two matrices; the rest is for streamed data
STEP, MOST = 6, 48  # tiles of a block: a multiple of the product's tile rows, at most its block of rows
OUTSIDE = -1  # the pixel of a result outside of the image


def block_tiles(channels: int, filters: int, count: int, dtype: DType) -> int:
    """The number of tiles in a block, which minimises the cache traffic per tile: its part of reading the 36 matrices
    of filters, and the block's own two matrices, written and read again, where they are too large."""
    room = SHARE * context.current().cache
    own, shared = (PLANES * n * dtype.itemsize for n in (channels + filters, channels * filters))

    def traffic(block: int) -> float:
        return shared / block + (2.0 * own if block * own > room else 0.0)

    limit = min(range(2 * STEP, MOST + 1, STEP), key=traffic)
    return limit if count >= 4 * limit else max(-(-count // max(-(-count // limit), 1)), 1)


def tile_tables(shape: Shape, strides: Shape) -> tuple[Table, Table]:
    """For each tile of results of ``shape`` (N, H, W, ·) the first element of x, and its 16 pixels."""
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

    def grid(self, code: StraightLine, size: int, load: Callable[[int, int], Expr]) -> Grid:
        return [[code.let(load(r, s)) for s in range(size)] for r in range(size)]

    def both_ways(self, code: StraightLine, matrix: Any, values: Grid) -> Grid:
        """matrix · values · matrixᵀ."""
        half = [code.multiply(matrix, column) for column in zip(*values, strict=True)]
        return [code.multiply(matrix, row) for row in zip(*half, strict=True)]

    def lane_steps(self, begin: Expr, end: Expr, extent: int, prefix: str) -> LaneSteps:
        """The channels from ``begin`` to ``end``, LANES at a time; the last step may overlap the one before."""
        step_var = Var(f"{prefix}_step")
        if extent < LANES:
            return LaneSteps(step_var, (), 1, extent, (), begin)
        width = Const(LANES, int64)
        count = binary(scalar.add, binary(scalar.sub, end, begin), Const(LANES - 1, int64))
        number = Let(f"{prefix}_steps", binary(scalar.floor_divide, count, width))
        here = binary(scalar.add, begin, binary(scalar.mul, Position(step_var, int64), width))
        last = binary(scalar.sub, end, width)
        first = Let(f"{prefix}_first", binary(scalar.minimum, here, last))
        return LaneSteps(step_var, (number,), Ref(number.name, int64), LANES, (first,), Ref(first.name, int64))

    def inputs(self, block: int, tile_terms: tuple[tuple[Var, int], ...], channels: Param) -> tuple[Stmt, ...]:
        """V: the transformed inputs of a block's tiles. ``tile_terms`` are the index of the block's first tile."""
        terms = tuple((var, self.param(step)) for var, step in tile_terms)
        tile, lane = Var("tile"), Var("c")
        start = Load("starts", Index((*terms, (tile, 1))), int32)
        where = Let("start", Apply(scalar.cast, (start,), int64))
        lane_steps = self.lane_steps(Const(0, int64), channels, self.channels, "c")
        code = StraightLine("i", self.dtype)

        def load(r: int, s: int) -> Expr:
            step = self.param(r * self.strides[1] + s * self.strides[2])
            return Load("x", Index(((lane, 1),), step, ((Ref("start", int64), 1), (lane_steps.first, 1))), self.dtype)

        planes = self.both_ways(code, INPUT, self.grid(code, SPAN, load))
        self.store_planes(code, "v", planes, block * self.channels, tile, channels, lane, lane_steps)
        return (
            *lane_steps.before,
            For(tile, 0, self.param(block), "seq", (where, lane_steps.loop(lane, code.statements))),
        )

    def store_planes(
        self,
        code: StraightLine,
        name: str,
        planes: Grid,
        step: int,
        tile: Var,
        row: Param,
        lane: Var,
        lane_steps: LaneSteps,
    ) -> None:
        for e in range(PLANES):
            at = Index(((tile, row), (lane, 1)), self.param(e * step), ((lane_steps.first, 1),))
            code.statements.append(Store(name, at, planes[e // SPAN][e % SPAN]))

    def pixel_rows(
        self, tile_terms: tuple[tuple[Var, int], ...], tile: Var, table: str = "pixels", prefix: str = "row"
    ) -> list[Stmt]:
        """The entries of ``table`` for a tile's 16 pixels, as row0 … row15. ``tile_terms`` count tiles."""
        terms = tuple((var, self.param(step * PIXELS)) for var, step in tile_terms)
        rows: list[Stmt] = []
        for p in range(PIXELS):
            row = Load(table, Index((*terms, (tile, PIXELS)), p), int32)
            rows.append(Let(f"{prefix}{p}", Apply(scalar.cast, (row,), int64)))
        return rows

    def tile_call(self, body: tuple[Stmt, ...], shape: tuple[int, int], count: int, split: str = "rows") -> Call:
        """The call over ``count`` tiles."""
        flops = 2.0 * PLANES * count * self.channels * self.filters
        return self.call("winograd", body, shape, flops, self.node, split)


@record
class LaneSteps:
    """A loop over channels: the statements ``before`` it and of ``each`` step; the step's ``first`` channel and number
    of ``lanes``."""

    step_var: Var
    before: tuple[Stmt, ...]
    number: int | Ref
    lanes: int
    each: tuple[Stmt, ...]
    first: Expr

    def loop(self, lane: Var, statements: list[Stmt]) -> Stmt:
        lanes = For(lane, 0, self.lanes, "vec", tuple(statements))
        return For(self.step_var, 0, self.number, "seq", (*self.each, lanes))
