"""The operands of a standalone kernel: their memory, and dense copies where the kernel needs them dense."""

from __future__ import annotations

from runnel.compiler.fusion.strided import Strided
from runnel.compiler.kernels.allocations import Allocation, BufferView, Call, MemorySpace
from runnel.compiler.kernels.elementwise import strided_copy
from runnel.core.avals import row_major
from runnel.graph.node import Value


def copy_of_place(x: Value, source: Allocation, target: Allocation) -> Call:
    """A call that copies ``x`` from one dense place to another."""
    return strided_copy.dense_copy(x.aval.shape, (source, 0, row_major(x.aval.shape)), target, x)


class Operands:
    """The memory of a node's operands. ``before`` are the calls that must run first: dense copies of operands."""

    def __init__(self, views: dict[Value, Strided], sources: dict[Value, Allocation]) -> None:
        self.views = views
        self.sources = sources
        self.before: list[Call] = []

    def view(self, x: Value) -> BufferView:
        """The memory of ``x``, with its offset and strides there."""
        view = self.views[x]
        return self.sources[view.base], view.offset, view.strides

    def dense(self, x: Value) -> tuple[Allocation, int]:
        """Place and offset of dense row-major memory."""
        allocation, offset, strides = self.view(x)
        order = row_major(x.aval.shape)
        if all(n == 1 or s == d for n, s, d in zip(x.aval.shape, strides, order, strict=True)):
            return allocation, offset
        copied = Allocation(MemorySpace.ARENA, x.aval.dtype, x.aval.size, "dense")
        self.before.append(self.copy(x, copied))
        return copied, 0

    def copy(self, x: Value, allocation: Allocation) -> Call:
        """A call that stores ``x`` densely in ``place``."""
        return strided_copy.dense_copy(x.aval.shape, self.view(x), allocation, x)
