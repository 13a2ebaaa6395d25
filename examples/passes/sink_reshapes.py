"""Reshapes behind elementwise ops: op(reshape(x), 2) becomes reshape(op(x, 2)), with the same bits.

Kernels are fused over values of one shape, so the ops before and after a reshape become two of them. With
this pass a chain of elementwise ops with reshapes in between is one kernel.

    passes.USUAL.insert(SINK_RESHAPES, after="simplify")
"""

from __future__ import annotations

from typing import Any

from runnel import passes

is_elementwise: passes.Table[bool] = passes.Table(
    "is_elementwise", "True for ops that compute each element from the elements at the same place."
)

for name in ("add", "sub", "mul", "div", "maximum", "minimum", "neg", "abs", "exp", "log", "tanh", "sqrt", "relu"):
    is_elementwise.register(passes.op(name), True)

RESHAPE = passes.op("reshape")


def source(value: passes.Value) -> passes.Value:
    """Return the value before all its reshapes."""
    while value.op is RESHAPE:
        value = value.inputs[0]
    return value


def sunk(value: passes.Value) -> passes.Value:
    if value.op not in is_elementwise:
        return value
    sources = {source(x).aval.shape for x in value.inputs if x.op is RESHAPE}
    fits = all(x.op is RESHAPE or (x.is_constant and x.aval.size == 1) for x in value.inputs)
    if len(sources) != 1 or not fits or any(x.aval.shape != value.aval.shape for x in value.inputs if x.op is RESHAPE):
        return value
    (shape,) = sources

    def computed(*operands: Any) -> Any:
        single = (1,) * len(shape)
        moved = [
            passes.Written(source(x.value), x.line) if x.value.op is RESHAPE else x.reshape(single) for x in operands
        ]
        return passes.Written(value).again(*moved).reshape(value.aval.shape)

    return passes.written(computed, *value.inputs, where=value.where)


SINK_RESHAPES = passes.Pass(
    "sink_reshapes",
    "reshapes follow the elementwise ops that read them",
    lambda graph: passes.rewrite(graph, sunk),
    needs=("decomposed",),
)
