"""``cast`` to another dtype, ``stop_gradient``, and ``optimization_barrier``, which keeps a recomputed value
separate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import ELEMENTWISE, batching
from runnel.core.conversion import rounded
from runnel.core.dispatch import apply
from runnel.core.dtypes import DType, Dtype, as_dtype, bool_
from runnel.core.errors import DTypeError
from runnel.core.rules import Tangents, no_tangent
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.loops import scalar
from runnel.loops.ir import Apply
from runnel.loops.rules import Elementwise, View
from runnel.ops.arguments import Array

# --- cast ---------------------------------------------------------------------------------------------------------

cast_p = Op("cast", "x, *, dtype", "x in another dtype. Float to integer truncates and saturates, NaN gives 0.")
abstract_eval.register(cast_p, lambda x, *, dtype: aval(x.shape, dtype))
lower.register(cast_p, Elementwise(lambda avals, x, *, dtype: Apply(scalar.cast, (x,), dtype)))
cost.register(cast_p, lambda x, *, dtype: 0)
axes.register(cast_p, ELEMENTWISE)


@reference.rule(cast_p)
def _cast_reference(x: Any, *, dtype: DType) -> Any:
    if dtype is bool_:
        return x != 0
    if not dtype.is_integer or np.issubdtype(x.dtype, np.integer) or x.dtype == np.bool_:
        return rounded(x, dtype)
    limits = np.iinfo(dtype.numpy)
    wide = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    high, low = wide >= float(limits.max), wide <= float(limits.min)
    inside = np.where(high | low, 0, wide).astype(dtype.numpy)
    return np.where(high, dtype.numpy.type(limits.max), np.where(low, dtype.numpy.type(limits.min), inside))


@vjp.rule(cast_p)
def _cast_vjp(g: Array, out: Array, x: Array, *, dtype: DType) -> tuple[Array | None]:
    return (cast(g, x.dtype) if dtype.is_inexact and x.dtype.is_inexact else None,)


@jvp.rule(cast_p)
def _cast_jvp(tangents: Tangents, out: Array, x: Array, *, dtype: DType) -> list[Array]:
    return [cast(tangents[0], dtype)]


def cast(x: Array, dtype: Dtype) -> Array:
    """Convert ``x`` to ``dtype``; return ``x`` itself if it has that dtype.

    Float to integer truncates and saturates, NaN becomes 0. DTypeError for complex to real: take real(x) or abs(x)."""
    if x.dtype is dtype:
        return x
    target = as_dtype(dtype)
    if x.dtype is target:
        return x
    if x.dtype.is_complex and not target.is_complex and target is not bool_:
        raise DTypeError(f"[cast] {x.dtype.name} does not become {target.name}; take real(x), imag(x) or abs(x).")
    return apply(cast_p, x, dtype=target)


# --- stop_gradient ------------------------------------------------------------------------------------------------

stop_gradient_p = Op("stop_gradient", "x", "x, through which no gradient flows.")
abstract_eval.register(stop_gradient_p, lambda x: x)
reference.register(stop_gradient_p, lambda x: x)
vjp.register(stop_gradient_p, lambda g, out, x: (None,))
cost.register(stop_gradient_p, lambda x: 0)
axes.register(stop_gradient_p, ELEMENTWISE)
jvp.register(stop_gradient_p, no_tangent)


def _identity(aval_in: ShapedArray, aval_out: ShapedArray) -> list[tuple[int, tuple[tuple[int, int], ...]]]:
    return [(0, ((axis, 1),)) for axis in range(aval_in.ndim)]


lower.register(stop_gradient_p, View(_identity))


def stop_gradient(x: Array) -> Array:
    """Return ``x`` as a constant for differentiation."""
    return apply(stop_gradient_p, x)


# An op on optimization_barrier(x, …) is another value than the same op on x: it shares neither a node nor a kernel with
# it, and waits for the values after x. So a value that is needed late can be computed late.
optimization_barrier_p = Op(
    "optimization_barrier", "x, *after", "x itself, for what is computed again once all of `after` is known."
)
abstract_eval.register(optimization_barrier_p, lambda x, *after: x)
reference.register(optimization_barrier_p, lambda x, *after: x)
cost.register(optimization_barrier_p, lambda x, *after: 0)


def _barrier_map(aval_in: ShapedArray, aval_out: ShapedArray) -> list[tuple[int, tuple[tuple[int, int], ...]]]:
    return [(0, ((axis, 1),)) for axis in range(aval_in.ndim)]


lower.register(optimization_barrier_p, View(_barrier_map))


@batching(optimization_barrier_p)
def _barrier_batched(size: int, x: Array, *after: Array) -> Array:
    return apply(optimization_barrier_p, x, *after)


@jvp.rule(optimization_barrier_p)
def _barrier_jvp(tangents: Tangents, out: Array, x: Array, *after: Array) -> list[Array]:
    return [] if tangents[0] is None else [apply(optimization_barrier_p, tangents[0], *after)]


@vjp.rule(optimization_barrier_p)
def _barrier_vjp(g: Array, out: Array, x: Array, *after: Array) -> tuple[Any, ...]:
    return (g, *(None for _ in after))
