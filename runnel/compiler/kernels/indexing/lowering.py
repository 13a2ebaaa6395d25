"""The lowerings of ops that read, add to or sort rows by indices."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from runnel.compiler.fusion.cluster import Form, aligned_strides, essential
from runnel.compiler.fusion.strided import Strided
from runnel.compiler.kernels.allocations import Allocation, BufferAccess, Call
from runnel.compiler.kernels.elementwise.lowering import NestLowering
from runnel.compiler.kernels.elementwise.members import POSITION, Members, Reach
from runnel.compiler.kernels.indexing import counting_sort
from runnel.compiler.kernels.indexing.counting_sort import Bucket
from runnel.compiler.kernels.indexing.gather import gather, scatter_add
from runnel.compiler.kernels.lowering import IndexBound, Lowering, Request
from runnel.compiler.kernels.section import Section
from runnel.core.dtypes import int64
from runnel.graph.node import Value
from runnel.loops.ir import Param, Stmt


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
    """The reaches of the row number and of the updates' columns."""
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
