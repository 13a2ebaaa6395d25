"""The family of kernels of tensor expressions: one kernel for each, without intermediate values."""

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


class TensorExpressionLowering(Lowering):
    """A nest of loops, as the schedule says. Operands are read by their strides."""

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
    """The schedule of ``steps``; None for the automatic one."""
    return automatic(expression) if steps is None else Schedule(expression, steps)
