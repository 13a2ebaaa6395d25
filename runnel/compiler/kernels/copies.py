"""Views, concatenations and paddings as copies.

One kernel of a padding copies the input and fills the gaps beside and between its elements; another fills the positions
before and after all of them along the first padded axis. If the producer of the interior has stored it in place, a
kernel fills only the border. In a row-major array the border is a few long runs: before the first element, between the
end of a row and the start of the next one, and after the last element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from typing import Any, ClassVar, Final

import numpy as np

from runnel.compiler.kernels.elementwise import NestLowering
from runnel.compiler.lowering import parts
from runnel.compiler.lowering.operands import Operands, copied
from runnel.compiler.lowering.parts import Parts, step_of
from runnel.compiler.lowering.protocol import Lowering, Request, inline_constant
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, BufferView, Call
from runnel.compiler.plan_ir.strides import Strided, reshaped_strides
from runnel.core.avals import Shape, ShapedArray, row_major
from runnel.core.records import record
from runnel.graph.node import Value
from runnel.loops import ir
from runnel.loops.ir import Expr, For, Index, Load, Param, RangeBound, Stmt, Store, Var

Term = tuple[Var, ir.Stride]

FEW: Final = 8  # with so few strided elements of the last axis, the axis before it is better for vectors


@record(frozen=False)
class Axis:
    """``n`` elements, with stride ``source`` in the input and ``step``·``target`` in the result."""

    n: int
    low: int
    high: int
    step: int
    source: int
    target: int

    @property
    def is_plain(self) -> bool:
        return (self.low, self.high, self.step) == (0, 0, 1)

    @property
    def size(self) -> int:
        return self.low + self.high + ((self.n - 1) * self.step + 1 if self.n else 0)


def padding(node: Value, x: BufferView, value: BufferView, result: Allocation) -> list[Call]:
    """Return the calls that store ``x``, padded with the one element at ``value``."""
    axes = axes_of(node, x[2])
    split = next((i for i, a in enumerate(axes) if not a.is_plain), 0)
    if axes[split].step > 1 or not axes[split].n:
        split = 0
    calls = [_Copy(node, x, value, result).inside(axes, split)]
    edge = axes[split]
    if edge.low or edge.high:
        calls.insert(0, _Copy(node, x, value, result).edges(axes, split))
    return calls


def axes_of(node: Value, strides: Shape) -> list[Axis]:
    """Return the axes, outermost first; one without padding is merged with the one before it where the input's strides
    allow. The first axis is never merged away, even with size 1: it is often a batch, and one kernel serves all
    sizes."""
    targets = row_major(node.aval.shape)
    axes = [
        Axis(n, low, high, step, source, target)
        for n, (low, high, step), source, target in zip(
            node.inputs[0].aval.shape, node.attrs["widths"], strides, targets, strict=True
        )
    ]
    result: list[Axis] = []
    for position, axis in reversed([*enumerate(axes)]):
        inner = result[0] if result else None
        if inner is not None and inner.is_plain and axis.step == 1 and axis.source == inner.source * inner.n:
            n = inner.n
            result[0] = Axis(axis.n * n, axis.low * n, axis.high * n, 1, inner.source, inner.target)
        elif axis.n != 1 or not axis.is_plain or not position:
            result.insert(0, axis)
    return result or [Axis(1, 0, 0, 1, 1, 1)]


class PadKernel(Parts):
    """A kernel that fills, under construction."""

    def __init__(self, node: Value, value: BufferView, result: Allocation) -> None:
        super().__init__()
        self.node = node
        self.result = result
        self.variables = 0
        self.buffers = [ir.Buffer("out", node.aval.dtype, "out")]
        self.fill = self._fill_value(node.inputs[1], value)

    def _fill_value(self, node: Value, value: BufferView) -> Expr:
        dtype = node.aval.dtype
        if not inline_constant(node):
            self.declare(BufferAccess(value[0], False, value[1], 0, 0, 1), "in", dtype, "value")
            return Load("value", Index(), dtype)
        if parts.is_common(node):
            return parts.literal(node)
        return parts.from_bits(self.param(parts.bits_of(node)), dtype)

    def var(self) -> Var:
        self.variables += 1
        return Var(f"x{self.variables}")

    def filled(self, target: list[Term], base: int, count: int) -> list[ir.Stmt]:
        """Set ``count`` adjacent elements to the value."""
        if not count:
            return []
        var = self.var()
        store = Store("out", Index((*target, (var, 1)), self.offset(base)), self.fill)
        return [For(var, 0, self.param(count), "vec", (store,))]

    def offset(self, value: int) -> ir.Stride:
        return self.param(value) if value else 0

    def pad_call(self, body: list[ir.Stmt], rows: int, columns: int = 1, work: float | None = None) -> Call:
        size = self.node.aval.size if work is None else work
        split = "rows" if rows > 1 else "columns" if columns > 1 else ""
        return self.call("pad", tuple(body), (rows, columns), size, self.node, split, doc="")


class _Copy(PadKernel):
    """One of the two kernels."""

    def __init__(self, node: Value, x: BufferView, value: BufferView, result: Allocation) -> None:
        super().__init__(node, value, result)
        self.x = x

    def inside(self, axes: list[Axis], split: int) -> Call:
        """Return all but the edges of axis ``split``, which is partitioned among threads; a last axis by
        whole vectors."""
        self.buffers.insert(0, ir.Buffer("x", self.node.aval.dtype, "in"))
        shared = axes[split]
        shares = shared.step == 1 and shared.n > 0
        is_last = split == len(axes) - 1
        outer = self.var()
        source: list[Term] = []
        target: list[Term] = []
        loops: list[tuple[Var, Param]] = []
        for axis in axes[:split]:
            loops.append((self.var(), self.param(axis.n)))
            source.append((loops[-1][0], self.param(axis.source)))
            target.append((loops[-1][0], self.param(axis.target)))
        if shares and is_last:
            columns = self.var()
            there, here = [*source, (columns, step_of(self, shared.source))], [*target, (columns, 1)]
            vector = For(columns, RangeBound.J0, RangeBound.J1, "vec", (self._copied(there, here, 0),))
            body: list[ir.Stmt] = [vector]
        elif shares:
            there, here = [*source, (outer, self.param(shared.source))], [*target, (outer, self.param(shared.target))]
            body = self._block(axes[split + 1 :], there, here, 0)
        else:
            body = self._block(axes[split:], source, target, 0)
        body = [For(outer, RangeBound.I0, RangeBound.I1, "seq", tuple(body))]
        for var, extent in reversed(loops):
            body = [For(var, 0, extent, "seq", tuple(body))]
        by_rows, by_columns = shares and not is_last, shares and is_last
        allocation, offset, _ = self.x
        others = [a for i, a in enumerate(axes) if not shares or i != split]
        step = None if any(a.source < 0 for a in axes) else shared.source
        reach = 1 + sum((a.n - 1) * a.source for a in others if a.n)
        self.accesses.insert(0, BufferAccess(allocation, False, offset, *_steps(by_rows, by_columns, step), reach))
        written = 1 + sum((a.size - 1) * a.target for a in others)
        first = shared.low * shared.target if shares else 0
        self.accesses.insert(
            1, BufferAccess(self.result, True, first, *_steps(by_rows, by_columns, shared.target), written)
        )
        return self.pad_call(body, shared.n if by_rows else 1, shared.n if by_columns else 1)

    def edges(self, axes: list[Axis], split: int) -> Call:
        """Return the positions before and after the elements along axis ``split``."""
        edge = axes[split]
        outer = [*axes[:split]]
        target: list[Term] = []
        loops: list[tuple[Var, Param]] = []
        first = self.var()
        for i, axis in enumerate(outer):
            var = self.var() if i else first
            target.append((var, self.param(axis.target)))
            if i:
                loops.append((var, self.param(axis.n)))
        body = self.filled(target, 0, edge.low * edge.target)
        body += self.filled(target, (edge.low + edge.n) * edge.target, edge.high * edge.target)
        for var, extent in reversed(loops):
            body = [For(var, 0, extent, "seq", tuple(body))]
        body = [For(first, RangeBound.I0, RangeBound.I1, "seq", tuple(body))]
        step = outer[0].target if outer else 0
        inner = 1 + sum((a.n - 1) * a.target for a in outer[1:]) + edge.size * edge.target - 1
        self.accesses.insert(0, BufferAccess(self.result, True, 0, step, 0, inner))
        return self.pad_call(body, outer[0].n if outer else 1)

    # Their loops ------------------------------------------------------------------------------------------------------

    def _block(self, axes: list[Axis], source: list[Term], target: list[Term], base: int) -> list[ir.Stmt]:
        """Return the statements inside the loops of ``source`` and ``target``; the block's first element in the result
        is ``base``."""
        if not axes:
            return [self._copied(source, target, base)]
        axis, *rest = axes
        first = base + axis.low * axis.target
        apart = axis.step > 1 or not axis.n
        statements = self.filled(target, base, (axis.size if apart else axis.low) * axis.target)
        if axis.n and len(rest) == 1 and _turns(axis, rest[0]):
            turned = self._looped(rest[0], source, target, first, lambda s, t: self._vector(axis, s, t, first))
            statements.append(turned)
        elif axis.n and rest:
            statements.append(self._looped(axis, source, target, first, lambda s, t: self._block(rest, s, t, first)))
        elif axis.n:
            statements += self._vector(axis, source, target, first)
        if not apart:
            statements += self.filled(target, first + axis.n * axis.target, axis.high * axis.target)
        return statements

    def _looped(
        self,
        axis: Axis,
        source: list[Term],
        target: list[Term],
        first: int,
        inner: Callable[[list[Term], list[Term]], list[ir.Stmt]],
    ) -> ir.Stmt:
        var = self.var()
        there = [*source, (var, self.param(axis.source))]
        here = [*target, (var, self.param(axis.target * axis.step))]
        return For(var, 0, self.param(axis.n), "seq", tuple(inner(there, here)))

    def _vector(self, axis: Axis, source: list[Term], target: list[Term], first: int) -> list[ir.Stmt]:
        var = self.var()
        there = [*source, (var, step_of(self, axis.source))]
        here = [*target, (var, step_of(self, axis.target * axis.step))]
        return [For(var, 0, self.param(axis.n), "vec", (self._copied(there, here, first),))]

    def _copied(self, source: list[Term], target: list[Term], base: int) -> ir.Stmt:
        load = Load("x", Index(tuple(t for t in source if t[1] != 0)), self.node.aval.dtype)
        return Store("out", Index(tuple(target), self.offset(base)), load)


def _steps(by_rows: bool, by_columns: bool, step: int | None) -> tuple[int | None, int | None]:
    """Return the steps along rows and columns of an access that has ``step`` along the partitioned axis."""
    if step is None:
        return None, None
    return step * by_rows, step * by_columns


def _turns(axis: Axis, last: Axis) -> bool:
    """Return whether the last two axes are interchanged: the last is short and strided where the other one is dense."""
    return axis.source == 1 and axis.step == 1 and last.is_plain and last.n < FEW and last.source not in (0, 1)


def border(node: Value, value: BufferView, result: Allocation) -> list[Call]:
    """Return the call that stores the element at ``value`` in the border of ``result``; steps of the padding
    are all 1."""
    axes = axes_of(node, row_major(node.inputs[0].aval.shape))
    for axis in axes:
        axis.step = 1  # irrelevant for a single element
    return [_Border(node, value, result).call_for(axes)] if any(not a.is_plain for a in axes) else []


class _Border(PadKernel):
    """The kernel. Its rows are the first axis if that one has no border."""

    def call_for(self, axes: list[Axis]) -> Call:
        outer = self.var()
        first = axes[0]
        rows = first.n if first.is_plain else 1
        target: list[Term] = [(outer, self.param(first.target))] if first.is_plain else []
        inside = axes[1:] if first.is_plain else axes
        body = self.filled(target, 0, _before(inside)) + self._between(inside, target, 0)
        size = first.target if first.is_plain else first.target * first.size
        body += self.filled(target, size - _after(inside), _after(inside))
        loop = For(outer, RangeBound.I0, RangeBound.I1, "seq", tuple(body))
        self.accesses.insert(0, BufferAccess(self.result, True, 0, size if first.is_plain else 0, 0, size))
        count = rows * size - math.prod(a.n for a in axes)
        return self.pad_call([loop], rows, work=count)

    def _between(self, axes: list[Axis], target: list[Term], base: int) -> list[Stmt]:
        """Return the gaps between elements of these axes, whose first position is ``base``."""
        axis, *inside = axes
        if all(a.is_plain for a in inside):
            return []
        first = base + axis.low * axis.target
        var = self.var()
        here = [*target, (var, self.param(axis.target))]
        statements: list[Stmt] = []
        deeper = self._between(inside, here, first)
        if deeper:
            statements.append(For(var, 0, self.param(axis.n), "seq", tuple(deeper)))
        if axis.n > 1:
            var = self.var()
            here = [*target, (var, self.param(axis.target))]
            after = _after(inside)
            gap = self.filled(here, first + axis.target - after, after + _before(inside))
            statements.append(For(var, 0, self.param(axis.n - 1), "seq", tuple(gap)))
        return statements


def _before(axes: list[Axis]) -> int:
    """Return the number of positions before the first element."""
    return sum(a.low * a.target for a in axes)


def _after(axes: list[Axis]) -> int:
    """Return the number of positions after the last element."""
    return sum(a.high * a.target for a in axes)


def concatenation(node: Value, operands: Operands, result: Allocation, in_place: Container[int]) -> list[Call]:
    """Return the calls that copy each operand to its part of the result.

    Operands whose numbers are in ``in_place`` are already in that memory and are not copied."""
    axis = node.attrs["axis"]
    strides = row_major(node.aval.shape)
    calls, start = [], 0
    for number, x in enumerate(node.inputs):
        if x.aval.size and number not in in_place:
            target = (result, start * strides[axis], strides)
            calls.append(copied(x.aval.shape, operands.view(x), target, node))
        start += x.aval.shape[axis]
    return calls


class ViewLowering(NestLowering):
    """A view: no work where strides express it; else a copy, as a member of nests."""

    is_view: ClassVar[bool] = True
    moves_bits: ClassVar[bool] = True

    def layout(
        self, source: ShapedArray, strides: Shape, result: ShapedArray, attrs: dict[str, Any]
    ) -> tuple[int, Shape] | None:
        mapping = self.rule.map(source, result, **attrs)
        if mapping is None:
            target_strides = reshaped_strides(source.shape, strides, result.shape)
            return None if target_strides is None else (0, target_strides)
        offset = 0
        steps = [0] * result.ndim
        for (start, terms), stride in zip(mapping, strides, strict=True):
            offset += start * stride
            for axis, step in terms:
                steps[axis] += step * stride
        return offset, tuple(steps)

    def point_shape(self, node: Value) -> Shape:
        return node.inputs[0].aval.shape


class ConcatenationLowering(Lowering):
    """A concatenation: operands are copied, unless their producers store them there."""

    moves_bits: ClassVar[bool] = True

    def reads_by_strides(self, node: Value, x: Value, view: Strided) -> bool:
        return True

    def subviews(self, node: Value) -> dict[int, tuple[int, Shape]]:
        axis, strides = node.attrs["axis"], row_major(node.aval.shape)
        starts = np.cumsum([0, *(x.aval.shape[axis] for x in node.inputs)]).tolist()
        return {i: (starts[i] * strides[axis], strides) for i in range(len(node.inputs))}

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return concatenation(request.node, request.operands, results[0], request.in_place)


class PaddingLowering(Lowering):
    """A pad: the input is copied into a larger array; where its producer stores it there, only the border is filled."""

    holds_operand: ClassVar[bool] = True

    def reads_by_strides(self, node: Value, x: Value, view: Strided) -> bool:
        return True

    def subviews(self, node: Value) -> dict[int, tuple[int, Shape]]:
        widths, strides = node.attrs["widths"], row_major(node.aval.shape)
        if any(step != 1 and n != 1 for n, (_, _, step) in zip(node.inputs[0].aval.shape, widths, strict=True)):
            return {}
        return {0: (sum(low * step for (low, _, _), step in zip(widths, strides, strict=True)), strides)}

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        node, view = request.node, request.operands.view
        if 0 in request.in_place:
            return border(node, view(node.inputs[1]), results[0])
        return padding(node, view(node.inputs[0]), view(node.inputs[1]), results[0])
