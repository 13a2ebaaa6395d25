"""A preference for a layout, as an attribute: ops that have a row are computed in that order of axes.

The pass puts permutes around them, which keeps every bit. Runnel's own pass `sink_permutes`, which runs later, chooses
one order for each region and drops the permutes inside.

    passes.USUAL.insert(CORRECT_LAYOUT, after="decompose")
"""

from __future__ import annotations

from typing import Any

import runnel as rn
from runnel import passes

layout: passes.Table[tuple[int, ...]] = passes.Table(
    "layout", "the order of axes in which an elementwise op on images is computed; axis order[i] becomes axis i."
)

for name in ("relu", "add", "mul", "tanh"):
    layout.register(passes.op(name), (0, 2, 3, 1))


def in_layout(value: passes.Value) -> passes.Value:
    order = layout.get(value.op) if value.op is not None else None
    if order is None or any(x.aval.ndim != len(order) for x in (value, *value.inputs)):
        return value
    back = tuple(order.index(axis) for axis in range(len(order)))

    def computed(*operands: Any) -> Any:
        result = passes.Written(value).again(*[rn.permute(x, order) for x in operands])
        return rn.permute(result, back)

    return passes.written(computed, *value.inputs, where=value.where)


CORRECT_LAYOUT = passes.Pass(
    "correct_layout",
    "ops are computed in the layout that attribute `layout` prefers",
    lambda graph: passes.rewrite(graph, in_layout),
)
