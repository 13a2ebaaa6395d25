"""A contraction with its pointwise epilogue as a kernel."""

from __future__ import annotations

import itertools

from runnel.codegen.contract import SCRATCH, packs_columns
from runnel.core.avals import Shape
from runnel.core.dtypes import DType
from runnel.graph.graph import Node
from runnel.loops import ir
from runnel.loops.ir import TILE_ROWS, TILE_STRIDE, BatchSpec, Contract, For, Param, RangeBound
from runnel.lowering.naming import named
from runnel.lowering.nests import NestBuilder
from runnel.lowering.places import Access, Call, Place, Space
from runnel.lowering.strided import Strided


def operand(views: dict[Node, Strided], sources: dict[Node, Place], x: Node) -> tuple[Place, int, Shape]:
    """Where a contraction's operand lies: place, offset and strides in elements."""
    view = views[x]
    return sources[view.base], view.offset, view.strides


class EpilogueBuilder(NestBuilder):
    """The nest over rows and columns of a product, with the product itself as first statement."""

    def _point_operands(self, node: Node) -> tuple[Node, ...]:
        return () if node is self.cluster.product else node.inputs

    def _merge_axes(self) -> None:
        """Always two axes, rows and columns, whatever the extents."""
        m, n = self.cluster.product.aval.shape[-2:]
        for r in self.reaches.values():
            steps = iter(r.strides)
            row = next(steps) if m != 1 else 0
            column = next(steps) if n != 1 else 1
            r.strides[:] = [row, column]
        self.axes = [(m, False), (n, False)]
        self.vars = [ir.Var("x0"), ir.Var("x1")]

    def build_product(self, result: Place | None, doc: str) -> Call:
        """``result`` is where the product is accumulated (the epilogue may overwrite it, if it is its own target); None
        is a tile in the thread's scratch."""
        product = self.cluster.product
        a_place, a_offset, a_strides = operand(self.views, self.sources, product.inputs[0])
        b_place, b_offset, b_strides = operand(self.views, self.sources, product.inputs[1])
        m, n = product.aval.shape[-2:]
        k = product.inputs[0].aval.shape[-1]
        dtype = product.aval.dtype
        self.declared = {}
        self.names = {}
        self.reload = {}
        self.passes = 0
        self.row_axis, self.column_axis = 0, 1
        self.buffers += [ir.Buffer("b0", dtype, "in"), ir.Buffer("b1", dtype, "in")]
        self.accesses += [
            Access(a_place, False, a_offset, a_strides[-2], 0, span(a_strides[-1], k)),
            Access(b_place, False, b_offset, 0, b_strides[-1], span(b_strides[-2], k)),
        ]
        c_row: ir.Stride
        if result is None:
            name = f"b{len(self.buffers)}"
            c_row = TILE_STRIDE // dtype.itemsize
            index = ir.Index(((self.vars[0], c_row), (self.vars[1], 1)))
            self.buffers.append(ir.Buffer(name, dtype, "tile"))
            self.accesses.append(Access(tile_place(dtype), True, 0, 0, 0, 0))
        else:
            home = self._reach(result, 0, ())
            home.strides[:] = [n, 1]
            name, index = self._buffer(home, writes=True)
            c_row = self._param(n)
        a_row, a_k, b_k, b_col = (self._param(v) for v in (*a_strides[-2:], *b_strides[-2:]))
        contract = Contract(
            "b0", "b1", name, dtype, k=self._param(k), a_row=a_row, a_k=a_k, b_k=b_k, b_col=b_col, c_row=c_row
        )
        block: list[ir.Stmt] = [contract]
        stored = [x for x in self.cluster.members if x is not product and x in self.targets]
        copies = [p for p in self.targets.get(product, ()) if p is not result]
        if stored or copies:
            self.names[product] = "product"
            inner: list[ir.Stmt] = [ir.Let("product", ir.Load(name, index, dtype))]
            inner += self._emit_needed(stored)
            own = ir.Store(name, index, ir.Ref("product", dtype))
            inner += [s for s in self._stores(self.cluster.members, self.targets) if s != own]
            rows = For(self.vars[0], RangeBound.I0, RangeBound.I1, "seq", (self._vector_loop(inner),))
            block.append(rows)
        self.flops += 2.0 * m * n * k
        kernel = named("contract", tuple(self.buffers), tuple(self.params), tuple(block), doc)
        packs = packs_columns(m, k, b_strides[-2], b_strides[-1], dtype)
        nodes = list(self.cluster.members)
        return Call(kernel, self.accesses, self.values, m, n, "both", self.flops, nodes, packs=packs, depth=k)


def tile_place(dtype: DType) -> Place:
    """The thread's own memory behind what packing uses."""
    return Place(Space.SCRATCH, dtype, TILE_ROWS * TILE_STRIDE // dtype.itemsize, "tile", slot=0, offset=SCRATCH)


def span(step: int, extent: int) -> int:
    """Elements from the first to the last of ``extent`` steps, inclusive."""
    return 1 + (extent - 1) * abs(step) if extent else 0


def batched_products(
    product: Node, views: dict[Node, Strided], sources: dict[Node, Place], result: Place
) -> list[Call]:
    """One call for each index of the outer batch axes; the innermost batch axis is a loop inside the kernel."""
    a_place, a_offset, a_strides = operand(views, sources, product.inputs[0])
    b_place, b_offset, b_strides = operand(views, sources, product.inputs[1])
    *batch, m, n = product.aval.shape
    k = product.inputs[0].aval.shape[-1]
    dtype = product.aval.dtype
    params = tuple(Param(f"p{i}") for i in range(11))
    p_k, a_row, a_k, b_k, b_col, c_row, *steps = params
    contract = Contract(
        "b0", "b1", "b2", dtype, k=p_k, a_row=a_row, a_k=a_k, b_k=b_k, b_col=b_col, c_row=c_row,
        batch=BatchSpec(*steps),
    )  # fmt: skip
    buffers = (ir.Buffer("b0", dtype, "in"), ir.Buffer("b1", dtype, "in"), ir.Buffer("b2", dtype, "out"))
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
            Access(a_place, False, a0, a_step, 0, span(a_strides[-2], m) + span(a_strides[-1], k)),
            Access(b_place, False, b0, b_step, 0, span(b_strides[-2], k) + span(b_strides[-1], n)),
            Access(result, True, c0, c_step, 0, m * n),
        ]
        calls.append(Call(kernel, accesses, values, batch[-1], 1, "rows", 2.0 * m * n * k * batch[-1], [product]))
    return calls
