"""Winograd convolutions and their gradients for filters as kernels: transforms and 36 small products of blocks of
tiles.

The rows of a convolution's call are blocks of tiles, and its columns are filters. For each block the kernel transforms
the tiles' inputs into V[36][tile][C], multiplies each of the 36 planes with its filters into M[36][tile][K],
transforms them back and stores the epilogue of each pixel. A result outside the image is stored to the tile's first
pixel, which is stored last. A pixel's row of the result is known only as a value, so every operand of the epilogue is
addressed by that value and by the first channel of the loop's step.

The rows of a gradient's call are split-K parts, fixed parts of the sum over tiles. For each block of a part, the
kernel multiplies the transformed inputs V[36][tile][C] and the transformed gradients of the results D[36][tile][K]
plane by plane and adds the products to the part's [36][C][K]. A result outside the image has no gradient.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from runnel.compiler.kernels.contraction import ProductLowering
from runnel.compiler.kernels.epilogue import RowTables, axes_of_result
from runnel.compiler.kernels.members import Addressing, Members, Reach
from runnel.compiler.kernels.winograd_tiles import (
    OUTSIDE,
    PIXELS,
    PLANES,
    StraightLine,
    TileKernel,
    block_tiles,
    tile_tables,
)
from runnel.compiler.lowering.operands import OffsetTables, Operands, values_of
from runnel.compiler.lowering.parts import Parts, step_of
from runnel.compiler.lowering.protocol import Lowering, Request
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call
from runnel.compiler.plan_ir.plan import Section
from runnel.compiler.plan_ir.strides import ResultAxes, Strided
from runnel.core.avals import row_major
from runnel.core.dtypes import bool_, int32, int64
from runnel.core.errors import ShapeError
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
    terms = ((b, block),)
    rows = k.pixel_rows(terms, tile)
    for begins, name in epilogue.row_tables.items():
        k.table(f"{name}rows", values_of(begins)[pixels[full]], int32)
        rows += k.pixel_rows(terms, tile, f"{name}rows", name)
    outputs = ir.For(tile, 0, p_block, "seq", (*rows, lane_steps.loop(lane, code.statements)))
    products = ir.For(plane, 0, PLANES, "seq", (product,))
    steps = (chosen, *k.inputs(block, terms, p_channels), products, *lane_steps.before, outputs)
    body = (ir.For(b, ir.RangeBound.I0, ir.RangeBound.I1, "seq", steps),)
    call = k.tile_call(body, (blocks, filters), blocks * block, "both" if in_lanes else "rows")
    call.flops += epilogue.flops
    call.nodes = list(request.cluster.members)
    return call


def winograd_gradient(node: Value, operands: Operands, result: Allocation) -> Call:
    """Return the call of the gradient for a convolution's filters."""
    x, dy = node.inputs
    channels, wide = node.aval.shape[1:]
    filters = dy.aval.shape[-1]
    k = TileKernel(node, x, operands, filters)
    starts, pixels = tile_tables(dy.aval.shape, k.strides)
    count = len(starts)
    splits = node.aval.shape[0] // SPAN**2
    share = -(-count // splits)
    block = block_tiles(channels, filters, share, k.dtype)
    blocks = -(-share // block)
    numbers = np.arange(splits)[:, None] * share + np.arange(blocks * block)
    real = (np.arange(blocks * block) < share) & (numbers < count)
    full = np.minimum(numbers, count - 1)
    allocation, offset, begins = _rows(dy, operands)
    k.buffer("dy", allocation, offset)
    k.table("starts", starts[full], int32)
    chosen = np.where(real[..., None], pixels[full], OUTSIDE)
    k.table("begins", np.where(chosen == OUTSIDE, OUTSIDE, begins[chosen]), int32)
    k.scratch("v", k.dtype, PLANES * block * channels)
    k.scratch("d", k.dtype, PLANES * block * wide)
    k.buffer("du", result, 0, "inout")

    split_k, b, plane, tile, lane, at = (ir.Var(n) for n in ("slab", "block", "plane", "tile", "k", "at"))
    p_channels, p_filters, p_block, p_wide = (k.param(v) for v in (channels, filters, block, wide))
    size, product_size = k.param(PLANES * channels * wide), k.param(channels * wide)
    clear = ir.For(at, 0, size, "vec", (ir.Store("du", ir.Index(((split_k, size), (at, 1))), ir.Const(0.0, k.dtype)),))
    begin: tuple[ir.Stmt, ...] = (clear,)
    if wide != filters:  # the padding columns
        more = k.param(PLANES * block * wide)
        begin = (clear, ir.For(at, 0, more, "vec", (ir.Store("d", ir.Index(((at, 1),)), ir.Const(0.0, k.dtype)),)))
    lane_steps = k.lane_steps(ir.Const(0, int64), p_filters, filters, "k")
    code = StraightLine("g", k.dtype)
    zero = ir.Const(0, int64)

    def load(r: int, s: int) -> ir.Expr:
        p = r * OUTPUTS + s
        value = ir.Load(
            "dy", ir.Index(((lane, 1),), 0, ((ir.Ref(f"held{p}", int64), 1), (lane_steps.first, 1))), k.dtype
        )
        return ir.Apply(scalar.select, (ir.Ref(f"inside{p}", bool_), value, ir.Const(0.0, k.dtype)), k.dtype)

    transposed = tuple(zip(*OUTPUT, strict=True))
    planes = k.both_ways(code, transposed, k.grid(code, OUTPUTS, load))
    k.store_planes(code, "d", planes, block * wide, tile, p_wide, lane, lane_steps)
    terms = ((split_k, blocks * block), (b, block))
    rows = k.pixel_rows(terms, tile, "begins")
    for p in range(PIXELS):
        row = ir.Ref(f"row{p}", int64)
        rows.append(ir.Let(f"inside{p}", ir.Apply(scalar.ge, (row, zero), bool_)))
        rows.append(ir.Let(f"held{p}", ir.Apply(scalar.maximum, (row, zero), int64)))
    gradients = ir.For(tile, 0, p_block, "seq", (*rows, lane_steps.loop(lane, code.statements)))
    product = ir.Product(
        "v", ir.Index(((plane, k.param(block * channels)),)), "d", ir.Index(((plane, k.param(block * wide)),)),
        "du", ir.Index(((split_k, size), (plane, product_size))),
        k.dtype, p_channels, p_wide, p_block, 1, p_channels, p_wide, 1, p_wide, accumulate=True,
    )  # fmt: skip
    each = (
        *k.inputs(block, terms, p_channels),
        *lane_steps.before,
        gradients,
        ir.For(plane, 0, PLANES, "seq", (product,)),
    )
    body = (
        ir.For(
            split_k, ir.RangeBound.I0, ir.RangeBound.I1, "seq", (*begin, ir.For(b, 0, k.param(blocks), "seq", each))
        ),
    )
    return k.tile_call(body, (splits, 1), splits * blocks * block)


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


class WinogradGradientLowering(Lowering):
    """The gradient for the filters: rows of both operands may have any offsets; elements of a row are adjacent."""

    def reads_by_strides(self, node: Value, x: Value, view: Strided) -> bool:
        return view.strides[-1] == 1

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return [winograd_gradient(request.node, request.operands, results[0])]
