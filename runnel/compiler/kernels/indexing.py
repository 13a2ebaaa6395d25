"""Gathers, scatter-adds, counting sorts and reductions of buckets.

The kernels clamp indices where they use them, so no table can make a kernel read or write outside its buffers;
``bounds.py`` has the checks that report the error.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from runnel.compiler.kernels.elementwise import NestLowering
from runnel.compiler.kernels.members import POSITION, Members, Reach
from runnel.compiler.lowering.operands import Operands, dense_copy, filled
from runnel.compiler.lowering.parts import named
from runnel.compiler.lowering.protocol import IndexBound, Lowering, Request
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call
from runnel.compiler.plan_ir.clusters import Cluster, Form, aligned_strides, essential
from runnel.compiler.plan_ir.plan import Section
from runnel.compiler.plan_ir.strides import Strided
from runnel.core.dtypes import DType, int64
from runnel.core.lengths import expected
from runnel.core.records import record
from runnel.graph.node import InputKind, Value
from runnel.loops import ir, scalar


def clamped(index: ir.Expr, last: ir.Expr) -> ir.Expr:
    """Clamp ``index`` to [0, last]."""
    wide = index if index.dtype is int64 else ir.Apply(scalar.cast, (index,), int64)
    return ir.Apply(scalar.minimum, (ir.Apply(scalar.maximum, (wide, ir.Const(0, int64)), int64), last), int64)


def _plus(x: ir.Expr, y: ir.Expr) -> ir.Expr:
    return ir.Apply(scalar.add, (x, y), int64)


def _row(table: str, index: ir.Expr, offset: ir.Stride) -> ir.Load:
    return ir.Load(table, ir.Index((), offset, ((index, 1),)), int64)


def sort(node: Value, labels: tuple[Allocation, int], result: Allocation) -> Call:
    """Count each label, two positions further on; prefix sum; store each position at the next slot of its label."""
    rows, count = node.attrs["rows"], node.inputs[0].aval.size
    params = tuple(ir.Param(f"p{k}") for k in range(6))
    p_count, p_cells, p_all_but_first, p_last_row, p_order, p_last = params
    v, i = ir.Var("v"), ir.Var("i")
    one = ir.Const(1, int64)
    label = clamped(ir.Load("b0", ir.Index(((i, 1),)), node.inputs[0].aval.dtype), p_last_row)
    at = ir.Ref("at", int64)
    cell, following = ir.Index(((v, 1),)), ir.Index(((v, 1),), 1)
    body: tuple[ir.Stmt, ...] = (
        ir.For(v, 0, p_cells, "vec", (ir.Store("b1", cell, ir.Const(0, int64)),)),
        ir.For(i, 0, p_count, "seq", (
            ir.Let("at", label),
            ir.Store("b1", ir.Index((), 2, ((at, 1),)), _plus(_row("b1", at, 2), one)),
        )),
        ir.For(v, 0, p_all_but_first, "seq", (
            ir.Store("b1", following, _plus(ir.Load("b1", cell, int64), ir.Load("b1", following, int64))),
        )),
        ir.For(i, 0, p_count, "seq", (
            ir.Let("at", label),
            ir.Let("free", clamped(_row("b1", at, 1), p_last)),
            ir.Store("b1", ir.Index((), p_order, ((ir.Ref("free", int64), 1),)), ir.Position(i, int64)),
            ir.Store("b1", ir.Index((), 1, ((at, 1),)), _plus(ir.Ref("free", int64), one)),
        )),
    )  # fmt: skip
    whole = ir.For(ir.Var("once"), ir.RangeBound.I0, ir.RangeBound.I1, "seq", body)
    buffers = (ir.Buffer("b0", node.inputs[0].aval.dtype, "in"), ir.Buffer("b1", int64, "inout"))
    kernel = named("buckets", buffers, params, (whole,))
    allocation, offset = labels
    accesses = [BufferAccess(allocation, False, offset, None, None, 0), BufferAccess(result, True, 0, None, None, 0)]
    values = [count, rows + 2, rows + 1, rows - 1, rows + 2, max(count - 1, 0)]
    return Call(kernel, accesses, values, 1, 1, "", 2 * count + rows, [node])


@record
class Bucket:
    """The reduction of one row's bucket in a kernel; the names of its values begin with ``name``."""

    name: str
    op: str
    dtype: DType
    table: str  # buffers
    updates: str
    count: ir.Param  # of updates
    last: ir.Param  # one less
    order: ir.Param  # the start of the positions in the table

    def begin(self, row: ir.Var) -> list[ir.Stmt]:
        """Return the first position of the row's bucket and the number of its positions: outside loops
        over columns."""
        first, following = (ir.Load(self.table, ir.Index(((row, 1),), offset), int64) for offset in (0, 1))
        length = ir.Apply(scalar.sub, (following, ir.Ref(f"{self.name}_first", int64)), int64)
        clamped_length = ir.Apply(scalar.minimum, (length, self.count), int64)
        return [ir.Let(f"{self.name}_first", first), ir.Let(f"{self.name}_length", clamped_length)]

    @property
    def length(self) -> ir.Ref:
        """The number of positions in the row's bucket, once it is looked up."""
        return ir.Ref(f"{self.name}_length", int64)

    def reduced(self, name: str, columns: ir.Index, step: ir.Stride) -> list[ir.Stmt]:
        """Return the reduction, called ``name``, of updates at ``columns`` with row stride ``step``."""
        k = ir.Var(f"{name}_k")
        at = clamped(_plus(ir.Ref(f"{self.name}_first", int64), ir.Position(k, int64)), self.last)
        position = ir.Let(f"{name}_at", clamped(_row(self.table, at, self.order), self.last))
        index = ir.Index(columns.terms, columns.offset, ((ir.Ref(f"{name}_at", int64), step),))
        body = (position, ir.Update(name, ir.Load(self.updates, index, self.dtype)))
        return [ir.Acc(name, self.op, self.dtype), ir.For(k, 0, self.length, "seq", body)]


def reductions(
    node: Value, op: str, table: tuple[Allocation, int], updates: tuple[Allocation, int], result: Allocation
) -> Call:
    """Return the reductions as a standalone kernel, over dense updates."""
    rows, count = node.aval.shape[0], node.inputs[2].aval.shape[0]
    columns = math.prod(node.aval.shape[1:])
    dtype = node.aval.dtype
    params = tuple(ir.Param(f"p{k}") for k in range(4))
    bucket = Bucket("s", op, dtype, "b0", "b1", *params[:3])
    row, column = ir.Var("v"), ir.Var("a")
    store = ir.Store("b2", ir.Index(((row, params[3]), (column, 1))), ir.Ref("whole", dtype))
    statements = (*bucket.reduced("whole", ir.Index(((column, 1),)), params[3]), store)
    summed = ir.For(column, ir.RangeBound.J0, ir.RangeBound.J1, "vec", statements)
    whole = ir.For(row, ir.RangeBound.I0, ir.RangeBound.I1, "seq", (*bucket.begin(row), summed))
    buffers = (ir.Buffer("b0", int64, "in"), ir.Buffer("b1", dtype, "in"), ir.Buffer("b2", dtype, "out"))
    kernel = named(f"segment_{op}s", buffers, params, (whole,))
    accesses = [
        BufferAccess(table[0], False, table[1], None, None, 0),
        BufferAccess(updates[0], False, updates[1], None, None, 0),
        BufferAccess(result, True, 0, columns, 1, 1),
    ]
    values = [count, max(count - 1, 0), rows + 2, columns]
    return Call(kernel, accesses, values, rows, columns, "both", count * columns, [node])


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
    b, i, a = ir.Var("before"), ir.Var("which"), ir.Var("after")
    params = tuple(ir.Param(f"p{k}") for k in range(5))
    p_last, p_after, p_table, p_result, p_before = params
    position = clamped(ir.Load("b1", ir.Index(((i, 1),)), indices.aval.dtype), p_last)
    if after == 1:
        load = ir.Load("b0", ir.Index(((b, p_table),), gathered=((position, p_after),)), table.aval.dtype)
        inner: ir.Stmt = ir.For(
            i, ir.RangeBound.J0, ir.RangeBound.J1, "vec", (ir.Store("b2", ir.Index(((b, p_result), (i, 1))), load),)
        )
        body = ir.For(b, ir.RangeBound.I0, ir.RangeBound.I1, "seq", (inner,))
        rows, columns, index_steps, result_steps = before, count, (0, 1), (count, 1)
    else:
        load = ir.Load(
            "b0", ir.Index(((b, p_table), (a, 1)), gathered=((ir.Ref("at", int64), p_after),)), table.aval.dtype
        )
        store = ir.Store("b2", ir.Index(((b, p_result), (i, p_after), (a, 1))), load)
        chosen_once: ir.Stmt = ir.Let("at", position)
        loop = ir.For(b, 0, p_before, "seq", (ir.For(a, ir.RangeBound.J0, ir.RangeBound.J1, "vec", (store,)),))
        body = ir.For(i, ir.RangeBound.I0, ir.RangeBound.I1, "seq", (chosen_once, loop))
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
    return Call(kernel, accesses, values, rows, columns, "both", node.aval.size, [node])


def write_rows(node: Value, operands: Operands, result: Allocation) -> list[Call]:
    """Copy ``x`` unless it is in the memory of the result; then result[before, indices[i], after] =
    updates[before, i, after] in the order of i."""
    x, indices, updates = node.inputs
    axis, dtype, shape = node.attrs["axis"], node.aval.dtype, node.aval.shape
    source = operands.view(x)
    is_there = source[0] is result  # the planner lets an op overwrite an array only where it reads all of it in order
    copies = [] if is_there else [dense_copy(shape, source, result, node)]
    i_place, i_offset = operands.dense(indices)
    u_place, u_offset = operands.dense(updates)
    before, after, extent, count = math.prod(shape[:axis]), math.prod(shape[axis + 1 :]), shape[axis], indices.aval.size
    b, i, a = ir.Var("before"), ir.Var("which"), ir.Var("after")
    params = tuple(ir.Param(f"p{k}") for k in range(5))
    p_last, p_count, p_after, p_result, p_updates = params
    position = clamped(ir.Load("b0", ir.Index(((i, 1),)), indices.aval.dtype), p_last)
    target = ir.Index(((b, p_result), (a, 1)), gathered=((ir.Ref("at", int64), p_after),))
    store = ir.Store("b2", target, ir.Load("b1", ir.Index(((b, p_updates), (i, p_after), (a, 1))), dtype))
    row = (ir.Let("at", position), ir.For(a, ir.RangeBound.J0, ir.RangeBound.J1, "vec", (store,)))
    body = ir.For(b, ir.RangeBound.I0, ir.RangeBound.I1, "seq", (ir.For(i, 0, p_count, "seq", row),))
    buffers = (ir.Buffer("b0", indices.aval.dtype, "in"), ir.Buffer("b1", dtype, "in"), ir.Buffer("b2", dtype, "inout"))
    accesses = [
        BufferAccess(i_place, False, i_offset, 0, 0, count),
        BufferAccess(u_place, False, u_offset, count * after, 1, max(count - 1, 0) * after + 1),
        BufferAccess(result, True, 0, extent * after, 1, max(extent - 1, 0) * after + 1),
    ]
    kernel = named("write_rows", buffers, params, (body,))
    values = [extent - 1, count, after, extent * after, count * after]
    work = updates.aval.size
    return [*copies, Call(kernel, accesses, values, before, after, "both", work, [node])]


def scatter_add(node: Value, operands: Operands, result: Allocation) -> list[Call]:
    """Zeros, then result[indices[i]] += updates[i] in order of i; partitioned by columns, so that the order is
    fixed."""
    indices, updates = node.inputs
    dtype = node.aval.dtype
    zero = 0.0 if dtype.is_float else 0
    shape = node.aval.shape
    fill = filled(shape, result, ir.Const(zero, dtype), node)
    i_place, i_offset = operands.dense(indices)
    u_place, u_offset = operands.dense(updates)
    after = math.prod(shape[1:])
    i, a = ir.Var("which"), ir.Var("after")
    p_count, p_after, p_last = (ir.Param(f"p{k}") for k in range(3))
    position = clamped(ir.Load("b0", ir.Index(((i, 1),)), indices.aval.dtype), p_last)
    target = ir.Index(((a, 1),), gathered=((ir.Ref("at", int64), p_after),))
    update = ir.Load("b1", ir.Index(((i, p_after), (a, 1))), dtype)
    store = ir.Store("b2", target, ir.Apply(scalar.add, (ir.Load("b2", target, dtype), update), dtype))
    inner = ir.For(a, ir.RangeBound.J0, ir.RangeBound.J1, "vec", (store,))
    body = ir.For(
        ir.Var("once"), ir.RangeBound.I0, ir.RangeBound.I1, "seq",
        (ir.For(i, 0, p_count, "seq", (ir.Let("at", position), inner)),),
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
        Call(kernel, accesses, [count, after, shape[0] - 1], 1, after, "columns", updates.aval.size, [node]),
    ]


class GatherLowering(Lowering):
    """Gather: rows of a table, read by indices."""

    moves_bits: ClassVar[bool] = True

    def index_bound(self, node: Value) -> IndexBound:
        return node.inputs[1], node.inputs[0].aval.shape[node.attrs["axis"]], None

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return [gather(request.node, request.operands, results[0])]


class RowWritesLowering(Lowering):
    """Rows written at indices, over an array that is not read again where it is in memory already."""

    moves_bits: ClassVar[bool] = True

    def index_bound(self, node: Value) -> IndexBound:
        return node.inputs[1], node.aval.shape[node.attrs["axis"]], None

    def may_overwrite(self, cluster: Cluster, result: Value, views: dict[Value, Strided]) -> bool:
        """Return whether indices and updates are in separate memory: rows are written in any order."""
        return not any(views[x].base.kind is InputKind.VARIABLE for x in cluster.root.inputs[1:])

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return write_rows(request.node, request.operands, results[0])


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
        return [sort(node, request.operands.dense(node.inputs[0]), results[0])]


class SegmentReductionLowering(NestLowering):
    """The reduction of each bucket's rows: a member of nests that loop over its rows, else a standalone kernel."""

    reads_at_point: ClassVar[bool] = False
    needs_rows: ClassVar[bool] = True
    recompute_rank: ClassVar[int] = 2

    def form(self, node: Value, views: dict[Value, Strided]) -> Form:
        table, shape = node.inputs[0], node.aval.shape
        fits = shape[0] != 1 and len(essential(shape)) > 1 and views[table].is_dense(table.aval.shape)
        return Form.NEST if fits else Form.STANDALONE

    def reads_by_strides(self, node: Value, x: Value, view: Strided) -> bool:
        return False

    def value_in_empty_row(self, node: Value, values: list[Any]) -> Any:
        return np.full(
            (1,) * node.aval.ndim, scalar.REDUCERS[self.rule.op].identity(node.aval.dtype), node.aval.dtype.numpy
        )

    def declare(self, node: Value, members: Members) -> None:
        _reaches(node, members)

    def statements(self, node: Value, members: Members) -> list[ir.Stmt]:
        updates, parts = members.views[node.inputs[2]], members.parts
        columns = _reaches(node, members)[1]
        index = members.addressing.buffer(columns, writes=False)[1]
        known = members.looked_up.get(node)
        if known is None:
            known = members.looked_up[node] = _lookup(node, self.rule.op, members), parts.param(updates.strides[0])
        bucket, step = known
        name = members.name(node)
        members.flops += expected(node.inputs[2].aval.size)
        return bucket.reduced(name, index, step)

    def build(self, request: Request) -> Section:
        return super().build(request) if request.cluster.form is Form.NEST else Lowering.build(self, request)

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        node, dense = request.node, request.operands.dense
        return [reductions(node, self.rule.op, dense(node.inputs[0]), dense(node.inputs[2]), results[0])]


def _reaches(node: Value, members: Members) -> tuple[Reach, Reach]:
    """Return the reaches of the row number and of the updates' columns."""
    updates = members.views[node.inputs[2]]
    columns = aligned_strides(node.aval.shape, (0, *updates.strides[1:]), node.aval.shape)
    rows = members.reach(POSITION, 0, (1, *[0] * (len(columns) - 1)))
    return rows, members.reach(members.sources[updates.base], updates.offset, columns)


def _lookup(node: Value, op: str, members: Members) -> Bucket:
    """Look up the start of a row's bucket, before the loops over columns."""
    table, parts = members.views[node.inputs[0]], members.parts
    rows, columns = _reaches(node, members)
    updates = members.addressing.forget_pattern(columns)
    buffer = parts.declare(BufferAccess(members.sources[table.base], False, table.offset, None, None, 0), "in", int64)
    count = node.inputs[2].aval.shape[0]
    numbers: tuple[ir.Param, ...] = tuple(parts.param(n) for n in (count, max(count - 1, 0), node.aval.shape[0] + 2))
    bucket = Bucket(f"s{len(members.row_lengths)}", op, node.aval.dtype, buffer, updates, *numbers)
    members.before_rows += bucket.begin(members.addressing.axis_of(rows))
    members.row_lengths.append(bucket.length)
    return bucket
