"""Constants and positions of a given shape, on the device and in the trace of a value ``like``."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.axes import SIZE, Aligned, Each, One
from runnel.core.dispatch import apply
from runnel.core.dtypes import Dtype, as_dtype, int64
from runnel.core.errors import ShapeError
from runnel.core.rules import Tangents
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.loops import scalar
from runnel.loops.ir import Apply, Expr
from runnel.loops.rules import IotaLike
from runnel.ops.arguments import Array, as_sizes, normalize_axis, require_dtype
from runnel.ops.elementwise.rows import NUMBERS
from runnel.ops.promotion import constant
from runnel.ops.shapes.broadcasting import broadcast_p, broadcast_to, unbroadcast


def full_like(
    like: Array,
    fill_value: bool | int | float | complex,
    shape: int | Iterable[int] | None = None,
    dtype: Dtype = None,
    device: Any = None,
) -> Array:
    """Return ``fill_value`` everywhere, by default with the shape, dtype and device of ``like``. Fills no memory."""
    sizes = like.shape if shape is None else as_sizes("full_like", shape)
    chosen = like.dtype if dtype is None else as_dtype(dtype)
    shared = constant(like, fill_value, chosen, len(sizes))
    own = shared.handle() if shared.shape == sizes else apply(broadcast_p, shared, shape=sizes)
    return own if device is None else own.to(device=device)


def zeros_like(like: Array, dtype: Dtype = None, device: Any = None) -> Array:
    """Return zeros with the shape, dtype and device of ``like``."""
    return full_like(like, 0, dtype=dtype, device=device)


def or_zeros(cotangents: Iterable[Array | None], outs: Iterable[Array]) -> list[Array]:
    """Replace missing gradients of several results by zeros."""
    return [zeros_like(out) if g is None else g for g, out in zip(cotangents, outs, strict=True)]


def ones_like(like: Array, dtype: Dtype = None, device: Any = None) -> Array:
    """Return ones with the shape, dtype and device of ``like``."""
    return full_like(like, 1, dtype=dtype, device=device)


# --- iota ---------------------------------------------------------------------------------------------------------

iota_p = Op("iota", "start, *, shape, axis", "start + the position along axis, in an array of shape.")
vjp.register(iota_p, lambda g, out, start, *, shape, axis: (unbroadcast(g, start.shape),))
cost.register(iota_p, lambda start, *, shape, axis: 0)


@jvp.rule(iota_p)
def _iota_jvp(tangents: Tangents, out: Array, start: Array, *, shape: Shape, axis: int) -> list[Array]:
    return [broadcast_to(tangents[0], shape)]


class _Counted(Aligned):
    """Positions along an axis, from one start for all elements; where each has its own, it is added."""

    def batched(self, op: Op, size: int, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        (start,) = operands
        positions = super().batched(op, 1, (constant(start, 0, start.dtype, start.ndim),), attrs)
        return start.apply_op(Op.registry["add"], (start, positions), {})


axes.register(iota_p, _Counted({"shape": Each(SIZE), "axis": One()}))


@abstract_eval.rule(iota_p)
def _iota_abstract_eval(start: ShapedArray, *, shape: Shape, axis: int) -> ShapedArray:
    require_dtype("iota", start.dtype, NUMBERS)
    if start.shape != (1,) * len(shape) or not 0 <= axis < len(shape):
        raise ShapeError(f"[iota] start of shape {start.shape} and axis {axis} do not fit the shape {shape}.")
    return aval(shape, start.dtype)


@reference.rule(iota_p)
def _iota_reference(start: Any, *, shape: Shape, axis: int) -> Any:
    column = np.arange(shape[axis]).reshape(tuple(-1 if i == axis else 1 for i in range(len(shape))))
    return (np.zeros(shape, start.dtype) + (start + column.astype(start.dtype))).astype(start.dtype, copy=False)


def _iota_steps(result: ShapedArray, *, shape: Shape, axis: int) -> Shape:
    return tuple(int(a == axis) for a in range(result.ndim))


def _iota_expr(avals: Any, position: Expr, start: Expr, *, shape: Shape, axis: int) -> Expr:
    here = Apply(scalar.cast, (position,), start.dtype)
    return Apply(scalar.add, (start, here), start.dtype)


lower.register(iota_p, IotaLike(_iota_expr, _iota_steps))


def iota(like: Array, shape: int | Iterable[int], axis: int = -1, dtype: Any = int64, start: int = 0) -> Array:
    """Return ``start`` + the position along ``axis``, in an array of ``shape``."""
    sizes = as_sizes("iota", shape)
    place = normalize_axis("iota", axis, len(sizes))
    return apply(iota_p, constant(like, operator.index(start), as_dtype(dtype), len(sizes)), shape=sizes, axis=place)
