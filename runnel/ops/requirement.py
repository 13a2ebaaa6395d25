"""``required``: facts that a program checks before it changes anything."""

from __future__ import annotations

from runnel.core.axes import ELEMENTWISE
from runnel.core.dispatch import apply
from runnel.core.dtypes import int64
from runnel.core.rules import no_tangent
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.loops.rules import BoundsChecked
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast, optimization_barrier_p
from runnel.ops.elementwise.comparison import logical_not
from runnel.ops.reductions.primitives import all

required_p = Op(
    "required",
    "x, *, extent, allowed, message",
    "x, 0 where a fact holds, else 1, of which a program makes the error `message`.",
    is_late=True,
)
abstract_eval.register(required_p, lambda x, *, extent, allowed, message: x)
reference.register(required_p, lambda x, *, extent, allowed, message: x)
lower.register(required_p, BoundsChecked(lambda avals, x, *, extent, allowed, message: x))
vjp.register(required_p, lambda g, out, x, *, extent, allowed, message: (None,))
cost.register(required_p, lambda x, *, extent, allowed, message: 0)
jvp.register(required_p, no_tangent)
axes.register(required_p, ELEMENTWISE)


def requiring(x: Array, facts: Array, message: str) -> Array:
    """Return ``x``, which a program computes only if all ``facts`` hold; otherwise it raises
    ValueError(``message``)."""
    return apply(optimization_barrier_p, x, required(facts, message))


def required(facts: Array, message: str) -> Array:
    """Return a number that a program computes only if all ``facts`` hold; otherwise it raises
    ValueError(``message``)."""
    return apply(required_p, cast(logical_not(all(facts)), int64), extent=1, allowed=None, message=message)
