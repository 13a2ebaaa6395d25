"""Gathers and scatter-adds of rows by an array of indices, and the lowerings of indexing."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from runnel.compiler.kernels import counting_sort
from runnel.compiler.kernels.counting_sort import Bucket, clamped
from runnel.compiler.kernels.elementwise.lowering import NestLowering
from runnel.compiler.kernels.elementwise.members import POSITION, Members, Reach
from runnel.compiler.lowering.operands import Operands, filled
from runnel.compiler.lowering.parts import named
from runnel.compiler.lowering.protocol import IndexBound, Lowering, Request
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call
from runnel.compiler.plan_ir.clusters import Form, aligned_strides, essential
from runnel.compiler.plan_ir.regions import Section
from runnel.compiler.plan_ir.strides import Strided
from runnel.core.dtypes import int64
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.loops.ir import Apply, Const, For, Index, Load, Param, RangeBound, Stmt, Store, Var


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
    fill = filled(shape, result, Const(zero, dtype), node)
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


class GatherLowering(Lowering):
    """Gather: rows of a table, read by indices."""

    moves_bits: ClassVar[bool] = True

    def index_bound(self, node: Value) -> IndexBound:
        return node.inputs[1], node.inputs[0].aval.shape[node.attrs["axis"]], None

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return [gather(request.node, request.operands, results[0])]


class ScatterAddLowering(Lowering):
    """Scatter-add: rows added to an array of zeros by indices."""

    def index_bound(self, node: Value) -> IndexBound:
        return node.inputs[0], node.aval.shape[0], None

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return scatter_add(request.node, request.operands, results[0])


class CountingSortLowering(Lowering):
    """The counting sort of labels into buckets."""

    def index_bound(self, node: Value) -> IndexBound:
        return node.inputs[0], node.attrs["rows"], None

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        node = request.node
        return [counting_sort.sort(node, request.operands.dense(node.inputs[0]), results[0])]


class SegmentSumLowering(NestLowering):
    """The sum of each bucket's rows: a member of nests that loop over its rows, else a standalone kernel."""

    reads_at_point: ClassVar[bool] = False
    needs_rows: ClassVar[bool] = True
    recompute_rank: ClassVar[int] = 2

    def form(self, node: Value, views: dict[Value, Strided]) -> Form:
        table, shape = node.inputs[0], node.aval.shape
        fits = shape[0] != 1 and len(essential(shape)) > 1 and views[table].is_dense(table.aval.shape)
        return Form.NEST if fits else Form.STANDALONE

    def reads_by_strides(self, node: Value, x: Value, view: Strided) -> bool:
        return False

    def value_of_empty_row(self, node: Value) -> Any:
        return np.zeros((1,) * node.aval.ndim, node.aval.dtype.numpy)

    def declare(self, node: Value, members: Members) -> None:
        _reaches(node, members)

    def statements(self, node: Value, members: Members) -> list[Stmt]:
        updates, parts = members.views[node.inputs[2]], members.parts
        columns = _reaches(node, members)[1]
        index = members.addressing.buffer(columns, writes=False)[1]
        known = members.looked_up.get(node)
        if known is None:
            known = members.looked_up[node] = _lookup(node, members), parts.param(updates.strides[0])
        bucket, step = known
        name = members.name(node)
        members.flops += node.inputs[2].aval.size
        return bucket.sum(name, index, step)

    def build(self, request: Request) -> Section:
        return super().build(request) if request.cluster.form is Form.NEST else Lowering.build(self, request)

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        node, dense = request.node, request.operands.dense
        return [counting_sort.sums(node, dense(node.inputs[0]), dense(node.inputs[2]), results[0])]


def _reaches(node: Value, members: Members) -> tuple[Reach, Reach]:
    """Return the reaches of the row number and of the updates' columns."""
    updates = members.views[node.inputs[2]]
    columns = aligned_strides(node.aval.shape, (0, *updates.strides[1:]), node.aval.shape)
    rows = members.reach(POSITION, 0, (1, *[0] * (len(columns) - 1)))
    return rows, members.reach(members.sources[updates.base], updates.offset, columns)


def _lookup(node: Value, members: Members) -> Bucket:
    """Look up the start of a row's bucket, before the loops over columns."""
    table, parts = members.views[node.inputs[0]], members.parts
    rows, columns = _reaches(node, members)
    updates = members.addressing.forget_pattern(columns)
    buffer = parts.declare(BufferAccess(members.sources[table.base], False, table.offset, None, None, 0), "in", int64)
    count = node.inputs[2].aval.shape[0]
    numbers: tuple[Param, ...] = tuple(parts.param(n) for n in (count, max(count - 1, 0), node.aval.shape[0] + 2))
    bucket = Bucket(f"s{len(members.row_lengths)}", node.aval.dtype, buffer, updates, *numbers)
    members.before_rows += bucket.begin(members.addressing.axis_of(rows))
    members.row_lengths.append(bucket.length)
    return bucket
