"""Dense row-major copies, for consumers that are slower or impossible on views."""

from __future__ import annotations

import numpy as np

from runnel.core.axes import ELEMENTWISE
from runnel.core.dispatch import apply
from runnel.core.rules import linear
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.loops.rules import Elementwise
from runnel.ops.arguments import Array

contiguous_p = Op("contiguous", "x", "x, stored densely in row-major order.")
abstract_eval.register(contiguous_p, lambda x: x)
reference.register(contiguous_p, lambda x: np.ascontiguousarray(x).reshape(np.shape(x)))
vjp.register(contiguous_p, lambda g, out, x: (g,))
lower.register(contiguous_p, Elementwise(lambda avals, x: x))
cost.register(contiguous_p, lambda x: 0)
axes.register(contiguous_p, ELEMENTWISE)
jvp.register(contiguous_p, linear(contiguous_p))


def contiguous(x: Array) -> Array:
    """``x``, stored densely in row-major order: a copy where it is a view that lies otherwise."""
    return apply(contiguous_p, x)
