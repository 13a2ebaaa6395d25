"""Ops that are kernels of their own: concatenation, gather and scatter."""

from __future__ import annotations

import math
from collections.abc import Callable, Container

from runnel.compiler.kernels.elementwise.transposing import through_scratch
from runnel.compiler.kernels.naming import named
from runnel.compiler.kernels.places import Access, Call, Place, hull
from runnel.core.avals import Shape, row_major
from runnel.core.dtypes import int64
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.loops.ir import LANES, Apply, Const, Expr, For, Index, Load, Param, RangeBound, Store, Var

Lie = tuple[Place, int, Shape]  # place, offset, strides
DenseOperand = Callable[[Value], tuple[Place, int]]


def elementwise(shape: Shape, loads: list[Lie], store: Lie, value: Callable[[list[Expr]], Expr], node: Value) -> Call:
    """store[i] = value(loads[i]…) over ``shape``, with axes merged where all accesses allow."""
    lies = [*loads, store]
    axes = [(n, [lie[2][a] for lie in lies]) for a, n in enumerate(shape) if n != 1]
    merged: list[tuple[int, list[int]]] = []
    for n, steps in reversed(axes):
        if merged and all(s == inner * merged[0][0] for s, inner in zip(steps, merged[0][1], strict=True)):
            merged[0] = (n * merged[0][0], merged[0][1])
        else:
            merged.insert(0, (n, steps))
    if not merged:
        merged = [(1, [1] * len(lies))]
    plain = _nest(merged, lies, value, node)
    call = through_scratch(plain)
    ordered = _for_the_reader(merged) if len(loads) == 1 and call is plain else merged
    return call if ordered is merged else _nest(ordered, lies, value, node)


def _nest(
    merged: list[tuple[int, list[int]]], lies: list[Lie], value: Callable[[list[Expr]], Expr], node: Value
) -> Call:
    """The last of ``lies`` = value(the others), over axes of (extent, steps)."""
    loads = lies[:-1]
    params: list[Param] = []
    values: list[int] = []

    def param(v: int) -> Param:
        params.append(Param(f"p{len(params)}"))
        values.append(v)
        return params[-1]

    loops = [Var(f"x{a}") for a in range(len(merged))]
    last = len(merged) - 1
    accesses, buffers, indices = [], [], []
    row = 0 if len(merged) > 1 else None
    for b, (place, offset, _) in enumerate(lies):
        steps = [axis[1][b] for axis in merged]
        terms = tuple((loops[a], 1 if a == last and s == 1 else param(s)) for a, s in enumerate(steps) if s != 0)
        indices.append(Index(terms))
        writes = b == len(lies) - 1
        buffers.append(ir.Buffer(f"b{b}", place.dtype, "out" if writes else "in"))
        before, span = hull(
            (axis[0], s) for a, (axis, s) in enumerate(zip(merged, steps, strict=True)) if a not in (row, last)
        )
        row_step = 0 if row is None else steps[0]
        accesses.append(Access(place, writes, offset, row_step, steps[last], span, before=before))
    expr = value([Load(f"b{b}", indices[b], lie[0].dtype) for b, lie in enumerate(loads)])
    body: ir.Stmt = For(loops[-1], RangeBound.J0, RangeBound.J1, "vec", (Store(f"b{len(loads)}", indices[-1], expr),))
    for a in range(last - 1, 0, -1):
        body = For(loops[a], 0, param(merged[a][0]), "seq", (body,))
    outer = loops[0] if row is not None else Var("once")
    body = For(outer, RangeBound.I0, RangeBound.I1, "seq", (body,))
    kernel = named("copy", tuple(buffers), tuple(params), (body,))
    rows = merged[0][0] if row is not None else 1
    return Call(
        kernel,
        accesses,
        values,
        rows,
        merged[-1][0],
        "both" if row is not None else "columns",
        float(math.prod(n for n, _ in merged)),
        [node],
    )


def _for_the_reader(axes: list[tuple[int, list[int]]]) -> list[tuple[int, list[int]]]:
    """Axes of (extent, steps of load and store) in an order in which a transposed source is read well: a few of its
    rows at a time, from one end to the other."""
    n, (load, store) = axes[-1]
    if load in (0, 1) or store != 1 or len(axes) == 1 or any(abs(load) <= abs(steps[0]) for _, steps in axes[:-1]):
        return axes
    inner = [(n, [load, store])]
    if n > LANES and n % LANES == 0:
        inner = [(n // LANES, [LANES * load, LANES]), (LANES, [load, store])]
    outer = [*axes[:-1], *inner[:-1]]
    return [*sorted(outer, key=lambda axis: -abs(axis[1][0])), inner[-1]]


def concatenation(node: Value, operand: Callable[[Value], Lie], result: Place, laid: Container[int] = ()) -> list[Call]:
    """Each input copied to its part of the result, but those whose numbers are ``laid``: they lie there already."""
    axis = node.attrs["axis"]
    strides = row_major(node.aval.shape)
    calls, start = [], 0
    for number, x in enumerate(node.inputs):
        if x.aval.size and number not in laid:
            target = (result, start * strides[axis], strides)
            calls.append(elementwise(x.aval.shape, [operand(x)], target, lambda loads: loads[0], node))
        start += x.aval.shape[axis]
    return calls


def clamped(index: Expr, last: Expr) -> Expr:
    """``index`` held inside [0, last]: no input can make a kernel read outside its buffers."""
    wide = index if index.dtype is int64 else Apply(scalar.cast, (index,), int64)
    return Apply(scalar.minimum, (Apply(scalar.maximum, (wide, Const(0, int64)), int64), last), int64)


def gather(node: Value, dense: DenseOperand, result: Place) -> list[Call]:
    """result[before, i, after] = table[before, indices[i], after]. ``dense`` gives operands in dense memory."""
    table, indices = node.inputs
    axis = node.attrs["axis"]
    t_place, t_offset = dense(table)
    i_place, i_offset = dense(indices)
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
        rows, columns, steps = before, count, ((0, 0), (0, 1), (count, 1))
    else:
        load = Load("b0", Index(((b, p_table), (a, 1)), gathered=((ir.Ref("at", int64), p_after),)), table.aval.dtype)
        store = Store("b2", Index(((b, p_result), (i, p_after), (a, 1))), load)
        chosen_once: ir.Stmt = ir.Let("at", position)
        loop = For(b, 0, p_before, "seq", (For(a, RangeBound.J0, RangeBound.J1, "vec", (store,)),))
        body = For(i, RangeBound.I0, RangeBound.I1, "seq", (chosen_once, loop))
        rows, columns, steps = count, after, ((0, 1), (1, 0), (after, 1))
    buffers = (
        ir.Buffer("b0", table.aval.dtype, "in"),
        ir.Buffer("b1", indices.aval.dtype, "in"),
        ir.Buffer("b2", node.aval.dtype, "out"),
    )
    accesses = [
        Access(t_place, False, t_offset, 0, 0, table.aval.size),
        Access(i_place, False, i_offset, steps[1][0], steps[1][1], 1),
        Access(result, True, 0, steps[2][0], steps[2][1], 1 if before == 1 else node.aval.size),
    ]
    kernel = named("gather", buffers, params, (body,))
    return [
        Call(
            kernel,
            accesses,
            [extent - 1, after, extent * after, count * after, before],
            rows,
            columns,
            "both",
            float(node.aval.size),
            [node],
        )
    ]


def scatter_add(node: Value, dense: DenseOperand, result: Place) -> list[Call]:
    """Zeros, then result[indices[i]] += updates[i] in order of i; split by columns so that the order never changes."""
    indices, updates = node.inputs
    dtype = node.aval.dtype
    zero = 0.0 if dtype.is_float else 0
    shape = node.aval.shape
    fill = elementwise(shape, [], (result, 0, row_major(shape)), lambda _: Const(zero, dtype), node)
    i_place, i_offset = dense(indices)
    u_place, u_offset = dense(updates)
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
        Access(i_place, False, i_offset, 0, 0, count),
        Access(u_place, False, u_offset, 0, 1, count * after),
        Access(result, True, 0, 0, 1, node.aval.size),
    ]
    kernel = named("scatter_add", buffers, (p_count, p_after, p_last), (body,))
    return [
        fill,
        Call(kernel, accesses, [count, after, shape[0] - 1], 1, after, "columns", float(updates.aval.size), [node]),
    ]
