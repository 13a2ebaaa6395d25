"""The gradient of a Winograd convolution for its filters, as a kernel.

Rows of the call are split-K parts, fixed parts of the sum over tiles: for each block of a part, the transformed inputs
V[36][tile][C] and the transformed gradients of the results D[36][tile][K] are multiplied plane by plane and added to
the part's [36][C][K]. A result outside of the image has no gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.compiler.kernels.allocations import Allocation, Call
from runnel.compiler.kernels.convolution.tiles import OUTSIDE, PIXELS, PLANES, TileKernel, block_tiles, tile_tables
from runnel.compiler.kernels.convolution.transforms import StraightLine
from runnel.compiler.kernels.offsets import OffsetTables, values_of
from runnel.compiler.kernels.operands import Operands
from runnel.core.avals import row_major
from runnel.core.dtypes import bool_, int32, int64
from runnel.core.errors import ShapeError
from runnel.graph.node import Value
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr, For, Index, Let, Load, Product, RangeBound, Ref, Stmt, Store, Var
from runnel.ops.winograd import OUTPUT, OUTPUTS, SPAN


def winograd_gradient(node: Value, operands: Operands, result: Allocation) -> Call:
    """The call of the gradient for a convolution's filters."""
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

    split_k, b, plane, tile, lane, at = (Var(n) for n in ("slab", "block", "plane", "tile", "k", "at"))
    p_channels, p_filters, p_block, p_wide = (k.param(v) for v in (channels, filters, block, wide))
    size, product_size = k.param(PLANES * channels * wide), k.param(channels * wide)
    clear = For(at, 0, size, "vec", (Store("du", Index(((split_k, size), (at, 1))), Const(0.0, k.dtype)),))
    begin: tuple[Stmt, ...] = (clear,)
    if wide != filters:  # the padding columns
        more = k.param(PLANES * block * wide)
        begin = (clear, For(at, 0, more, "vec", (Store("d", Index(((at, 1),)), Const(0.0, k.dtype)),)))
    lane_steps = k.lane_steps(Const(0, int64), p_filters, filters, "k")
    code = StraightLine("g", k.dtype)
    zero = Const(0, int64)

    def load(r: int, s: int) -> Expr:
        p = r * OUTPUTS + s
        value = Load("dy", Index(((lane, 1),), 0, ((Ref(f"held{p}", int64), 1), (lane_steps.first, 1))), k.dtype)
        return Apply(scalar.select, (Ref(f"inside{p}", bool_), value, Const(0.0, k.dtype)), k.dtype)

    transposed = tuple(zip(*OUTPUT, strict=True))
    planes = k.both_ways(code, transposed, k.grid(code, OUTPUTS, load))
    k.store_planes(code, "d", planes, block * wide, tile, p_wide, lane, lane_steps)
    terms = ((split_k, blocks * block), (b, block))
    rows = k.pixel_rows(terms, tile, "begins")
    for p in range(PIXELS):
        row = Ref(f"row{p}", int64)
        rows.append(Let(f"inside{p}", Apply(scalar.ge, (row, zero), bool_)))
        rows.append(Let(f"held{p}", Apply(scalar.maximum, (row, zero), int64)))
    gradients = For(tile, 0, p_block, "seq", (*rows, lane_steps.loop(lane, code.statements)))
    product = Product(
        "v", Index(((plane, k.param(block * channels)),)), "d", Index(((plane, k.param(block * wide)),)),
        "du", Index(((split_k, size), (plane, product_size))),
        k.dtype, p_channels, p_wide, p_block, 1, p_channels, p_wide, 1, p_wide, accumulate=True,
    )  # fmt: skip
    each = (
        *k.inputs(block, terms, p_channels),
        *lane_steps.before,
        gradients,
        For(plane, 0, PLANES, "seq", (product,)),
    )
    body = (For(split_k, RangeBound.I0, RangeBound.I1, "seq", (*begin, For(b, 0, k.param(blocks), "seq", each))),)
    return k.tile_call(body, (splits, 1), splits * blocks * block)


def _rows(dy: Value, operands: Operands) -> tuple[Allocation, int, np.ndarray[Any, np.dtype[np.int32]]]:
    """The pixels of ``dy``: place, offset and an offset table in order of pixels."""
    allocation, offset, strides = operands.view(dy)
    if strides[-1] != 1 and dy.aval.shape[-1] != 1:
        allocation, offset = operands.dense(dy)
        strides = row_major(dy.aval.shape)
    begins = OffsetTables().allocation(dy.aval.shape[:-1], strides[:-1])
    if begins is None:
        raise ShapeError(f"[{dy.op}] shape {dy.aval.shape} is too large for a gradient by filters.")
    return allocation, offset, values_of(begins)
