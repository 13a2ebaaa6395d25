"""Winograd convolutions as kernels: transforms and 36 small products of blocks of tiles in the cache.

A call's rows are blocks of tiles and its columns filters. For each block: transform the tiles' inputs into
V[36][tile][C], multiply each of the 36 planes with its filters into M[36][tile][K], transform back and store the
epilogue of each pixel. A result outside of the image is stored to the tile's first pixel, which is stored last.
"""

from __future__ import annotations

import numpy as np

from runnel.compiler.kernels.allocations import Call
from runnel.compiler.kernels.convolution.pixels import PixelEpilogue
from runnel.compiler.kernels.convolution.tiles import OUTSIDE, PIXELS, PLANES, TileKernel, block_tiles, tile_tables
from runnel.compiler.kernels.convolution.transforms import StraightLine
from runnel.compiler.kernels.lowering import Request
from runnel.compiler.kernels.offsets import values_of
from runnel.core.dtypes import int32, int64
from runnel.loops import scalar
from runnel.loops.ir import LANES, Apply, Expr, For, Index, Let, Load, Product, RangeBound, Ref, Var
from runnel.ops.winograd import OUTPUT, OUTPUTS, SPAN


def winograd(request: Request) -> Call:
    """The call of a convolution with its epilogue."""
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

    b, plane, tile, lane = Var("block"), Var("plane"), Var("tile"), Var("k")
    p_block, p_channels, p_wide = (k.param(v) for v in (block, channels, wide))
    in_lanes = filters % LANES == 0  # then partitions of the filters are whole vectors
    chosen = Let("chosen", Apply(scalar.sub, (RangeBound.J1, RangeBound.J0), int64))
    here = ((RangeBound.J0, 1),)
    product = Product(
        "v", Index(((plane, k.param(block * channels)),)), "u", Index(((plane, k.param(plane_step)),), 0, here),
        "m", Index(((plane, k.param(block * wide)),), 0, here),
        k.dtype, p_block, Ref("chosen", int64) if in_lanes else p_wide, p_channels,
        p_channels, 1, k.param(row_step), 1, p_wide,
    )  # fmt: skip
    lane_steps = k.lane_steps(RangeBound.J0, RangeBound.J1, filters, "k")
    code = StraightLine("o", k.dtype)

    def load(r: int, s: int) -> Expr:
        step = k.param((r * SPAN + s) * block * wide)
        return Load("m", Index(((tile, p_wide), (lane, 1)), step, ((lane_steps.first, 1),)), k.dtype)

    values = k.both_ways(code, OUTPUT, k.grid(code, SPAN, load))
    epilogue = PixelEpilogue(request, k, lane, lane_steps.first)
    for p in reversed(range(PIXELS)):
        code.statements += epilogue.pixel(p, values[p // OUTPUTS][p % OUTPUTS])
    terms = ((b, block),)
    rows = k.pixel_rows(terms, tile)
    for begins, name in epilogue.row_tables.items():
        k.table(f"{name}rows", values_of(begins)[pixels[full]], int32)
        rows += k.pixel_rows(terms, tile, f"{name}rows", name)
    outputs = For(tile, 0, p_block, "seq", (*rows, lane_steps.loop(lane, code.statements)))
    products = For(plane, 0, PLANES, "seq", (product,))
    steps = (chosen, *k.inputs(block, terms, p_channels), products, *lane_steps.before, outputs)
    body = (For(b, RangeBound.I0, RangeBound.I1, "seq", steps),)
    call = k.tile_call(body, (blocks, filters), blocks * block, "both" if in_lanes else "rows")
    call.flops += epilogue.flops
    call.nodes = list(request.cluster.members)
    return call
