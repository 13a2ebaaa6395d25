"""Winograd convolutions as kernels: transforms and 36 small products of blocks of tiles.

The rows of a convolution's call are blocks of tiles, and its columns are filters. For each block the kernel transforms
the tiles' inputs into V[36][tile][C], multiplies each of the 36 planes with its filters into M[36][tile][K],
transforms them back and stores the epilogue of each pixel. A result outside the image is stored to the tile's first
pixel, which is stored last. A pixel's row of the result is known only as a value, so every operand of the epilogue is
addressed by that value and by the first channel of the loop's step.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from runnel.compiler.kernels.contraction import ProductLowering
from runnel.compiler.kernels.epilogue import RowTables, axes_of_result
from runnel.compiler.kernels.members import Addressing, Members, Reach
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
from runnel.compiler.lowering.operands import OffsetTables, values_of
from runnel.compiler.lowering.parts import Parts, step_of
from runnel.compiler.lowering.protocol import Request
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call
from runnel.compiler.plan_ir.plan import Section
from runnel.compiler.plan_ir.strides import ResultAxes
from runnel.core.dtypes import int32, int64
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.ops.convolution.winograd import OUTPUT, OUTPUTS, SPAN


class _PixelAddressing(Addressing):
    """Addressing by the row of pixel ``number``, the step's first channel and the lane."""

    def __init__(self, node: Value, parts: Parts, lane: ir.Var, first: ir.Expr) -> None:
        super().__init__(parts)
        self.node = node
        self.lane = lane
        self.first = first
        self.number = 0
        self.tables = RowTables(axes_of_result(node), OffsetTables())
        self.row_tables: dict[Allocation, str] = {}
        self._steps: dict[Reach, tuple[ir.Stride, ir.Stride]] = {}

    @property
    def row(self) -> ir.Ref:
        """The pixel's row of the result."""
        return ir.Ref(f"row{self.number}", int64)

    def arrange(self, reaches: Iterable[Reach]) -> None:
        self.tables.arrange(self.node, reaches)

    def access(self, reach: Reach, *, writes: bool) -> BufferAccess:
        return BufferAccess(reach.allocation, writes, reach.offset, None, None, reach.allocation.size)

    def index(self, reach: Reach) -> ir.Index:
        if reach not in self._steps:
            self._steps[reach] = (step_of(self.parts, reach.strides[0]), step_of(self.parts, reach.strides[1]))
        row, column = self._steps[reach]
        terms = ((self.lane, column),) if column != 0 else ()
        table = self.tables.of(reach)
        begin: tuple[ir.Ref, ir.Stride] = (self.row, row) if table is None else (self._begin(table), 1)
        gathered = [(expr, step) for expr, step in (begin, (self.first, column)) if step != 0]
        return ir.Index(terms, 0, tuple(gathered))

    def _begin(self, table: Allocation) -> ir.Ref:
        """Return the start of the pixel's row, by a table."""
        name = self.row_tables.setdefault(table, f"at{len(self.row_tables)}_")
        return ir.Ref(f"{name}{self.number}", int64)

    def position(self, reach: Reach) -> ir.Expr:
        channel = ir.Apply(scalar.add, (self.first, ir.Position(self.lane, int64)), int64)
        where: tuple[ir.Expr, ir.Expr] = (self.row, channel)
        terms = [
            ir.Apply(scalar.mul, (x, self.parts.param(step)), int64)
            for x, step in zip(where, reach.strides, strict=True)
            if step != 0
        ]
        total: ir.Expr = ir.Const(0, int64)
        for term in terms:
            total = ir.Apply(scalar.add, (total, term), int64)
        return total


class PixelEpilogue:
    """Emits the statements of one pixel after the other into the kernel ``parts``. ``lane`` is the variable over the
    channels of a step, ``first`` the step's first channel."""

    def __init__(self, request: Request, parts: Parts, lane: ir.Var, first: ir.Expr) -> None:
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

    def pixel(self, number: int, value: ir.Expr) -> list[ir.Stmt]:
        """Return the statements that compute and store the epilogue of pixel ``number``, whose product is ``value``."""
        self.addressing.number = number
        members, name = self.members, f"product{number}"
        members.names = {self.node: name}
        stored = [x for x in members.stored if x is not self.node]
        return [ir.Let(name, value), *members.needed(stored), *members.all_stores()]


def winograd(request: Request) -> Call:
    """Return the call of a convolution with its epilogue."""
    node, operands = request.node, request.operands
    x, u = node.inputs
    channels, wide = u.aval.shape[1:]
    filters = node.aval.shape[-1]
    k = TileKernel(node, x, operands, filters)
    starts, pixels = tile_tables(node.aval.shape, k.strides)
    count = len(starts)
    block = block_tiles(channels, filters, count, k.dtype)
    blocks = -(-count // block)
    full = np.minimum(np.arange(blocks * block), count - 1)
    pixels = np.where(pixels == OUTSIDE, pixels[:, :1], pixels)
    allocation, offset, (plane_step, row_step, column_step) = operands.view(u)
    if column_step != 1:
        allocation, offset = operands.dense(u)
        plane_step, row_step = channels * wide, wide
    k.buffer("u", allocation, offset)
    k.table("starts", starts[full], int32)
    k.table("pixels", pixels[full], int32)
    k.scratch("v", k.dtype, PLANES * block * channels)
    k.scratch("m", k.dtype, PLANES * block * wide)

    b, plane, tile, lane = ir.Var("block"), ir.Var("plane"), ir.Var("tile"), ir.Var("k")
    p_block, p_channels, p_wide = (k.param(v) for v in (block, channels, wide))
    in_lanes = filters % ir.LANES == 0  # then partitions of the filters are whole vectors
    chosen = ir.Let("chosen", ir.Apply(scalar.sub, (ir.RangeBound.J1, ir.RangeBound.J0), int64))
    here = ((ir.RangeBound.J0, 1),)
    product = ir.Product(
        "v", ir.Index(((plane, k.param(block * channels)),)), "u", ir.Index(((plane, k.param(plane_step)),), 0, here),
        "m", ir.Index(((plane, k.param(block * wide)),), 0, here),
        k.dtype, p_block, ir.Ref("chosen", int64) if in_lanes else p_wide, p_channels,
        p_channels, 1, k.param(row_step), 1, p_wide,
    )  # fmt: skip
    lane_steps = k.lane_steps(ir.RangeBound.J0, ir.RangeBound.J1, filters, "k")
    code = StraightLine("o", k.dtype)

    def load(r: int, s: int) -> ir.Expr:
        step = k.param((r * SPAN + s) * block * wide)
        return ir.Load("m", ir.Index(((tile, p_wide), (lane, 1)), step, ((lane_steps.first, 1),)), k.dtype)

    values = k.both_ways(code, OUTPUT, k.grid(code, SPAN, load))
    epilogue = PixelEpilogue(request, k, lane, lane_steps.first)
    for p in reversed(range(PIXELS)):
        code.statements += epilogue.pixel(p, values[p // OUTPUTS][p % OUTPUTS])
    first = FirstTile(b, block)
    rows = k.pixel_rows(first, tile)
    for begins, name in epilogue.row_tables.items():
        k.table(f"{name}rows", values_of(begins)[pixels[full]], int32)
        rows += k.pixel_rows(first, tile, f"{name}rows", name)
    outputs = ir.For(tile, 0, p_block, "seq", (*rows, lane_steps.loop(lane, code.statements)))
    products = ir.For(plane, 0, PLANES, "seq", (product,))
    steps = (chosen, *k.inputs(block, first, channels), products, *lane_steps.before, outputs)
    body = (ir.For(b, ir.RangeBound.I0, ir.RangeBound.I1, "seq", steps),)
    call = k.tile_call(body, (blocks, filters), blocks * block, "both" if in_lanes else "rows")
    call.flops += epilogue.flops
    call.nodes = list(request.cluster.members)
    return call


class WinogradLowering(ProductLowering):
    """A convolution as a product of pixels with filters. Pixels outside the image are computed too and overwritten
    by others: a row of the result may be stored twice."""

    def epilogue_axes(self, node: Value) -> ResultAxes | None:
        return ResultAxes(node.aval.shape[:-1], node.aval.shape[-1:])

    def build(self, request: Request) -> Section:
        section = Section()
        call = winograd(request)
        section.add([*request.operands.before, call])
        return section
