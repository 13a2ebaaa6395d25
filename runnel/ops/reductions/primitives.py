"""Reductions over axes. The primitives keep reduced axes as size 1; the functions drop them with a view."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import REDUCTION
from runnel.core.composed import composed
from runnel.core.dispatch import apply
from runnel.core.dtypes import DType, Dtype, as_dtype, bool_, float32, int64, uint8, uint64
from runnel.core.errors import ShapeError
from runnel.core.rules import Tangents, no_tangent
from runnel.core.tables import Op, abstract_eval, axes as axis_rules, cost, jvp, lower, reference, vjp
from runnel.loops.rules import Reduction
from runnel.ops.arguments import Array, Axis, normalize_axes, normalize_axis, require_dtype
from runnel.ops.conversion import cast
from runnel.ops.creation_like import iota
from runnel.ops.elementwise.arithmetic import divide, multiply
from runnel.ops.elementwise.comparison import equal, isnan, logical_or, where
from runnel.ops.elementwise.rows import NUMBERS
from runnel.ops.shapes.broadcasting import SUMMED, reduced_as, sum_keepdims, sum_p
from runnel.ops.shapes.views import reshape


def reduction(op: Op, kind: str, numpy: Callable[..., Any], accepted: Sequence[DType], *, empty: bool = True) -> None:
    """Register ``op`` as a reduction of ``kind`` in the loop IR; ``empty`` says whether it has an identity."""

    def abstract_eval_rule(x: ShapedArray, *, axes: tuple[int, ...]) -> ShapedArray:
        require_dtype(op.name, x.dtype, accepted)
        if not empty and builtins.any(x.shape[a] == 0 for a in axes):
            raise ShapeError(
                f"[{op.name}] axes {axes} of shape {x.shape} hold no element, and none is the {op.name} of none."
            )
        return aval(tuple(1 if i in axes else n for i, n in enumerate(x.shape)), x.dtype)

    def reference_rule(x: Any, *, axes: tuple[int, ...]) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(numpy(x, axis=axes, keepdims=True)).astype(x.dtype, copy=False)

    abstract_eval.register(op, abstract_eval_rule)
    reference.register(op, reference_rule)
    lower.register(op, Reduction(kind))
    axis_rules.register(op, REDUCTION)
    cost.register(op, lambda x, *, axes: x.size)


# --- primitives (sum_p is in broadcasting.py, with its transpose) ---------------------------------------------

prod_p = Op("prod", "x, *, axes", "The product over axes, which stay as axes of size 1.")
reduction(prod_p, "prod", np.prod, SUMMED)


@vjp.rule(prod_p)
def _prod_vjp(g: Array, out: Array, x: Array, *, axes: tuple[int, ...]) -> tuple[Array]:
    """Return the product of the other elements: out / x, and at a single zero the product of the rest."""
    is_zero = equal(x, 0)
    patched = where(is_zero, 1, x)
    zeros = sum_keepdims(cast(is_zero, int64), axes)
    rest = where(equal(zeros, 1), apply(prod_p, patched, axes=axes), 0)
    return (multiply(g, where(is_zero, rest, divide(out, patched))),)


@jvp.rule(prod_p)
def _prod_jvp(tangents: Tangents, out: Array, x: Array, *, axes: tuple[int, ...]) -> list[Array]:
    (terms,) = _prod_vjp(tangents[0], out, x, axes=axes)  # a product with each element's tangent
    return [sum_keepdims(terms, axes)]


def _share(g: Array, out: Array, x: Array, *, axes: tuple[int, ...]) -> tuple[Array]:
    """Share the gradient equally among the extreme elements; NaN are extreme."""
    hit = cast(logical_or(equal(x, out), isnan(x)), g.dtype)
    return (divide(multiply(g, hit), sum_keepdims(hit, axes)),)


def _share_jvp(tangents: Tangents, out: Array, x: Array, *, axes: tuple[int, ...]) -> list[Array]:
    return [sum_keepdims(_share(tangents[0], out, x, axes=axes)[0], axes)]


max_p = Op("max", "x, *, axes", "The greatest element over axes, which stay as axes of size 1; NaN wins.")
reduction(max_p, "max", np.max, NUMBERS, empty=False)
vjp.register(max_p, _share)
jvp.register(max_p, _share_jvp)

min_p = Op("min", "x, *, axes", "The smallest element over axes, which stay as axes of size 1; NaN wins.")
reduction(min_p, "min", np.min, NUMBERS, empty=False)
vjp.register(min_p, _share)
jvp.register(min_p, _share_jvp)

any_p = Op("any", "x, *, axes", "True where an element over axes is true; the axes stay as axes of size 1.")
reduction(any_p, "any", np.any, (bool_,))
vjp.register(any_p, lambda g, out, x, *, axes: (None,))
jvp.register(any_p, no_tangent)

all_p = Op("all", "x, *, axes", "True where all elements over axes are true; the axes stay as axes of size 1.")
reduction(all_p, "all", np.all, (bool_,))
vjp.register(all_p, lambda g, out, x, *, axes: (None,))
jvp.register(all_p, no_tangent)


# --- functions ----------------------------------------------------------------------------------------------------


def finished(reduced: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Keep or drop the reduced axes of a result."""
    if keepdims:
        return reduced
    return reshape(reduced, tuple([n for i, n in enumerate(reduced.shape) if i not in axes]))


def accumulated(dtype: DType) -> DType:
    """Return the dtype in which sums and products accumulate: int64 for bool and integers, float32 for halves."""
    if dtype in SUMMED or dtype.is_complex:
        return dtype
    if dtype.is_float:
        return float32
    return uint64 if dtype.kind == "uint" else int64


def _totalled(op: Op, x: Array, axis: Axis, keepdims: bool, dtype: Any) -> Array:
    axes = normalize_axes(op.name, axis, x.ndim)
    wide = accumulated(x.dtype)
    result = x.dtype if x.dtype.is_inexact else wide
    if dtype is not None:
        result = as_dtype(dtype)
        wide = accumulated(result)
    return cast(finished(reduced_as(op, x, wide, axes), axes, keepdims), result)


@composed
def sum(x: Array, axis: Axis = None, keepdims: bool = False, dtype: Dtype = None) -> Array:
    """Sum over ``axis``.

    Bools and integers are summed in 64 bits; half precision in float32, rounded once."""
    return _totalled(sum_p, x, axis, keepdims, dtype)


@composed
def prod(x: Array, axis: Axis = None, keepdims: bool = False, dtype: Dtype = None) -> Array:
    """Multiply over ``axis``, in the dtypes of :func:`sum`."""
    return _totalled(prod_p, x, axis, keepdims, dtype)


@composed
def max(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the largest element over ``axis``, NaN if there is one. Equal largest elements share the gradient."""
    axes = normalize_axes("max", axis, x.ndim)
    if x.dtype.kind == "bool":
        return any(x, axes, keepdims)
    return finished(apply(max_p, x, axes=axes), axes, keepdims)


@composed
def min(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the smallest element over ``axis``, NaN if there is one. Equal smallest elements share the gradient."""
    axes = normalize_axes("min", axis, x.ndim)
    if x.dtype.kind == "bool":
        return all(x, axes, keepdims)
    return finished(apply(min_p, x, axes=axes), axes, keepdims)


@composed
def any(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return whether at least one element over ``axis`` is non-zero."""
    axes = normalize_axes("any", axis, x.ndim)
    return finished(reduced_as(any_p, x, bool_, axes), axes, keepdims)


@composed
def all(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return whether all elements over ``axis`` are non-zero."""
    axes = normalize_axes("all", axis, x.ndim)
    return finished(reduced_as(all_p, x, bool_, axes), axes, keepdims)


@composed
def argmax(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the int64 position of the first largest element along ``axis``; a NaN counts as the largest."""
    return _first_extreme(max_p, "argmax", x, axis, keepdims)


@composed
def argmin(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the int64 position of the first smallest element along ``axis``; a NaN counts as the smallest."""
    return _first_extreme(min_p, "argmin", x, axis, keepdims)


def _first_extreme(op: Op, name: str, x: Array, axis: int | None, keepdims: bool) -> Array:
    if x.dtype.kind == "bool":
        x = cast(x, uint8)
    if axis is None or (not x.ndim and axis in (0, -1)):
        index = _first_extreme(op, name, reshape(x, (x.size,)), 0, False)
        return reshape(index, (1,) * x.ndim) if keepdims else index
    place = normalize_axis(name, axis, x.ndim)
    if not x.shape[place]:
        raise ShapeError(f"[{name}] axis {axis} of shape {x.shape} holds no element.")
    extreme = apply(op, x, axes=(place,))
    hit = equal(x, extreme)
    if x.dtype.is_float:
        hit = logical_or(hit, isnan(x))
    position = where(hit, iota(x, x.shape, place), x.shape[place])
    return finished(apply(min_p, position, axes=(place,)), (place,), keepdims)
