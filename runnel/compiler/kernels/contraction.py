"""Contractions with an elementwise epilogue as kernels, and batches of small products as calls of one kernel.

An operand without one stride for rows and one for columns is read through offset tables (the first operand) or copied
(the second).
"""

from __future__ import annotations

import itertools
from typing import ClassVar, Final

import numpy as np

from runnel.backends import context
from runnel.compiler.kernels.epilogue import Epilogue
from runnel.compiler.lowering.operands import Operands
from runnel.compiler.lowering.parts import Parts, named
from runnel.compiler.lowering.protocol import Lowering, Request
from runnel.compiler.plan_ir import cost
from runnel.compiler.plan_ir.calls import GRAIN, Allocation, BufferAccess, Call, MemorySpace, hull
from runnel.compiler.plan_ir.clusters import Cluster, essential_strides
from runnel.compiler.plan_ir.plan import Section
from runnel.compiler.plan_ir.strides import Extents, ResultAxes, Strided, merged_stride
from runnel.core.avals import Shape, row_major
from runnel.core.dtypes import DType, int32
from runnel.core.lengths import expected
from runnel.core.records import record
from runnel.graph.node import Value
from runnel.loops import ir
from runnel.loops.rules import DotGeneral


def extents(product: Value, rule: DotGeneral) -> Extents:
    """Return the axes of a contraction node."""
    a, b = (x.aval.shape for x in product.inputs)
    if rule.several:
        rows, columns = len(a) - product.attrs["axes"], product.attrs["axes"]
        return Extents((), a[:rows], a[rows:], product.attrs["columns"] if rule.panels else b[columns:])
    return Extents(a[:-2], a[-2:-1], a[-1:], b[-1:])


ROW_BLOCK = 256  # rows for which packing B again pays off


@record
class Matrix:
    """An operand of a product: its strides, or its offset tables (of rows, of k) with strides of 0. The second may be
    packed in panels of ``width`` columns, ``panel`` elements apart."""

    allocation: Allocation
    offset: int
    row: int
    column: int
    tables: tuple[Allocation, Allocation] | None = None
    panel: int = 0
    width: int = 0


def product(request: Request, rule: DotGeneral) -> Call:
    """Return the call of a cluster whose root is a product."""
    return _Product(request, rule).call()


class _Product:
    """The nest over rows and columns of a product, with the product itself as first statement."""

    def __init__(self, request: Request, rule: DotGeneral) -> None:
        self.request, self.rule = request, rule
        self.node, self.operands = request.node, request.operands
        self.axes = extents(self.node, rule)
        self.parts = Parts()
        self.row, self.column = ir.Var("x0"), ir.Var("x1")
        self.epilogue = Epilogue(request, self.parts, self.row, self.column, "product")

    def call(self) -> Call:
        node, axes, parts = self.node, self.axes, self.parts
        result = self._result()
        dtype, operand_dtype = node.aval.dtype, node.inputs[0].aval.dtype
        m, n, k = axes.m, axes.n, axes.k
        a, b = self._first(node.inputs[0]), self._second(node.inputs[1])
        parts.declare(_read(a.allocation, a.offset, a.row, 0, (k, a.column)), "in", operand_dtype)
        parts.declare(_read(b.allocation, b.offset, 0, b.column, (k, b.row)), "in", operand_dtype)
        if b.width:
            parts.accesses[1] = BufferAccess(b.allocation, False, b.offset, None, None, b.allocation.size)
        lists = None
        if a.tables is not None:
            parts.accesses[0] = BufferAccess(a.allocation, False, a.offset, None, None, a.allocation.size)
            of_rows = parts.declare(BufferAccess(a.tables[0], False, 0, 1, 0, 1), "in", int32)
            lists = ir.IndirectOperand(
                of_rows, parts.declare(BufferAccess(a.tables[1], False, 0, 0, 0, k), "in", int32)
            )
        c_row: ir.Stride
        if result is None:
            c_row = ir.TILE_STRIDE // dtype.itemsize
            index = ir.Index(((self.row, c_row), (self.column, 1)))
            name = parts.declare(BufferAccess(_tile(dtype), True, 0, 0, 0, 0), "tile", dtype)
        else:
            result_view = self.epilogue.members.reach(result, 0, ())
            result_view.strides[:] = [n, 1]
            name, index = self.epilogue.addressing.buffer(result_view, writes=True)
            c_row = parts.param(n)
        a_row, a_k = (0, 0) if lists is not None else (parts.param(a.row), parts.param(a.column))
        b_k, b_col = parts.param(b.row), parts.param(b.column)
        contract = ir.Contract(
            "b0", "b1", name, dtype, k=parts.param(k), a_row=a_row, a_k=a_k, b_k=b_k, b_col=b_col, c_row=c_row,
            indirect=lists, panels=ir.Panels(parts.param(b.panel), b.width) if b.width else None,
            operand_dtype=None if operand_dtype is dtype else operand_dtype,
        )  # fmt: skip
        body = (contract, *self._epilogue(result, name, index))
        kernel = named("contract", tuple(parts.buffers), tuple(parts.params), body, self._doc)
        backend = context.current().backend
        packs = b.width > 0 or operand_dtype is not dtype or backend.packs_columns(m, k, b.row, b.column, dtype)
        grain, flops = b.width or GRAIN, self.epilogue.flops + 2.0 * expected(m * n * k)
        return Call(
            kernel, parts.accesses, parts.values, m, n, "both", flops, list(self.request.cluster.members),
            packs=packs, depth=k, grain=grain, packed_block=(ROW_BLOCK, ir.TILE_BYTES // operand_dtype.itemsize),
        )  # fmt: skip

    @property
    def _doc(self) -> str:
        return self.request.cluster.members[-1].where

    def _result(self) -> Allocation | None:
        """Return the place where the product accumulates: its own, the place of an epilogue value over it, a tile
        (None) where k is short enough to finish a block at once, or a new one."""
        dtype = self.node.aval.dtype
        targets = [p for n in self.request.cluster.members for p in self.request.targets.get(n, ()) if p.dtype is dtype]
        for allocation in targets:
            if allocation.space in (MemorySpace.ARENA, MemorySpace.OUTPUT):
                return allocation
        if self.axes.k <= ir.TILE_K:
            return None
        return Allocation(MemorySpace.ARENA, dtype, self.node.aval.size, "product")

    def _epilogue(self, result: Allocation | None, name: str, index: ir.Index) -> list[ir.Stmt]:
        """Return the loops over a finished block, if there is an epilogue."""
        members, node = self.epilogue.members, self.node
        copies = [p for p in self.request.targets.get(node, ()) if p is not result]
        if not (copies or node in self.request.subviews or any(x is not node for x in members.stored)):
            return []
        own = ir.Store(name, index, ir.Ref("product", node.aval.dtype))
        inner = [s for s in self.epilogue.at_point(ir.Load(name, index, node.aval.dtype)) if s != own]
        vector = ir.For(self.column, ir.RangeBound.J0, ir.RangeBound.J1, "vec", tuple(inner))
        return [ir.For(self.row, ir.RangeBound.I0, ir.RangeBound.I1, "seq", (*self.epilogue.before, vector))]

    def _first(self, x: Value) -> Matrix:
        """Return A: by strides where its axes merge, else by offset tables."""
        axes, offsets = self.axes, self.request.offsets
        allocation, offset, strides = self.operands.view(x)
        strides = strides[len(axes.batch) :]
        split = len(axes.rows)
        row, column = merged_stride(axes.rows, strides[:split]), merged_stride(axes.inner, strides[split:])
        if row is not None and column is not None:
            return Matrix(allocation, offset, row, column)
        rows, ks = offsets.allocation(axes.rows, strides[:split]), offsets.allocation(axes.inner, strides[split:])
        if rows is not None and ks is not None:
            return Matrix(allocation, offset, 0, 0, (rows, ks))
        return Matrix(*self.operands.dense(x), axes.k, 1)

    def _second(self, x: Value) -> Matrix:
        """Return B: by strides, in a dense copy if its axes do not merge."""
        axes = self.axes
        allocation, offset, strides = self.operands.view(x)
        strides = strides[len(axes.batch) :]
        if self.rule.panels:
            length = x.aval.shape[2]
            if strides[1:] != (length, 1) or strides[0] == 0:
                allocation, offset = self.operands.dense(x)
                strides = row_major(x.aval.shape)
            together = 1 if x.aval.dtype is self.node.aval.dtype else 2  # steps of k in a row of a panel
            return Matrix(allocation, offset, length, together, panel=strides[0], width=length // together)
        split = len(axes.inner)
        row, column = merged_stride(axes.inner, strides[:split]), merged_stride(axes.columns, strides[split:])
        if row is not None and column is not None:
            return Matrix(allocation, offset, row, column)
        return Matrix(*self.operands.dense(x), axes.n, 1)


def _tile(dtype: DType) -> Allocation:
    """Return the thread's scratch after the part that packing uses."""
    behind = context.current().backend.product_scratch
    return Allocation(
        MemorySpace.SCRATCH, dtype, ir.TILE_ROWS * ir.TILE_STRIDE // dtype.itemsize, "tile", slot=0, offset=behind
    )


def _read(allocation: Allocation, offset: int, row: int, column: int, *inner: tuple[int, int]) -> BufferAccess:
    """Return an operand that each row and column reads along axes of (extent, step)."""
    before, span = hull(inner)
    return BufferAccess(allocation, False, offset, row, column, span, before=before)


def batched_products(node: Value, operands: Operands, result: Allocation) -> list[Call]:
    """Return a call for each index of the outer batch axes; the innermost batch axis is a loop in the kernel."""
    a_place, a_offset, a_strides = operands.view(node.inputs[0])
    b_place, b_offset, b_strides = operands.view(node.inputs[1])
    *batch, m, n = node.aval.shape
    k = node.inputs[0].aval.shape[-1]
    dtype, operand_dtype = node.aval.dtype, node.inputs[0].aval.dtype
    params = tuple(ir.Param(f"p{i}") for i in range(11))
    p_k, a_row, a_k, b_k, b_col, c_row, *steps = params
    contract = ir.Contract(
        "b0", "b1", "b2", dtype, k=p_k, a_row=a_row, a_k=a_k, b_k=b_k, b_col=b_col, c_row=c_row,
        batch=ir.BatchSpec(*steps), operand_dtype=None if operand_dtype is dtype else operand_dtype,
    )  # fmt: skip
    buffers = (
        ir.Buffer("b0", operand_dtype, "in"),
        ir.Buffer("b1", operand_dtype, "in"),
        ir.Buffer("b2", dtype, "out"),
    )
    kernel = named("products", buffers, params, (contract,), "batched contraction")
    calls = []
    for outer in itertools.product(*(range(x) for x in batch[:-1])):
        a0 = a_offset + sum(i * s for i, s in zip(outer, a_strides, strict=False))
        b0 = b_offset + sum(i * s for i, s in zip(outer, b_strides, strict=False))
        c0 = 0
        for i, extent in zip(outer, batch[:-1], strict=True):
            c0 = c0 * extent + i
        c0 *= batch[-1] * m * n
        a_step, b_step, c_step = a_strides[len(batch) - 1], b_strides[len(batch) - 1], m * n
        values = [k, a_strides[-2], a_strides[-1], b_strides[-2], b_strides[-1], n, m, n, a_step, b_step, c_step]
        accesses = [
            _read(a_place, a0, a_step, 0, (m, a_strides[-2]), (k, a_strides[-1])),
            _read(b_place, b0, b_step, 0, (k, b_strides[-2]), (n, b_strides[-1])),
            BufferAccess(result, True, c0, c_step, 0, m * n),
        ]
        calls.append(
            Call(kernel, accesses, values, batch[-1], 1, "rows", 2.0 * expected(m * n * k * batch[-1]), [node])
        )
    return calls


_LARGEST: Final = np.iinfo(np.int32).max  # elements that an offset table can address


class ProductLowering(Lowering):
    """The base of all products with an epilogue."""

    is_product: ClassVar[bool] = True
    reads_at_point: ClassVar[bool] = False
    rate: ClassVar[float] = cost.PRODUCT_RATE

    def takes_subview(self, node: Value, shape: Shape, strides: Shape, size: int) -> bool:
        axes = self.epilogue_axes(node)
        rows = None if axes is None or size > _LARGEST else axes.point_rows(essential_strides(shape, strides))
        return rows is not None and rows.column == 1

    def reads_by_strides(self, node: Value, x: Value, view: Strided) -> bool:
        return x is node.inputs[0] and x not in node.inputs[1:] and self.epilogue_axes(node) is not None


class DotGeneralLowering(ProductLowering):
    """Products of matrices, over several axes (dot_general) or batched."""

    def epilogue_axes(self, node: Value) -> ResultAxes | None:
        axes = extents(node, self.rule)
        return None if axes.is_batched else axes.result

    def may_overwrite(self, cluster: Cluster, result: Value, views: dict[Value, Strided]) -> bool:
        return self.epilogue_axes(cluster.root) is not None

    def packable(self, node: Value) -> Extents | None:
        return extents(node, self.rule)

    def build(self, request: Request) -> Section:
        if self.epilogue_axes(request.node) is None:
            return super().build(request)
        section = Section()
        call = product(request, self.rule)
        section.add([*request.operands.before, call])
        return section

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return batched_products(request.node, request.operands, results[0])
