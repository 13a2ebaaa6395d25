"""Floating-point operations, counted and bounded: a new attribute, and a pass that leaves graphs as they are.

passes.USUAL.insert(at_most(1e9), after="bodies")
"""

from __future__ import annotations

import math
from collections.abc import Callable

from runnel import passes

flops: passes.Table[Callable[..., int]] = passes.Table(
    "flops", "rule(value) -> int: the floating-point operations that compute a value of a graph."
)

for name in ("add", "sub", "mul", "div", "maximum", "minimum", "exp", "log", "tanh", "sqrt", "relu"):
    flops.register(passes.op(name), lambda value: value.aval.size)
flops.register(passes.op("sum"), lambda value: value.inputs[0].aval.size)
flops.register(passes.op("matmul"), lambda value: 2 * value.aval.size * value.inputs[0].aval.shape[-1])
flops.register(
    passes.op("convolution"),
    lambda value: 2 * value.aval.size * math.prod(value.inputs[1].aval.shape[1:]),
)


def total(graph: passes.Graph) -> int:
    """The operations of all nodes that have the attribute."""
    return sum(flops[x.op](x) for x in graph.values if x.op in flops)


def at_most(limit: float) -> passes.Pass:
    """A pass that stops the compilation of programs with more operations than ``limit``."""

    def run(graph: passes.Graph) -> passes.Graph:
        count = total(graph)
        if count > limit:
            raise ValueError(f"'{graph.name}' has {count} floating-point operations, and {limit:g} are allowed.")
        return graph

    return passes.Pass("at_most", "programs with too many operations are refused", run)
