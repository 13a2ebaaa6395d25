"""Views, concatenations and paddings as copies."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, ClassVar

import numpy as np

from runnel.compiler.kernels.elementwise.lowering import NestLowering
from runnel.compiler.kernels.padding import border, padding
from runnel.compiler.lowering.operands import Operands, copied
from runnel.compiler.lowering.protocol import Lowering, Request
from runnel.compiler.plan_ir.calls import Allocation, Call
from runnel.compiler.plan_ir.strides import Strided, reshaped_strides
from runnel.core.avals import Shape, ShapedArray, row_major
from runnel.graph.node import Value


def concatenation(node: Value, operands: Operands, result: Allocation, in_place: Container[int]) -> list[Call]:
    """Return each operand copied to its part of the result, except those numbered in ``in_place``, which are there
    already."""
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
