"""Broadcast and sum, which are each other's transpose."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.axes import REDUCTION, SIZE, Aligned, AxisRule, Each
from runnel.core.dispatch import apply
from runnel.core.dtypes import DType, float32, float64, int64, uint64
from runnel.core.errors import ShapeError
from runnel.core.rules import Tangents, linear
from runnel.core.tables import Op, abstract_eval, axes as axis_rules, cost, decompose, jvp, lower, reference, vjp
from runnel.core.viewing import viewing
from runnel.loops.rules import Reduction, View
from runnel.ops.arguments import Array, as_shape, broadcast_shapes, require_dtype
from runnel.ops.conversion import cast, cast_p
from runnel.ops.shapes.views import AxisMap, reshape

# --- broadcast ----------------------------------------------------------------------------------------------------

broadcast_p = Op("broadcast", "x, *, shape", "x with axes of size 1 repeated to the sizes of shape (of equal length).")
reference.register(broadcast_p, lambda x, *, shape: np.broadcast_to(x, shape))
vjp.register(broadcast_p, lambda g, out, x, *, shape: (unbroadcast(g, x.shape),))
jvp.register(broadcast_p, linear(broadcast_p))
axis_rules.register(broadcast_p, Aligned({"shape": Each(SIZE)}))
cost.register(broadcast_p, lambda x, *, shape: 0)


@abstract_eval.rule(broadcast_p)
def _broadcast_abstract_eval(x: ShapedArray, *, shape: Shape) -> ShapedArray:
    if len(shape) != x.ndim or any(n not in (1, target) for n, target in zip(x.shape, shape, strict=True)):
        raise ShapeError(f"[broadcast] shape {x.shape} cannot become {shape}: only axes of size 1 can be repeated.")
    return aval(shape, x.dtype)


def _broadcast_map(aval_in: ShapedArray, aval_out: ShapedArray, *, shape: Shape) -> list[AxisMap]:
    return [(0, ((axis, 1),) if n != 1 else ()) for axis, n in enumerate(aval_in.shape)]


lower.register(broadcast_p, View(_broadcast_map))


def with_rank(x: Array, ndim: int) -> Array:
    """Put axes of size 1 first until ``x`` has ``ndim`` dimensions."""
    missing = ndim - x.ndim
    return reshape(x, (1,) * missing + x.shape) if missing > 0 else x


@viewing
def broadcast_to(x: Array, shape: int | Iterable[int]) -> Array:
    """Repeat ``x`` along axes of size 1, and along new leading axes, to ``shape``; -1 keeps the size of an axis."""
    target = as_shape("broadcast_to", shape)
    if x.shape == target:
        return x
    if -1 in target:
        sizes = (-1,) * (len(target) - x.ndim) + x.shape  # -1, which is refused, where the axis is new
        target = tuple(own if size == -1 else size for size, own in zip(target, sizes, strict=False))
    if len(target) < x.ndim:
        raise ShapeError(
            f"[broadcast_to] shape {x.shape} has more dimensions than {target}; they must not become fewer."
        )
    aligned = with_rank(x, len(target))
    return aligned if aligned.shape == target else aligned.apply_view(broadcast_p, {"shape": target})


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """Broadcast the arrays to one shape."""
    shape = broadcast_shapes("broadcast_arrays", *(x.shape for x in arrays))
    return tuple(broadcast_to(x, shape) for x in arrays)


class Stacked(AxisRule):
    """Of ops on the last axes of their operands, which have the same axes in front: a new axis is another of these."""

    def batched(self, op: Op, size: int, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        return apply(op, *(broadcast_to(x, (size, *x.shape[1:])) for x in operands), **attrs)


# --- sum ----------------------------------------------------------------------------------------------------------

SUMMED = (int64, uint64, float32, float64)  # narrower types are widened by the function `sum`, so that nothing is lost

sum_p = Op("sum", "x, *, axes", "The sum over axes, which stay as axes of size 1.")
lower.register(sum_p, Reduction("sum"))
cost.register(sum_p, lambda x, *, axes: x.size)
jvp.register(sum_p, linear(sum_p))
axis_rules.register(sum_p, REDUCTION)
vjp.register(sum_p, lambda g, out, x, *, axes: (broadcast_to(g, x.shape),))


@abstract_eval.rule(sum_p)
def _sum_abstract_eval(x: ShapedArray, *, axes: tuple[int, ...]) -> ShapedArray:
    require_dtype("sum", x.dtype, SUMMED)
    return aval(tuple(1 if i in axes else n for i, n in enumerate(x.shape)), x.dtype)


@reference.rule(sum_p)
def _sum_reference(x: Any, *, axes: tuple[int, ...]) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(np.sum(x, axis=axes, keepdims=True, dtype=x.dtype))


# --- a reduction in another dtype -----------------------------------------------------------------------------------

cast_reduce_p = Op(
    "cast_reduce",
    "x, *, reduction, dtype, axes",
    "x in another dtype, reduced over axes by the op of that name: one kernel, in eager code as well.",
)
cost.register(cast_reduce_p, lambda x, *, reduction, dtype, axes: x.size)
axis_rules.register(cast_reduce_p, REDUCTION)


@abstract_eval.rule(cast_reduce_p)
def _cast_reduce_abstract_eval(x: ShapedArray, *, reduction: str, dtype: DType, axes: tuple[int, ...]) -> ShapedArray:
    result: ShapedArray = abstract_eval[Op.registry[reduction]](aval(x.shape, dtype), axes=axes)
    return result


@reference.rule(cast_reduce_p)
def _cast_reduce_reference(x: Any, *, reduction: str, dtype: DType, axes: tuple[int, ...]) -> Any:
    return reference[Op.registry[reduction]](reference[cast_p](x, dtype=dtype), axes=axes)


@decompose.rule(cast_reduce_p)
def _cast_reduce_expand(x: Array, *, reduction: str, dtype: DType, axes: tuple[int, ...]) -> Array:
    return apply(Op.registry[reduction], cast(x, dtype), axes=axes)


@vjp.rule(cast_reduce_p)
def _cast_reduce_vjp(
    g: Array, out: Array, x: Array, *, reduction: str, dtype: DType, axes: tuple[int, ...]
) -> tuple[Callable[[], Array] | None]:
    if not (dtype.is_inexact and x.dtype.is_inexact):
        return (None,)
    return (lambda: cast(vjp[Op.registry[reduction]](g, out, cast(x, dtype), axes=axes)[0], x.dtype),)


@jvp.rule(cast_reduce_p)
def _cast_reduce_jvp(
    tangents: Tangents, out: Array, x: Array, *, reduction: str, dtype: DType, axes: tuple[int, ...]
) -> list[Array]:
    if reduction == sum_p.name:
        return [reduced_as(sum_p, tangents[0], dtype, axes)]
    terms: list[Array] = jvp[Op.registry[reduction]]((cast(tangents[0], dtype),), out, cast(x, dtype), axes=axes)
    return terms


def reduced_as(reduction: Op, x: Array, dtype: DType, axes: tuple[int, ...]) -> Array:
    """Reduce ``x`` in ``dtype`` over ``axes``, which stay as axes of size 1."""
    if x.dtype is dtype or dtype.is_complex:
        return apply(reduction, cast(x, dtype), axes=axes)
    return apply(cast_reduce_p, x, reduction=reduction.name, dtype=dtype, axes=axes)


def unbroadcast(g: Array, shape: Shape) -> Array:
    """Sum the gradient of a broadcast result over the repeated axes, to the operand's ``shape``."""
    if g.shape == shape:
        return g
    axes = tuple(i for i, (n, m) in enumerate(zip(shape, g.shape, strict=True)) if n == 1 and m != 1)
    return sum_keepdims(g, axes)


def sum_keepdims(x: Array, axes: tuple[int, ...]) -> Array:
    """Sum over ``axes``, kept as axes of size 1, in the dtype of ``x``; half precision is summed in float32."""
    from_dtype = x.dtype
    if from_dtype in SUMMED or from_dtype.is_complex:
        return apply(sum_p, x, axes=axes)
    wide = float32 if from_dtype.is_float else int64
    return cast(reduced_as(sum_p, x, wide, axes), from_dtype)
