"""The operands of standalone kernels: their memory, dense copies, and tables of offsets.

A copy is an elementwise expression of loaded elements, stored to strided memory. An offset table holds the offsets of
many elements as a constant, which kernels use for indirect operands.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.compiler.lowering.parts import Parts
from runnel.compiler.lowering.transposes import through_scratch
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, BufferView, Call, MemorySpace, constant, hull
from runnel.compiler.plan_ir.strides import Strided
from runnel.core.avals import Shape, row_major
from runnel.core.dtypes import int32
from runnel.core.errors import VerifierError
from runnel.graph.node import Value
from runnel.loops import ir
from runnel.loops.ir import LANES, Expr, For, Index, Load, RangeBound, Store, Var


def copied(shape: Shape, source: BufferView, target: BufferView, node: Value) -> Call:
    """Copy target[i] = source[i] over ``shape``."""
    return _elementwise(shape, [source], target, lambda loads: loads[0], node)


def dense_copy(shape: Shape, source: BufferView, allocation: Allocation, node: Value) -> Call:
    """Copy target[i] = source[i] over ``shape``, to dense memory."""
    return copied(shape, source, (allocation, 0, row_major(shape)), node)


def filled(shape: Shape, allocation: Allocation, value: Expr, node: Value) -> Call:
    """Set every element of a dense array to ``value``."""
    return _elementwise(shape, [], (allocation, 0, row_major(shape)), lambda _: value, node)


def _elementwise(
    shape: Shape, loads: list[BufferView], store: BufferView, value: Callable[[list[Expr]], Expr], node: Value
) -> Call:
    """Compute store[i] = value(loads[i]…) over ``shape``, with axes merged where all accesses allow."""
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
    """Return the last of ``views`` = value(the others), over axes of (extent, steps)."""
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
    return parts.call("copy", (body,), shape, math.prod(n for n, _ in merged), node, split, doc="")


def _for_the_reader(axes: list[tuple[int, list[int]]]) -> list[tuple[int, list[int]]]:
    """Order axes of (extent, steps of load and store) so that a transposed source is read efficiently: a few of its
    rows at a time, in sequence."""
    n, (load, store) = axes[-1]
    if load in (0, 1) or store != 1 or len(axes) == 1 or any(abs(load) <= abs(steps[0]) for _, steps in axes[:-1]):
        return axes
    inner = [(n, [load, store])]
    if n > LANES and n % LANES == 0:
        inner = [(n // LANES, [LANES * load, LANES]), (LANES, [load, store])]
    outer = [*axes[:-1], *inner[:-1]]
    return [*sorted(outer, key=lambda axis: -abs(axis[1][0])), inner[-1]]


_OFFSET_LIMITS = np.iinfo(np.int32)


class OffsetTables:
    """Tables of the offsets of strided axes, in row-major order, as constants: each table once."""

    def __init__(self) -> None:
        self._places: dict[tuple[tuple[int, int], ...], Allocation] = {}

    def allocation(self, shape: Shape, strides: Shape) -> Allocation | None:
        """Return the table of these axes; None if an offset is too large for one."""
        key = tuple((n, s) for n, s in zip(shape, strides, strict=True) if n != 1)
        reach = [(n - 1) * s for n, s in key]
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        if low < _OFFSET_LIMITS.min or high > _OFFSET_LIMITS.max:
            return None
        if key not in self._places:
            size = math.prod(n for n, _ in key)
            self._places[key] = constant("offsets", int32, size, _offsets, tuple(itertools.chain(*key)))
        return self._places[key]


def _offsets(*axes: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return the offsets of axes of these extents and steps, which alternate."""
    offsets = np.zeros(1, np.int32)
    for n, s in zip(axes[::2], axes[1::2], strict=True):
        offsets = (offsets[:, None] + np.arange(n, dtype=np.int32) * np.int32(s)).reshape(-1)
    return offsets


def values_of(offsets: Allocation) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return the contents of a table."""
    if offsets.value is None:
        raise VerifierError(f"The table '{offsets.label}' of offsets must be a constant; got memory without a value.")
    return offsets.value


def copy_of_place(x: Value, source: Allocation, target: Allocation) -> Call:
    """Return a call that copies ``x`` from one dense place to another."""
    return dense_copy(x.aval.shape, (source, 0, row_major(x.aval.shape)), target, x)


class Operands:
    """The memory of a node's operands. ``before`` are the calls that must run first: dense copies of operands."""

    def __init__(self, views: dict[Value, Strided], sources: dict[Value, Allocation]) -> None:
        self.views = views
        self.sources = sources
        self.before: list[Call] = []

    def view(self, x: Value) -> BufferView:
        """Return the memory of ``x``, with its offset and strides there."""
        view = self.views[x]
        return self.sources[view.base], view.offset, view.strides

    def dense(self, x: Value) -> tuple[Allocation, int]:
        """Return memory and offset of ``x`` in row-major order, copied there first if necessary."""
        allocation, offset, strides = self.view(x)
        order = row_major(x.aval.shape)
        if all(n == 1 or s == d for n, s, d in zip(x.aval.shape, strides, order, strict=True)):
            return allocation, offset
        copied = Allocation(MemorySpace.ARENA, x.aval.dtype, x.aval.size, "dense")
        self.before.append(self.copy(x, copied))
        return copied, 0

    def copy(self, x: Value, allocation: Allocation) -> Call:
        """Return a call that stores ``x`` to ``allocation`` in row-major order."""
        return dense_copy(x.aval.shape, self.view(x), allocation, x)
