"""Gradients for a Winograd convolution's filters as a kernel: transforms, 36 small products of blocks of tiles, and the
transform of their sums back to filters.

The rows of a call are *units*: a split-K part (a fixed part of the sum over tiles) for a block of channels and filters.
For each block of its tiles, a unit transforms the inputs to V[36][tile][C] and the gradients of the results to
D[36][tile][K], and adds their products, plane by plane, to the sums M[36][C][K], which stay in the thread's caches. It
ends with its 3×3 filters. A result outside the image has no gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.compiler.kernels.winograd_tiles import (
    OUTSIDE,
    PIXELS,
    PLANES,
    FirstTile,
    StraightLine,
    TileKernel,
    block_tiles,
    tile_tables,
)
from runnel.compiler.lowering.operands import OffsetTables, Operands, values_of
from runnel.compiler.lowering.parts import count
from runnel.compiler.lowering.protocol import Lowering, Request
from runnel.compiler.plan_ir.calls import Allocation, Call
from runnel.compiler.plan_ir.strides import Strided
from runnel.core.avals import row_major
from runnel.core.dtypes import bool_, int32, int64
from runnel.core.errors import ShapeError
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.ops.convolution.winograd import FILTER, KERNEL, OUTPUT, OUTPUTS, SPAN, blocks_of

UNIT, BLOCK, PLANE, TILE, CHANNEL, LANE = (ir.Var(n) for n in ("unit", "block", "plane", "tile", "channel", "k"))


class _Gradient(TileKernel):
    """The kernel of one node; ``size`` are the channels and filters of a unit."""

    def __init__(self, node: Value, operands: Operands, result: Allocation) -> None:
        x, self.dy = node.inputs
        super().__init__(node, x, operands, self.dy.aval.shape[-1])
        self.splits = node.aval.shape[0]
        counts = blocks_of(self.channels), blocks_of(self.filters)
        self.size = self.channels // counts[0], self.filters // counts[1]
        starts, pixels = tile_tables(self.dy.aval.shape, self.strides)
        share = -(-len(starts) // self.splits)
        self.tiles = block_tiles(*self.size, share, self.dtype)
        self.blocks = -(-share // self.tiles)
        self._declare_tiles(starts, pixels, share, operands)
        self.columns = self._units(*counts)
        self.table("units", np.stack(self.columns, -1))
        for name, n in (("v", self.tiles * self.size[0]), ("d", self.tiles * self.size[1]), ("m", self.planes_step)):
            self.scratch(name, self.dtype, PLANES * n)
        self.buffer("du", result, 0, "out")
        self.first = FirstTile(BLOCK, self.tiles, count("tile_at"))

    @property
    def planes_step(self) -> int:
        """Elements of a plane of sums."""
        return self.size[0] * self.size[1]

    def _declare_tiles(self, starts: Any, pixels: Any, share: int, operands: Operands) -> None:
        """Declare tables of each part's tiles; the last one is repeated until its block is full."""
        all_tiles = np.arange(self.blocks * self.tiles)
        numbers = np.arange(self.splits)[:, None] * share + all_tiles
        is_real = (all_tiles < share) & (numbers < len(starts))
        numbers = np.minimum(numbers, len(starts) - 1)
        allocation, offset, begins = _rows(self.dy, operands)
        self.buffer("dy", allocation, offset)
        self.table("starts", starts[numbers], int32)
        chosen = np.where(is_real[..., None], pixels[numbers], OUTSIDE)
        self.table("begins", np.where(chosen == OUTSIDE, OUTSIDE, begins[chosen]), int32)

    def _units(self, channels: int, filters: int) -> list[Any]:
        """Return for each unit its first tile, channel, filter and result."""
        part, *block = np.indices((self.splits, channels, filters), np.int64).reshape(3, -1)
        channel, filter_ = (numbers * size for numbers, size in zip(block, self.size, strict=True))
        result = (part * KERNEL**2 * self.channels + channel) * self.filters + filter_
        return [part * self.blocks * self.tiles, channel, filter_, result]

    def build(self) -> Call:
        names = ("tile_at", "channel_at", "filter_at", "result_at")
        lets = [ir.Let(n, ir.Load("units", ir.Index(((UNIT, len(names)),), i), int64)) for i, n in enumerate(names)]
        at = ir.Var("at")
        clear = ir.Store("m", ir.Index(((at, 1),)), ir.Const(0.0, self.dtype))
        each = (
            *self.inputs(self.tiles, self.first, self.size[0], ((count("channel_at"), 1),)),
            *self._gradients(),
            ir.For(PLANE, 0, PLANES, "seq", (self._product(),)),
        )
        body = (
            *lets,
            ir.For(at, 0, self.param(PLANES * self.planes_step), "vec", (clear,)),
            ir.For(BLOCK, 0, self.param(self.blocks), "seq", each),
            *self._results(),
        )
        units = len(self.columns[0])
        loop = ir.For(UNIT, ir.RangeBound.I0, ir.RangeBound.I1, "seq", body)
        return self.tile_call((loop,), (units, 1), self.splits * self.blocks * self.tiles)

    def _gradients(self) -> tuple[ir.Stmt, ...]:
        """Compute D, the transformed gradients of the results of a block's tiles."""
        p_filters = self.param(self.size[1])
        lane_steps = self.lane_steps(ir.Const(0, int64), p_filters, self.size[1], "k")
        code, zero = StraightLine("g", self.dtype), ir.Const(0, int64)

        def load(r: int, s: int) -> ir.Expr:
            p = r * OUTPUTS + s
            place = ((ir.Ref(f"held{p}", int64), 1), (lane_steps.first, 1), (count("filter_at"), 1))
            value = ir.Load("dy", ir.Index(((LANE, 1),), 0, place), self.dtype)
            return ir.Apply(scalar.select, (ir.Ref(f"inside{p}", bool_), value, ir.Const(0.0, self.dtype)), self.dtype)

        planes = self.both_ways(code, tuple(zip(*OUTPUT, strict=True)), self.grid(code, OUTPUTS, load))
        self.store_planes(code, "d", planes, self.tiles * self.size[1], TILE, p_filters, LANE, lane_steps)
        rows = self.pixel_rows(self.first, TILE, "begins")
        for p in range(PIXELS):
            row = ir.Ref(f"row{p}", int64)
            rows.append(ir.Let(f"inside{p}", ir.Apply(scalar.ge, (row, zero), bool_)))
            rows.append(ir.Let(f"held{p}", ir.Apply(scalar.maximum, (row, zero), int64)))
        steps = (*rows, lane_steps.loop(LANE, code.statements))
        return (*lane_steps.before, ir.For(TILE, 0, self.param(self.tiles), "seq", steps))

    def _product(self) -> ir.Product:
        """Add the product of a plane of V and D to its sums."""
        (channels, filters), tiles = (self.param(n) for n in self.size), self.param(self.tiles)
        v, d, m = (
            ir.Index(((PLANE, self.param(n)),))
            for n in (self.tiles * self.size[0], self.tiles * self.size[1], self.planes_step)
        )
        return ir.Product(
            "v", v, "d", d, "m", m, self.dtype, channels, filters, tiles, 1, channels, filters, 1, filters,
            accumulate=True,
        )  # fmt: skip

    def _results(self) -> tuple[ir.Stmt, ...]:
        """Transform the sums to the unit's filters."""
        filters = self.param(self.size[1])
        lane_steps = self.lane_steps(ir.Const(0, int64), filters, self.size[1], "f")
        code = StraightLine("w", self.dtype)

        def load(r: int, s: int) -> ir.Expr:
            step = self.param((r * SPAN + s) * self.planes_step)
            place = ir.Index(((CHANNEL, filters), (LANE, 1)), step, ((lane_steps.first, 1),))
            return ir.Load("m", place, self.dtype)

        taps = self.both_ways(code, tuple(zip(*FILTER, strict=True)), self.grid(code, SPAN, load))
        row = self.param(self.filters)
        for tap in range(KERNEL**2):
            place = ((lane_steps.first, 1), (count("result_at"), 1))
            at = ir.Index(((CHANNEL, row), (LANE, 1)), self.param(tap * self.channels * self.filters), place)
            code.statements.append(ir.Store("du", at, taps[tap // KERNEL][tap % KERNEL]))
        steps = lane_steps.loop(LANE, code.statements)
        return (*lane_steps.before, ir.For(CHANNEL, 0, self.param(self.size[0]), "seq", (steps,)))


def _rows(dy: Value, operands: Operands) -> tuple[Allocation, int, np.ndarray[Any, np.dtype[np.int32]]]:
    """Return the pixels of ``dy``: place, offset and an offset table in order of pixels."""
    allocation, offset, strides = operands.view(dy)
    if strides[-1] != 1 and dy.aval.shape[-1] != 1:
        allocation, offset = operands.dense(dy)
        strides = row_major(dy.aval.shape)
    begins = OffsetTables().allocation(dy.aval.shape[:-1], strides[:-1])
    if begins is None:
        raise ShapeError(f"[{dy.op}] shape {dy.aval.shape} is too large for a gradient by filters.")
    return allocation, offset, values_of(begins)


class WinogradGradientLowering(Lowering):
    """The gradient for the filters: rows of both operands may have any offsets; elements of a row are adjacent."""

    def reads_by_strides(self, node: Value, x: Value, view: Strided) -> bool:
        return view.strides[-1] == 1

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return [_Gradient(request.node, request.operands, results[0]).build()]
