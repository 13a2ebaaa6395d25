"""Copies and fills of strided memory: an elementwise expression of the loaded elements."""

from __future__ import annotations

import math
from collections.abc import Callable

from runnel.compiler.kernels.allocations import Allocation, BufferAccess, BufferView, Call, hull
from runnel.compiler.kernels.elementwise.tiled_transpose import through_scratch
from runnel.compiler.kernels.parts import Parts
from runnel.core.avals import Shape, row_major
from runnel.graph.node import Value
from runnel.loops import ir
from runnel.loops.ir import LANES, Expr, For, Index, Load, RangeBound, Store, Var


def copied(shape: Shape, source: BufferView, target: BufferView, node: Value) -> Call:
    """target[i] = source[i] over ``shape``."""
    return _elementwise(shape, [source], target, lambda loads: loads[0], node)


def dense_copy(shape: Shape, source: BufferView, allocation: Allocation, node: Value) -> Call:
    """The same where ``place`` is dense."""
    return copied(shape, source, (allocation, 0, row_major(shape)), node)


def filled(shape: Shape, allocation: Allocation, value: Expr, node: Value) -> Call:
    """Every element of a dense array set to ``value``."""
    return _elementwise(shape, [], (allocation, 0, row_major(shape)), lambda _: value, node)


def _elementwise(
    shape: Shape, loads: list[BufferView], store: BufferView, value: Callable[[list[Expr]], Expr], node: Value
) -> Call:
    """store[i] = value(loads[i]…) over ``shape``, with axes merged where all accesses allow."""
    views = [*loads, store]
    axes = [(n, [strides[a] for _, _, strides in views]) for a, n in enumerate(shape) if n != 1]
    merged: list[tuple[int, list[int]]] = []
    for n, steps in reversed(axes):
        if merged and all(s == inner * merged[0][0] for s, inner in zip(steps, merged[0][1], strict=True)):
            merged[0] = (n * merged[0][0], merged[0][1])
        else:
            merged.insert(0, (n, steps))
    if not merged:
        merged = [(1, [1] * len(views))]
    plain = _nest(merged, views, value, node)
    call = through_scratch(plain)
    ordered = _for_the_reader(merged) if len(loads) == 1 and call is plain else merged
    return call if ordered is merged else _nest(ordered, views, value, node)


def _nest(
    merged: list[tuple[int, list[int]]], views: list[BufferView], value: Callable[[list[Expr]], Expr], node: Value
) -> Call:
    """The last of ``views`` = value(the others), over axes of (extent, steps)."""
    loads, parts = views[:-1], Parts()
    loops = [Var(f"x{a}") for a in range(len(merged))]
    last = len(merged) - 1
    indices: list[Index] = []
    row = 0 if len(merged) > 1 else None
    for b, (allocation, offset, _) in enumerate(views):
        steps = [axis[1][b] for axis in merged]
        terms = tuple((loops[a], 1 if a == last and s == 1 else parts.param(s)) for a, s in enumerate(steps) if s != 0)
        indices.append(Index(terms))
        writes = b == len(views) - 1
        before, span = hull(
            (axis[0], s) for a, (axis, s) in enumerate(zip(merged, steps, strict=True)) if a not in (row, last)
        )
        row_step = 0 if row is None else steps[0]
        access = BufferAccess(allocation, writes, offset, row_step, steps[last], span, before=before)
        parts.declare(access, "out" if writes else "in")
    expr = value([Load(f"b{b}", indices[b], allocation.dtype) for b, (allocation, _, _) in enumerate(loads)])
    body: ir.Stmt = For(loops[-1], RangeBound.J0, RangeBound.J1, "vec", (Store(f"b{len(loads)}", indices[-1], expr),))
    for a in range(last - 1, 0, -1):
        body = For(loops[a], 0, parts.param(merged[a][0]), "seq", (body,))
    outer = loops[0] if row is not None else Var("once")
    body = For(outer, RangeBound.I0, RangeBound.I1, "seq", (body,))
    shape = (merged[0][0] if row is not None else 1, merged[-1][0])
    split = "both" if row is not None else "columns"
    return parts.call("copy", (body,), shape, float(math.prod(n for n, _ in merged)), node, split, doc="")


def _for_the_reader(axes: list[tuple[int, list[int]]]) -> list[tuple[int, list[int]]]:
    """Axes of (extent, steps of load and store) in an order that reads a transposed source efficiently: a few of its
    rows at a time, in sequence."""
    n, (load, store) = axes[-1]
    if load in (0, 1) or store != 1 or len(axes) == 1 or any(abs(load) <= abs(steps[0]) for _, steps in axes[:-1]):
        return axes
    inner = [(n, [load, store])]
    if n > LANES and n % LANES == 0:
        inner = [(n // LANES, [LANES * load, LANES]), (LANES, [load, store])]
    outer = [*axes[:-1], *inner[:-1]]
    return [*sorted(outer, key=lambda axis: -abs(axis[1][0])), inner[-1]]
