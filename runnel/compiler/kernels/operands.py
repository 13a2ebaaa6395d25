"""The operands of a kernel of its own: where they lie, and dense copies where the kernel needs them dense."""

from __future__ import annotations

from runnel.compiler.fusion.strided import Strided
from runnel.compiler.kernels.contraction import contraction
from runnel.compiler.kernels.copies import alone
from runnel.compiler.kernels.places import Call, Place, Space
from runnel.core.avals import Shape, row_major
from runnel.graph.node import Value


class Operands:
    """Where a node's operands lie. ``before`` are the calls that must run first: copies of what was wanted dense."""

    def __init__(self, views: dict[Value, Strided], sources: dict[Value, Place]) -> None:
        self.views = views
        self.sources = sources
        self.before: list[Call] = []

    def lie(self, x: Value) -> tuple[Place, int, Shape]:
        """Place, offset and strides in elements."""
        return contraction.operand(self.views, self.sources, x)

    def dense(self, x: Value) -> tuple[Place, int]:
        """Place and offset of dense row-major memory."""
        place, offset, strides = self.lie(x)
        order = row_major(x.aval.shape)
        if all(n == 1 or s == d for n, s, d in zip(x.aval.shape, strides, order, strict=True)):
            return place, offset
        copied = Place(Space.ARENA, x.aval.dtype, x.aval.size, "dense")
        self.before.append(self.copy(x, copied))
        return copied, 0

    def copy(self, x: Value, place: Place) -> Call:
        """A call that stores ``x`` densely in ``place``."""
        steps = row_major(x.aval.shape)
        return alone.elementwise(x.aval.shape, [self.lie(x)], (place, 0, steps), lambda loads: loads[0], x)
