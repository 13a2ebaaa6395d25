"""Bounds checks of indices, as separate kernels: they run before a program changes any Variable, so that a program that
stops at a fault has changed nothing.

The kernels that gather and scatter clamp their indices; these checks report the error.
"""

from __future__ import annotations

import numpy as np

from runnel.compiler.lowering.parts import Parts
from runnel.compiler.lowering.protocol import lowering_of
from runnel.compiler.plan_ir.calls import BufferAccess, BufferView, Call, hull
from runnel.compiler.plan_ir.plan import Bounded
from runnel.core.avals import row_major
from runnel.core.dtypes import bool_, int64, uint64
from runnel.core.records import replace
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.loops import ir, scalar
from runnel.loops.ir import Acc, Apply, Check, Const, Expr, For, Index, Load, RangeBound, Stmt, Update, Var


def find_bounds(graph: Graph, first_code: int = 1) -> list[Bounded]:
    """Return every set of indices of the graph that must be checked, once for each extent, with codes from
    ``first_code`` on."""
    checks: dict[tuple[Value, int, int | None], Bounded] = {}
    for node in graph.values:
        bound = lowering_of(node).index_bound(node)
        if bound is not None and bound[0].aval.size and not _is_known(*bound) and bound not in checks:
            checks[bound] = Bounded(node, *bound, first_code + len(checks))
    return list(checks.values())


def _is_known(indices: Value, extent: int, allowed: int | None) -> bool:
    """Return whether the indices are constants in range."""
    return indices.is_constant and not outside(indices.value, extent, allowed).any()


def outside(indices: np.ndarray, extent: int, allowed: int | None) -> np.ndarray:
    """Return a mask of the indices that are out of range."""
    wrong: np.ndarray = (indices < 0) | (indices >= extent)
    return wrong if allowed is None else wrong & (indices != allowed)


def bounds_check(bounded: Bounded, indices: BufferView) -> Call:
    """Return the call that checks every index: rows are partitioned among threads, each row is one reduction
    to a bool."""
    allocation, offset, strides = indices
    shape = bounded.indices.aval.shape
    axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    if all(s == d for (n, s), d in zip(axes, row_major(tuple(n for n, _ in axes)), strict=True)):
        axes = [(bounded.indices.aval.size, 1)]
    parts = Parts()
    code, extent = parts.param(bounded.code), parts.param(bounded.extent)
    variables = [Var(f"x{a}") for a in range(len(axes))]
    steps = [1 if s == 1 and a == len(axes) - 1 else parts.param(s) for a, (_, s) in enumerate(axes)]
    element = Load("b0", Index(tuple(zip(variables, steps, strict=True))), allocation.dtype)
    body: Stmt = For(
        variables[-1], RangeBound.J0, RangeBound.J1, "vec", (Update("ok", _in_range(element, extent, bounded.allowed)),)
    )
    for a in range(len(axes) - 2, 0, -1):
        body = For(variables[a], 0, parts.param(axes[a][0]), "seq", (body,))
    block: tuple[Stmt, ...] = (Acc("ok", "all", bool_), body, Check(ir.Ref("ok", bool_), code))
    outer = variables[0] if len(axes) > 1 else Var("once")
    rows = For(outer, RangeBound.I0, RangeBound.I1, "seq", block)
    before, span = hull(axes[1:-1])
    row_step = axes[0][1] if len(axes) > 1 else 0
    parts.declare(BufferAccess(allocation, False, offset, row_step, axes[-1][1], span, before=before), "in")
    extents = (axes[0][0] if len(axes) > 1 else 1, axes[-1][0])
    split = "both" if len(axes) > 1 else "columns"
    call = parts.call("bounds", (rows,), extents, bounded.indices.aval.size, bounded.node, split, doc="")
    return replace(call, checks=True)


def _in_range(index: Expr, extent: Expr, allowed: int | None) -> Expr:
    """Compare 0 ≤ index < extent at once: a negative index is a large unsigned number."""
    unsigned = index
    if index.dtype is not uint64:
        wide = index if index.dtype is int64 else Apply(scalar.cast, (index,), int64)
        unsigned = Apply(scalar.cast, (wide,), uint64)
    inside = Apply(scalar.lt, (unsigned, Apply(scalar.cast, (extent,), uint64)), bool_)
    if allowed is None:
        return inside
    return Apply(scalar.or_, (inside, Apply(scalar.eq, (index, Const(allowed, index.dtype)), bool_)), bool_)
