"""The border of a padded array whose interior is stored by its producer: a kernel that fills the rest.

In a row-major array the border is few long runs: before the first element, between the end of a row and the start of
the next one, and after the last element.
"""

from __future__ import annotations

import math

from runnel.compiler.kernels.allocations import Allocation, BufferAccess, BufferView, Call
from runnel.compiler.kernels.copies.padding import Axis, PadKernel, Term, axes_of
from runnel.core.avals import row_major
from runnel.graph.node import Value
from runnel.loops.ir import For, RangeBound, Stmt


def border(node: Value, value: BufferView, result: Allocation) -> list[Call]:
    """The call that stores the element at ``value`` in the border of ``result``; steps of the padding are all 1."""
    axes = axes_of(node, row_major(node.inputs[0].aval.shape))
    for axis in axes:
        axis.step = 1  # irrelevant for a single element
    return [_Border(node, value, result).call_for(axes)] if any(not a.is_plain for a in axes) else []


class _Border(PadKernel):
    """The kernel: its rows are those of the first axis if that one has no border."""

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
        return self.pad_call([loop], rows, work=float(count))

    def _between(self, axes: list[Axis], target: list[Term], base: int) -> list[Stmt]:
        """The gaps between elements of these axes, whose first position is ``base``."""
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
    """Positions before the first element."""
    return sum(a.low * a.target for a in axes)


def _after(axes: list[Axis]) -> int:
    """Positions after the last element."""
    return sum(a.high * a.target for a in axes)
