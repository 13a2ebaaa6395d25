"""A contraction with its pointwise epilogue as a kernel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from runnel.codegen.contract import SCRATCH, packs_columns
from runnel.compiler.fusion.clusters import Cluster
from runnel.compiler.fusion.strided import Strided
from runnel.compiler.kernels.contraction.matrices import (
    Extents,
    OffsetLists,
    extents,
    is_in_panels,
    merged_stride,
    point_rows,
)
from runnel.compiler.kernels.copies.alone import Lie
from runnel.compiler.kernels.elementwise.nests import POSITION, NestBuilder, Reach
from runnel.compiler.kernels.naming import named
from runnel.compiler.kernels.places import GRAIN, Access, Call, Place, Space, hull
from runnel.core.avals import Shape, row_major
from runnel.core.dtypes import DType, int32, int64
from runnel.core.errors import VerifierError
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.loops.ir import TILE_ROWS, TILE_STRIDE, BatchSpec, Contract, For, Lists, Panels, Param, RangeBound


def operand(views: dict[Value, Strided], sources: dict[Value, Place], x: Value) -> tuple[Place, int, Shape]:
    """Where a contraction's operand lies: place, offset and strides in elements."""
    view = views[x]
    return sources[view.base], view.offset, view.strides


@dataclass(frozen=True, slots=True)
class Matrix:
    """An operand of a product: its strides, or its lists of offsets (of rows, of k), in which case they are 0. The
    second may lie in panels of ``width`` columns, ``panel`` elements apart."""

    place: Place
    offset: int
    row: int
    column: int
    lists: tuple[Place, Place] | None = None
    panel: int = 0
    width: int = 0


class EpilogueBuilder(NestBuilder):
    """The nest over rows and columns of a product, with the product itself as first statement. ``dense`` gives a dense
    copy of an operand that cannot be read where it lies. An array that one stride does not lead through row by row (the
    interior of a padded one) has a list of where its rows begin."""

    def __init__(
        self,
        cluster: Cluster,
        views: dict[Value, Strided],
        sources: dict[Value, Place],
        targets: dict[Value, list[Place]],
        laid: dict[Value, list[Lie]],
        dense: Callable[[Value], tuple[Place, int]],
        lists: OffsetLists,
    ) -> None:
        self.dense = dense
        self.lists = lists
        self.listed: dict[int, Place] = {}  # lists of accesses by their ids
        self.row_names: dict[Place, str] = {}
        self.row_lets: list[ir.Stmt] = []
        super().__init__(cluster, views, sources, targets, laid)

    def _point_operands(self, node: Value) -> tuple[Value, ...]:
        return () if node is self.cluster.product else node.inputs

    def _merge_axes(self) -> None:
        """Always two axes, rows and columns, whatever the extents."""
        product = self.cluster.product
        m, n = (math.prod(part) for part in (extents(product).rows, extents(product).columns))
        for r in self.reaches.values():
            found = point_rows(product, tuple(r.strides))
            row = None if found is None else merged_stride(found.shape, found.strides)
            rows = self.lists.place(found.shape, found.strides) if found is not None and row is None else None
            if found is None or (row is None and (rows is None or r.place is POSITION)):
                raise VerifierError(f"[{product.op}] an operand of its epilogue has no strides of rows and columns.")
            if rows is not None:
                self.listed[id(r)] = rows
            r.strides[:] = [row or 0, found.column if n != 1 else 1]
        self.axes = [(m, False), (n, False)]
        self.vars = [ir.Var("x0"), ir.Var("x1")]

    def _buffer(self, reach: Reach, *, writes: bool) -> tuple[str, ir.Index]:
        name, index = super()._buffer(reach, writes=writes)
        rows = self.listed.get(id(reach))
        return (name, index) if rows is None else (name, replace(index, gathered=((self._row_of(rows), 1),)))

    def _access(self, reach: Reach, writes: bool) -> Access:
        if id(reach) in self.listed:
            return Access(reach.place, writes, reach.offset, None, None, reach.place.size)
        return super()._access(reach, writes)

    def _row_of(self, rows: Place) -> ir.Ref:
        """Where the row at hand begins, by a list."""
        if rows not in self.row_names:
            held, name = f"b{len(self.buffers)}", f"row{len(self.row_names)}"
            self.buffers.append(ir.Buffer(held, int32, "in"))
            self.accesses.append(Access(rows, False, 0, 1, 0, 1))
            begin = ir.Load(held, ir.Index(((self.vars[0], 1),)), int32)
            self.row_lets.append(ir.Let(name, ir.Apply(scalar.cast, (begin,), int64)))
            self.row_names[rows] = name
        return ir.Ref(self.row_names[rows], int64)

    def build_product(self, result: Place | None, doc: str) -> Call:
        """``result`` is where the product is accumulated (the epilogue may overwrite it, if it is its own target); None
        is a tile in the thread's scratch."""
        product = self.cluster.product
        axes, dtype, factors = extents(product), product.aval.dtype, product.inputs[0].aval.dtype
        m, n, k = axes.m, axes.n, axes.k
        a, b = self._first(product.inputs[0], axes), self._second(product.inputs[1], axes)
        self.declared = {}
        self.names = {}
        self.reload = {}
        self.row_axis, self.column_axis = 0, 1
        self.buffers += [ir.Buffer("b0", factors, "in"), ir.Buffer("b1", factors, "in")]
        self.accesses += [
            _read(a.place, a.offset, a.row, 0, (k, a.column)),
            _read(b.place, b.offset, 0, b.column, (k, b.row)),
        ]
        if b.width:
            self.accesses[1] = Access(b.place, False, b.offset, None, None, b.place.size)
        lists = None
        if a.lists is not None:
            lists = Lists("b2", "b3")
            self.buffers += [ir.Buffer("b2", int32, "in"), ir.Buffer("b3", int32, "in")]
            self.accesses[0] = Access(a.place, False, a.offset, None, None, a.place.size)
            self.accesses += [Access(a.lists[0], False, 0, 1, 0, 1), Access(a.lists[1], False, 0, 0, 0, k)]
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
        a_row, a_k = (0, 0) if lists is not None else (self._param(a.row), self._param(a.column))
        b_k, b_col = self._param(b.row), self._param(b.column)
        contract = Contract(
            "b0", "b1", name, dtype, k=self._param(k), a_row=a_row, a_k=a_k, b_k=b_k, b_col=b_col, c_row=c_row,
            lists=lists, panels=Panels(self._param(b.panel), b.width) if b.width else None,
            factors=None if factors is dtype else factors,
        )  # fmt: skip
        block: list[ir.Stmt] = [contract]
        stored = [x for x in self.cluster.members if x is not product and (x in self.targets or x in self.laid)]
        copies = [p for p in self.targets.get(product, ()) if p is not result]
        if stored or copies or product in self.laid:
            self.names[product] = "product"
            inner: list[ir.Stmt] = [ir.Let("product", ir.Load(name, index, dtype))]
            inner += self._emit_needed(stored)
            own = ir.Store(name, index, ir.Ref("product", dtype))
            inner += [s for s in self._stores(self.cluster.members, self.targets) if s != own]
            inner += self._laid_stores()
            body = (*self.row_lets, self._vector_loop(inner))
            rows = For(self.vars[0], RangeBound.I0, RangeBound.I1, "seq", body)
            block.append(rows)
        self.flops += 2.0 * m * n * k
        kernel = named("contract", tuple(self.buffers), tuple(self.params), tuple(block), doc)
        packs = b.width > 0 or factors is not dtype or packs_columns(m, k, b.row, b.column, dtype)
        nodes = list(self.cluster.members)
        return Call(
            kernel, self.accesses, self.values, m, n, "both", self.flops, nodes, packs=packs, depth=k,
            grain=b.width or GRAIN,
        )  # fmt: skip

    def _first(self, x: Value, axes: Extents) -> Matrix:
        """A: by strides where its axes merge, else by lists."""
        place, offset, strides = operand(self.views, self.sources, x)
        strides = strides[len(axes.batch) :]
        split = len(axes.rows)
        row, column = merged_stride(axes.rows, strides[:split]), merged_stride(axes.inner, strides[split:])
        if row is not None and column is not None:
            return Matrix(place, offset, row, column)
        rows, ks = self.lists.place(axes.rows, strides[:split]), self.lists.place(axes.inner, strides[split:])
        if rows is not None and ks is not None:
            return Matrix(place, offset, 0, 0, (rows, ks))
        return Matrix(*self.dense(x), axes.k, 1)

    def _second(self, x: Value, axes: Extents) -> Matrix:
        """B: by strides, in a dense copy if its axes do not merge."""
        place, offset, strides = operand(self.views, self.sources, x)
        strides = strides[len(axes.batch) :]
        if is_in_panels(self.cluster.product):
            length = x.aval.shape[2]
            if strides[1:] != (length, 1) or strides[0] == 0:
                place, offset = self.dense(x)
                strides = row_major(x.aval.shape)
            together = 1 if x.aval.dtype is self.cluster.product.aval.dtype else 2  # of k, in a row of a panel
            return Matrix(place, offset, length, together, panel=strides[0], width=length // together)
        split = len(axes.inner)
        row, column = merged_stride(axes.inner, strides[:split]), merged_stride(axes.columns, strides[split:])
        if row is not None and column is not None:
            return Matrix(place, offset, row, column)
        return Matrix(*self.dense(x), axes.n, 1)


def tile_place(dtype: DType) -> Place:
    """The thread's own memory behind what packing uses."""
    return Place(Space.SCRATCH, dtype, TILE_ROWS * TILE_STRIDE // dtype.itemsize, "tile", slot=0, offset=SCRATCH)


def _read(place: Place, offset: int, row: int, column: int, *inner: tuple[int, int]) -> Access:
    """An operand that each row and column reads along axes of (extent, step)."""
    before, span = hull(inner)
    return Access(place, False, offset, row, column, span, before=before)


def batched_products(
    product: Value, views: dict[Value, Strided], sources: dict[Value, Place], result: Place
) -> list[Call]:
    """One call for each index of the outer batch axes; the innermost batch axis is a loop inside the kernel."""
    a_place, a_offset, a_strides = operand(views, sources, product.inputs[0])
    b_place, b_offset, b_strides = operand(views, sources, product.inputs[1])
    *batch, m, n = product.aval.shape
    k = product.inputs[0].aval.shape[-1]
    dtype, factors = product.aval.dtype, product.inputs[0].aval.dtype
    params = tuple(Param(f"p{i}") for i in range(11))
    p_k, a_row, a_k, b_k, b_col, c_row, *steps = params
    contract = Contract(
        "b0", "b1", "b2", dtype, k=p_k, a_row=a_row, a_k=a_k, b_k=b_k, b_col=b_col, c_row=c_row,
        batch=BatchSpec(*steps), factors=None if factors is dtype else factors,
    )  # fmt: skip
    buffers = (ir.Buffer("b0", factors, "in"), ir.Buffer("b1", factors, "in"), ir.Buffer("b2", dtype, "out"))
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
            Access(result, True, c0, c_step, 0, m * n),
        ]
        calls.append(Call(kernel, accesses, values, batch[-1], 1, "rows", 2.0 * m * n * k * batch[-1], [product]))
    return calls
