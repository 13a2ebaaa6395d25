"""Gather and scatter-add of rows by an array of indices."""

from __future__ import annotations

import math

from runnel.compiler.kernels.allocations import Allocation, BufferAccess, Call
from runnel.compiler.kernels.elementwise import strided_copy
from runnel.compiler.kernels.indexing.clamping import clamped
from runnel.compiler.kernels.naming import named
from runnel.compiler.kernels.operands import Operands
from runnel.core.dtypes import int64
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.loops.ir import Apply, Const, For, Index, Load, Param, RangeBound, Store, Var


def gather(node: Value, operands: Operands, result: Allocation) -> Call:
    """result[before, i, after] = table[before, indices[i], after]."""
    table, indices = node.inputs
    axis = node.attrs["axis"]
    t_place, t_offset = operands.dense(table)
    i_place, i_offset = operands.dense(indices)
    before = math.prod(table.aval.shape[:axis])
    after = math.prod(table.aval.shape[axis + 1 :])
    extent = table.aval.shape[axis]
    count = indices.aval.size
    b, i, a = Var("before"), Var("which"), Var("after")
    params = tuple(Param(f"p{k}") for k in range(5))
    p_last, p_after, p_table, p_result, p_before = params
    position = clamped(ir.Load("b1", Index(((i, 1),)), indices.aval.dtype), p_last)
    if after == 1:
        load = Load("b0", Index(((b, p_table),), gathered=((position, p_after),)), table.aval.dtype)
        inner: ir.Stmt = For(
            i, RangeBound.J0, RangeBound.J1, "vec", (Store("b2", Index(((b, p_result), (i, 1))), load),)
        )
        body = For(b, RangeBound.I0, RangeBound.I1, "seq", (inner,))
        rows, columns, index_steps, result_steps = before, count, (0, 1), (count, 1)
    else:
        load = Load("b0", Index(((b, p_table), (a, 1)), gathered=((ir.Ref("at", int64), p_after),)), table.aval.dtype)
        store = Store("b2", Index(((b, p_result), (i, p_after), (a, 1))), load)
        chosen_once: ir.Stmt = ir.Let("at", position)
        loop = For(b, 0, p_before, "seq", (For(a, RangeBound.J0, RangeBound.J1, "vec", (store,)),))
        body = For(i, RangeBound.I0, RangeBound.I1, "seq", (chosen_once, loop))
        rows, columns, index_steps, result_steps = count, after, (1, 0), (after, 1)
    buffers = (
        ir.Buffer("b0", table.aval.dtype, "in"),
        ir.Buffer("b1", indices.aval.dtype, "in"),
        ir.Buffer("b2", node.aval.dtype, "out"),
    )
    accesses = [
        BufferAccess(t_place, False, t_offset, 0, 0, table.aval.size),
        BufferAccess(i_place, False, i_offset, *index_steps, 1),
        BufferAccess(result, True, 0, *result_steps, 1 if before == 1 else node.aval.size),
    ]
    kernel = named("gather", buffers, params, (body,))
    values = [extent - 1, after, extent * after, count * after, before]
    return Call(kernel, accesses, values, rows, columns, "both", float(node.aval.size), [node])


def scatter_add(node: Value, operands: Operands, result: Allocation) -> list[Call]:
    """Zeros, then result[indices[i]] += updates[i] in order of i; partitioned by columns, so that the order is
    fixed."""
    indices, updates = node.inputs
    dtype = node.aval.dtype
    zero = 0.0 if dtype.is_float else 0
    shape = node.aval.shape
    fill = strided_copy.filled(shape, result, Const(zero, dtype), node)
    i_place, i_offset = operands.dense(indices)
    u_place, u_offset = operands.dense(updates)
    after = math.prod(shape[1:])
    i, a = Var("which"), Var("after")
    p_count, p_after, p_last = (Param(f"p{k}") for k in range(3))
    position = clamped(Load("b0", Index(((i, 1),)), indices.aval.dtype), p_last)
    target = Index(((a, 1),), gathered=((ir.Ref("at", int64), p_after),))
    update = Load("b1", Index(((i, p_after), (a, 1))), dtype)
    store = Store("b2", target, Apply(scalar.add, (Load("b2", target, dtype), update), dtype))
    inner = For(a, RangeBound.J0, RangeBound.J1, "vec", (store,))
    body = For(
        Var("once"), RangeBound.I0, RangeBound.I1, "seq",
        (For(i, 0, p_count, "seq", (ir.Let("at", position), inner)),),
    )  # fmt: skip
    buffers = (ir.Buffer("b0", indices.aval.dtype, "in"), ir.Buffer("b1", dtype, "in"), ir.Buffer("b2", dtype, "inout"))
    count = indices.aval.size
    accesses = [
        BufferAccess(i_place, False, i_offset, 0, 0, count),
        BufferAccess(u_place, False, u_offset, 0, 1, count * after),
        BufferAccess(result, True, 0, 0, 1, node.aval.size),
    ]
    kernel = named("scatter_add", buffers, (p_count, p_after, p_last), (body,))
    return [
        fill,
        Call(kernel, accesses, [count, after, shape[0] - 1], 1, after, "columns", float(updates.aval.size), [node]),
    ]
