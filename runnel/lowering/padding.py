"""Padding as a kernel: one pass over the result, which fills what lies around and between and copies the input."""

from __future__ import annotations

from dataclasses import dataclass

from runnel.core.avals import row_major
from runnel.graph.graph import Node
from runnel.loops import ir
from runnel.loops.ir import Expr, For, Index, Load, Param, RangeBound, Store, Var
from runnel.lowering import numbers
from runnel.lowering.costs import inline_constant
from runnel.lowering.naming import named
from runnel.lowering.places import Access, Call, Place

Lie = tuple[Place, int, tuple[int, ...]]  # place, offset, strides
Term = tuple[Var, ir.Stride]


@dataclass(slots=True)
class _Axis:
    """``n`` elements, ``source`` apart in the input and ``step`` places of ``target`` elements in the result."""

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


def padding(node: Node, x: Lie, value: Lie | None, result: Place) -> list[Call]:
    """The kernel of ``node``; ``value`` is where its second input lies, None for a constant."""
    return [_Builder(node, x, value, result).build()]


class _Builder:
    def __init__(self, node: Node, x: Lie, value: Lie | None, result: Place) -> None:
        self.node = node
        self.x = x
        self.result = result
        self.params: list[Param] = []
        self.values: list[int] = []
        self.variables = 0
        dtype = node.aval.dtype
        self.buffers = [ir.Buffer("b0", dtype, "in"), ir.Buffer("b1", dtype, "out")]
        self.fill = self._fill_value(node.inputs[1], value)
        targets = row_major(node.aval.shape)
        widths = node.attrs["widths"]
        axes = [
            _Axis(n, low, high, step, source, target)
            for n, (low, high, step), source, target in zip(node.inputs[0].aval.shape, widths, x[2], targets, strict=True)
        ]
        self.axes = _merged([a for a in axes if a.n != 1 or not a.is_plain]) or [_Axis(1, 0, 0, 1, 1, 1)]

    def _fill_value(self, node: Node, value: Lie | None) -> Expr:
        dtype = node.aval.dtype
        if value is not None:
            self.buffers.append(ir.Buffer("b2", dtype, "in"))
            return Load("b2", Index(), dtype)
        return numbers.literal(node) if numbers.is_common(node) else numbers.from_bits(self._number(node), dtype)

    def _number(self, node: Node) -> Param:
        return self._param(numbers.bits(node))

    def _param(self, value: int) -> Param:
        self.params.append(Param(f"p{len(self.params)}"))
        self.values.append(value)
        return self.params[-1]

    def _var(self) -> Var:
        self.variables += 1
        return Var(f"x{self.variables}")

    def build(self) -> Call:
        first, *rest = self.axes
        by_rows = first.is_plain and bool(rest)
        outer = Var("row")
        if by_rows:
            body = self._block(rest, [(outer, self._param(first.source))], [(outer, self._param(first.target))], 0)
        else:
            body = self._block(self.axes, [], [], 0)
        loop = For(outer, RangeBound.I0, RangeBound.I1, "seq", tuple(body))
        kernel = named("pad", tuple(self.buffers), tuple(self.params), (loop,))
        place, offset, _ = self.x
        rows = first.n if by_rows else 1
        inner = rest if by_rows else self.axes
        backwards = any(a.source < 0 for a in self.axes)
        reach = 1 + sum((a.n - 1) * a.source for a in inner if a.n)
        accesses = [
            Access(place, False, offset, None if backwards else first.source if by_rows else 0, 0, reach),
            Access(self.result, True, 0, first.target if by_rows else 0, 0, self.node.aval.size // max(rows, 1)),
        ]
        return Call(
            kernel, accesses, self.values, rows, 1, "rows" if by_rows else "", float(self.node.aval.size), [self.node]
        )

    def _block(self, axes: list[_Axis], source: list[Term], target: list[Term], base: int) -> list[ir.Stmt]:
        """Everything inside the innermost of the loops that ``source`` and ``target`` go over; the block's first
        element in the result is ``base``."""
        axis, *rest = axes
        first = base + axis.low * axis.target
        if axis.step > 1 or not axis.n:
            statements = self._filled(target, base, axis.size * axis.target)
        else:
            statements = self._filled(target, base, axis.low * axis.target)
        if axis.n:
            var = self._var()
            there = [*source, (var, self._stride(axis.source, bool(rest)))]
            here = [*target, (var, self._stride(axis.target * axis.step, bool(rest)))]
            if rest:
                inner = self._block(rest, there, here, first)
            else:
                load = Load("b0", Index(tuple(t for t in there if t[1] != 0)), self.node.aval.dtype)
                inner = [Store("b1", Index(tuple(here), self._offset(first)), load)]
            statements.append(For(var, 0, self._param(axis.n), "seq" if rest else "vec", tuple(inner)))
        if axis.step == 1 and axis.n:
            statements += self._filled(target, first + axis.n * axis.target, axis.high * axis.target)
        return statements

    def _stride(self, step: int, outer: bool) -> ir.Stride:
        """Unit steps of the vector axis, and repetition, are part of the code."""
        return step if step in (0, 1) and not outer else self._param(step)

    def _offset(self, value: int) -> ir.Stride:
        return self._param(value) if value else 0

    def _filled(self, target: list[Term], base: int, count: int) -> list[ir.Stmt]:
        """``count`` neighbours set to the value."""
        if not count:
            return []
        var = self._var()
        store = Store("b1", Index((*target, (var, 1)), self._offset(base)), self.fill)
        return [For(var, 0, self._param(count), "vec", (store,))]


def _merged(axes: list[_Axis]) -> list[_Axis]:
    """An axis without padding joined to the one before it, where the input allows."""
    result: list[_Axis] = []
    for axis in reversed(axes):
        inner = result[0] if result else None
        if inner is not None and inner.is_plain and axis.step == 1 and axis.source == inner.source * inner.n:
            n = inner.n
            result[0] = _Axis(axis.n * n, axis.low * n, axis.high * n, 1, inner.source, inner.target)
        else:
            result.insert(0, axis)
    return result


def call(node: Node, x: Lie, value: Lie, result: Place) -> list[Call]:
    """The calls that pad ``x`` with the one element at ``value``."""
    if inline_constant(node.inputs[1]):
        return padding(node, x, None, result)
    calls = padding(node, x, value, result)
    calls[0].accesses.append(Access(value[0], False, value[1], 0, 0, 1))
    return calls
