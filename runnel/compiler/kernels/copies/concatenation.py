"""Concatenations as copies, one for each operand."""

from __future__ import annotations

from collections.abc import Container

from runnel.compiler.kernels.allocations import Allocation, Call
from runnel.compiler.kernels.elementwise import strided_copy
from runnel.compiler.kernels.operands import Operands
from runnel.core.avals import row_major
from runnel.graph.node import Value


def concatenation(node: Value, operands: Operands, result: Allocation, in_place: Container[int]) -> list[Call]:
    """Each operand copied to its part of the result, except those numbered in ``in_place``, which are there already."""
    axis = node.attrs["axis"]
    strides = row_major(node.aval.shape)
    calls, start = [], 0
    for number, x in enumerate(node.inputs):
        if x.aval.size and number not in in_place:
            target = (result, start * strides[axis], strides)
            calls.append(strided_copy.copied(x.aval.shape, operands.view(x), target, node))
        start += x.aval.shape[axis]
    return calls
