"""Counting sort of labels as a kernel, and the sum of a bucket as statements for any kernel over rows.

Indices are clamped where they are used: no table can make a kernel read or write outside its buffers.
"""

from __future__ import annotations

import math

from runnel.compiler.lowering.parts import named
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call
from runnel.core.dtypes import DType, int64
from runnel.core.records import record
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.loops.ir import (
    Acc,
    Apply,
    Const,
    Expr,
    For,
    Index,
    Let,
    Load,
    Param,
    Position,
    RangeBound,
    Ref,
    Stmt,
    Store,
    Stride,
    Update,
    Var,
)


def clamped(index: Expr, last: Expr) -> Expr:
    """``index`` clamped to [0, last]."""
    wide = index if index.dtype is int64 else Apply(scalar.cast, (index,), int64)
    return Apply(scalar.minimum, (Apply(scalar.maximum, (wide, Const(0, int64)), int64), last), int64)


def _plus(x: Expr, y: Expr) -> Expr:
    return Apply(scalar.add, (x, y), int64)


def _row(table: str, index: Expr, offset: Stride) -> Load:
    return Load(table, Index((), offset, ((index, 1),)), int64)


def sort(node: Value, labels: tuple[Allocation, int], result: Allocation) -> Call:
    """Count each label, two positions further on; prefix sum; store each position at the next slot of its label."""
    rows, count = node.attrs["rows"], node.inputs[0].aval.size
    params = tuple(Param(f"p{k}") for k in range(6))
    p_count, p_cells, p_all_but_first, p_last_row, p_order, p_last = params
    v, i = Var("v"), Var("i")
    one = Const(1, int64)
    label = clamped(Load("b0", Index(((i, 1),)), node.inputs[0].aval.dtype), p_last_row)
    at = Ref("at", int64)
    cell = Index(((v, 1),))
    body: tuple[Stmt, ...] = (
        For(v, 0, p_cells, "vec", (Store("b1", cell, Const(0, int64)),)),
        For(i, 0, p_count, "seq", (
            Let("at", label),
            Store("b1", Index((), 2, ((at, 1),)), _plus(_row("b1", at, 2), one)),
        )),
        For(v, 0, p_all_but_first, "seq", (
            Store("b1", Index(((v, 1),), 1), _plus(Load("b1", cell, int64), Load("b1", Index(((v, 1),), 1), int64))),
        )),
        For(i, 0, p_count, "seq", (
            Let("at", label),
            Let("free", clamped(_row("b1", at, 1), p_last)),
            Store("b1", Index((), p_order, ((Ref("free", int64), 1),)), Position(i, int64)),
            Store("b1", Index((), 1, ((at, 1),)), _plus(Ref("free", int64), one)),
        )),
    )  # fmt: skip
    whole = For(Var("once"), RangeBound.I0, RangeBound.I1, "seq", body)
    buffers = (ir.Buffer("b0", node.inputs[0].aval.dtype, "in"), ir.Buffer("b1", int64, "inout"))
    kernel = named("buckets", buffers, params, (whole,))
    allocation, offset = labels
    accesses = [BufferAccess(allocation, False, offset, None, None, 0), BufferAccess(result, True, 0, None, None, 0)]
    values = [count, rows + 2, rows + 1, rows - 1, rows + 2, max(count - 1, 0)]
    return Call(kernel, accesses, values, 1, 1, "", float(2 * count + rows), [node])


@record
class Bucket:
    """The sum of one row's bucket in a kernel; the names of its values begin with ``name``."""

    name: str
    dtype: DType
    table: str  # buffers
    updates: str
    count: Param  # of updates
    last: Param  # one less
    order: Param  # the start of the positions in the table

    def begin(self, row: Var) -> list[Stmt]:
        """Return the first position of the row's bucket and the number of its positions: outside of loops
        over columns."""
        first, following = (Load(self.table, Index(((row, 1),), offset), int64) for offset in (0, 1))
        length = Apply(scalar.sub, (following, Ref(f"{self.name}_first", int64)), int64)
        clamped_length = Apply(scalar.minimum, (length, self.count), int64)
        return [Let(f"{self.name}_first", first), Let(f"{self.name}_length", clamped_length)]

    @property
    def length(self) -> Ref:
        """The number of positions in the row's bucket, once it is looked up."""
        return Ref(f"{self.name}_length", int64)

    def sum(self, name: str, columns: Index, step: Stride) -> list[Stmt]:
        """Return the sum, called ``name``, of updates at ``columns`` with row stride ``step``."""
        k = Var(f"{name}_k")
        at = clamped(_plus(Ref(f"{self.name}_first", int64), Position(k, int64)), self.last)
        position = Let(f"{name}_at", clamped(_row(self.table, at, self.order), self.last))
        index = Index(columns.terms, columns.offset, ((Ref(f"{name}_at", int64), step),))
        body = (position, Update(name, Load(self.updates, index, self.dtype)))
        return [Acc(name, "sum", self.dtype), For(k, 0, self.length, "seq", body)]


def sums(node: Value, table: tuple[Allocation, int], updates: tuple[Allocation, int], result: Allocation) -> Call:
    """Return the sums as a standalone kernel, over dense updates."""
    rows, count = node.aval.shape[0], node.inputs[2].aval.shape[0]
    columns = math.prod(node.aval.shape[1:])
    dtype = node.aval.dtype
    params = tuple(Param(f"p{k}") for k in range(4))
    bucket = Bucket("s", dtype, "b0", "b1", *params[:3])
    row, column = Var("v"), Var("a")
    store = Store("b2", Index(((row, params[3]), (column, 1))), Ref("sum", dtype))
    summed = For(
        column, RangeBound.J0, RangeBound.J1, "vec", (*bucket.sum("sum", Index(((column, 1),)), params[3]), store)
    )  # fmt: skip
    whole = For(row, RangeBound.I0, RangeBound.I1, "seq", (*bucket.begin(row), summed))
    buffers = (ir.Buffer("b0", int64, "in"), ir.Buffer("b1", dtype, "in"), ir.Buffer("b2", dtype, "out"))
    kernel = named("segment_sums", buffers, params, (whole,))
    accesses = [
        BufferAccess(table[0], False, table[1], None, None, 0),
        BufferAccess(updates[0], False, updates[1], None, None, 0),
        BufferAccess(result, True, 0, columns, 1, 1),
    ]
    values = [count, max(count - 1, 0), rows + 2, columns]
    return Call(kernel, accesses, values, rows, columns, "both", float(count * columns), [node])
