"""Schedules as text of the loop IR, before anything is compiled."""

from __future__ import annotations

from runnel.core.avals import row_major
from runnel.core.dtypes import float32
from runnel.expressions.nest import Array, Nest
from runnel.expressions.schedule import Schedule
from runnel.loops import printer
from runnel.loops.ir import Buffer, Kernel


def dense_nest(schedule: Schedule) -> Nest:
    """The nest of ``schedule`` for dense operands of float32."""
    expression = schedule.solved.expression
    pairs = zip(expression.names, expression.shapes, strict=True)
    operands = {name: Array(name, float32, shape, row_major(shape)) for name, shape in pairs}
    result = Array(expression.name, float32, expression.shape, row_major(expression.shape))
    return Nest(schedule, operands, result, float32)


def kernel(nest: Nest) -> Kernel:
    """The kernel of a nest of dense operands."""
    buffers = [Buffer(x.buffer, x.dtype, "in") for x in nest.operands.values()]
    buffers += [Buffer(nest.result.buffer, nest.result.dtype, "out")]
    buffers += [Buffer(cache.buffer, nest.operands[name].dtype, "scratch") for name, cache in nest.caches.items()]
    return Kernel("tensor_expression", tuple(buffers), (), nest.body())


def written(schedule: Schedule) -> str:
    """The nest of ``schedule`` as text of the loop IR."""
    return printer.text(kernel(dense_nest(schedule)))
