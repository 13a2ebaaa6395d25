"""``optimization_barrier``: an optimization barrier that keeps a recomputed value apart from the first one."""

from __future__ import annotations

from typing import Any

from runnel.core.avals import ShapedArray
from runnel.core.axes import batching
from runnel.core.dispatch import apply
from runnel.core.rules import Tangents
from runnel.core.tables import Op, abstract_eval, cost, jvp, lower, reference, vjp
from runnel.loops.rules import View
from runnel.ops.arguments import Array

# An op on optimization_barrier(x, …) is another value than the same op on x: it shares neither a node nor a kernel with
# it, and waits for what stands behind x. So a value that is needed late can be computed late.
optimization_barrier_p = Op(
    "optimization_barrier", "x, *after", "x itself, for what is computed again once all of `after` is known."
)
abstract_eval.register(optimization_barrier_p, lambda x, *after: x)
reference.register(optimization_barrier_p, lambda x, *after: x)
cost.register(optimization_barrier_p, lambda x, *after: 0)


def _identity(aval_in: ShapedArray, aval_out: ShapedArray) -> list[tuple[int, tuple[tuple[int, int], ...]]]:
    return [(0, ((axis, 1),)) for axis in range(aval_in.ndim)]


lower.register(optimization_barrier_p, View(_identity))


@batching(optimization_barrier_p)
def _barrier_batched(size: int, x: Array, *after: Array) -> Array:
    return apply(optimization_barrier_p, x, *after)


@jvp.rule(optimization_barrier_p)
def _barrier_jvp(tangents: Tangents, out: Array, x: Array, *after: Array) -> list[Array]:
    return [] if tangents[0] is None else [apply(optimization_barrier_p, tangents[0], *after)]


@vjp.rule(optimization_barrier_p)
def _barrier_vjp(g: Array, out: Array, x: Array, *after: Array) -> tuple[Any, ...]:
    return (g, *(None for _ in after))
