"""Lower tensor expressions to kernels: one for each, without intermediate values."""

from __future__ import annotations

from runnel.compiler.lowering.parts import Parts
from runnel.compiler.lowering.protocol import Lowering, Request
from runnel.compiler.plan_ir.calls import Allocation, Call
from runnel.core import tables
from runnel.core.avals import row_major
from runnel.core.dtypes import float32
from runnel.expressions.candidates import automatic
from runnel.expressions.elements import compute_dtype
from runnel.expressions.nest import Array, Nest
from runnel.expressions.resolving import resolved
from runnel.expressions.schedule import Schedule, Steps
from runnel.expressions.solving import Solved, solved
from runnel.loops import printer
from runnel.loops.ir import Buffer, Kernel


class TensorExpressionLowering(Lowering):
    """The lowering to the loops of the schedule. Operands are read by their strides."""

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        node = request.node
        if not node.aval.size or node.op is None:
            return []
        expression = resolved(node.attrs["text"], tuple(x.aval.shape for x in node.inputs))
        parts, operands = Parts(), {}
        for name, x in zip(expression.names, node.inputs, strict=True):
            allocation, offset, strides = request.operands.view(x)
            operands[name] = Array(
                parts.buffer(name, allocation, offset, is_bounded=True), x.aval.dtype, x.aval.shape, tuple(strides)
            )
        shape, dtype = node.aval.shape, node.aval.dtype
        target = parts.buffer(expression.name, results[0], 0, "out", is_bounded=True)
        result = Array(target, dtype, shape, row_major(shape))
        element_dtype = node.inputs[0].aval.dtype if node.inputs else float32
        wide = compute_dtype(expression.aggregation, expression.term, element_dtype)
        nest = Nest(scheduled(solved(expression), node.attrs["schedule"]), operands, result, wide)
        body = nest.body()
        for name, cache in nest.caches.items():
            parts.scratch(cache.buffer, operands[name].dtype, cache.size)
        flops = float(tables.cost[node.op](*(x.aval for x in node.inputs), **node.attrs))
        split = "rows" if nest.has_rows else ""
        return [parts.call("tensor_expression", body, (nest.rows, 1), flops, node, split=split)]


def scheduled(expression: Solved, steps: Steps | None) -> Schedule:
    """Return the schedule of ``steps``; for None, the default one."""
    return automatic(expression) if steps is None else Schedule(expression, steps)


def dense_nest(schedule: Schedule) -> Nest:
    """Return the nest of ``schedule`` for dense operands of float32."""
    expression = schedule.solved.expression
    pairs = zip(expression.names, expression.shapes, strict=True)
    operands = {name: Array(name, float32, shape, row_major(shape)) for name, shape in pairs}
    result = Array(expression.name, float32, expression.shape, row_major(expression.shape))
    return Nest(schedule, operands, result, float32)


def kernel(nest: Nest) -> Kernel:
    """Return the kernel of a nest of dense operands."""
    buffers = [Buffer(x.buffer, x.dtype, "in") for x in nest.operands.values()]
    buffers += [Buffer(nest.result.buffer, nest.result.dtype, "out")]
    buffers += [Buffer(cache.buffer, nest.operands[name].dtype, "scratch") for name, cache in nest.caches.items()]
    return Kernel("tensor_expression", tuple(buffers), (), nest.body())


def written(schedule: Schedule) -> str:
    """Return the nest of ``schedule`` as text of the loop IR."""
    return printer.text(kernel(dense_nest(schedule)))
