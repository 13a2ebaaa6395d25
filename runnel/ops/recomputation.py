"""``again``: an optimization barrier that keeps a recomputed value apart from the first one."""

from __future__ import annotations

from typing import Any

from runnel.core.avals import Aval
from runnel.core.axes import batching
from runnel.core.dispatch import apply
from runnel.core.tables import Op, cost, infer, jvp, lower, reference, vjp
from runnel.core.tangents import Tangents
from runnel.loops.rules import View
from runnel.ops.arguments import Array

# An op on again(x, …) is another value than the same op on x: it shares neither a node nor a kernel with it, and waits
# for what stands behind x. So a value that is needed late can be computed late.
again_p = Op("again", "x, *after", "x itself, for what is computed again once all of `after` is known.")
infer.register(again_p, lambda x, *after: x)
reference.register(again_p, lambda x, *after: x)
cost.register(again_p, lambda x, *after: 0)


def _identity(aval_in: Aval, aval_out: Aval) -> list[tuple[int, tuple[tuple[int, int], ...]]]:
    return [(0, ((axis, 1),)) for axis in range(aval_in.ndim)]


lower.register(again_p, View(_identity))


@batching(again_p)
def _again_batched(size: int, x: Array, *after: Array) -> Array:
    return apply(again_p, x, *after)


@jvp.rule(again_p)
def _again_jvp(tangents: Tangents, out: Array, x: Array, *after: Array) -> list[Array]:
    return [] if tangents[0] is None else [apply(again_p, tangents[0], *after)]


@vjp.rule(again_p)
def _again_vjp(g: Array, out: Array, x: Array, *after: Array) -> tuple[Any, ...]:
    return (g, *(None for _ in after))
