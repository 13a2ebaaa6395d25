"""Matrix products.

The primitives take stacks of float matrices, or float arrays contracted over several axes; functions bring other
operands to these forms. Products of bfloat16 are float32 (``dots``). Their gradients first round the gradient of the
result to bfloat16: functions round such a product, so its gradient has no more digits.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import batching
from runnel.core.composed import composed
from runnel.core.dispatch import TensorLike, apply
from runnel.core.dtypes import promote
from runnel.core.errors import AxisError, ShapeError
from runnel.core.rules import bilinear
from runnel.core.tables import Op, abstract_eval, cost, decompose, jvp, lower, reference, vjp
from runnel.loops.rules import DotGeneral
from runnel.ops.arguments import (
    Array,
    Operand,
    broadcast_shapes,
    is_single,
    normalize_axis,
    require_dtype,
    require_same_dtype,
    require_same_rank,
)
from runnel.ops.conversion import cast
from runnel.ops.elementwise.arithmetic import add, multiply
from runnel.ops.elementwise.complex_parts import conj
from runnel.ops.linear_algebra.dots import OPERAND_DTYPES, expanded, operand_dtype, sum_dtype, summed
from runnel.ops.promotion import anchor, common_dtype, lifted
from runnel.ops.reductions.primitives import sum
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.views import (
    bare,
    expand_dims,
    merged_rows,
    moveaxis,
    permute,
    reshape,
    split_rows,
    squeeze,
    transpose,
)

matmul_p = Op("matmul", "x, y", "The matrix products of x[..., M, K] with y[..., K, N], whose batch axes are equal.")
lower.register(matmul_p, DotGeneral())
decompose.register(matmul_p, lambda x, y: expanded(matmul_p, x, y))
jvp.register(matmul_p, bilinear(matmul_p))
cost.register(matmul_p, lambda x, y: 2 * x.size * y.shape[-1])


@abstract_eval.rule(matmul_p)
def _matmul_abstract_eval(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    require_same_dtype("matmul", x, y)
    require_dtype("matmul", x.dtype, OPERAND_DTYPES)
    require_same_rank("matmul", x, y)
    if x.ndim < 2 or x.shape[:-2] != y.shape[:-2]:
        raise ShapeError(f"[matmul] operand shapes {x.shape} and {y.shape} do not match: batch axes must be equal.")
    _require_matching(x.shape, y.shape)
    return aval((*x.shape[:-1], y.shape[-1]), sum_dtype(x.dtype))


@reference.rule(matmul_p)
def _matmul_reference(x: Any, y: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.matmul(summed(x), summed(y))


@vjp.rule(matmul_p)
def _matmul_vjp(g: Array, out: Array, x: Array, y: Array) -> tuple[Callable[[], Array], Callable[[], Array]]:
    g = cast(g, x.dtype)

    def into_y() -> Array:
        # The same chains either way; what differs is how the result lies in memory.
        if y.is_transposed:
            return transpose(cast(apply(matmul_p, transpose(g), x), y.dtype))
        return cast(apply(matmul_p, transpose(x), g), y.dtype)

    return (lambda: cast(apply(matmul_p, g, transpose(y)), x.dtype), into_y)


@batching(matmul_p)
def _matmul_batched(size: int, x: Array, y: Array) -> Array:
    """Merge the rows of all elements into one large product if they share the right operand."""
    if y.shape[0] == 1 and y.ndim == 3:
        return split_rows(apply(matmul_p, merged_rows(x), bare(y)), size, x.shape[1])
    return apply(matmul_p, *(broadcast_to(z, (size, *z.shape[1:])) for z in (x, y)))


tensordot_p = Op(
    "tensordot",
    "x, y, *, axes",
    "The product of x[*rows, *inner] with y[*inner, *columns], summed over the last ``axes`` axes of x.",
)
lower.register(tensordot_p, DotGeneral(several=True))
decompose.register(tensordot_p, lambda x, y, *, axes: expanded(tensordot_p, x, y, axes=axes))
jvp.register(tensordot_p, bilinear(tensordot_p))
cost.register(tensordot_p, lambda x, y, *, axes: 2 * x.size * math.prod(y.shape[axes:]))


@abstract_eval.rule(tensordot_p)
def _tensordot_abstract_eval(x: ShapedArray, y: ShapedArray, *, axes: int) -> ShapedArray:
    require_same_dtype("tensordot", x, y)
    require_dtype("tensordot", x.dtype, OPERAND_DTYPES)
    if not 0 <= axes <= min(x.ndim, y.ndim) or x.shape[x.ndim - axes :] != y.shape[:axes]:
        raise ShapeError(
            f"[tensordot] operand shapes {x.shape} and {y.shape} do not match: "
            f"the last {axes} axes of x must equal the first {axes} of y."
        )
    return aval((*x.shape[: x.ndim - axes], *y.shape[axes:]), sum_dtype(x.dtype))


@reference.rule(tensordot_p)
def _tensordot_reference(x: Any, y: Any, *, axes: int) -> Any:
    with np.errstate(all="ignore"):
        return np.tensordot(summed(x), summed(y), axes)


@vjp.rule(tensordot_p)
def _tensordot_vjp(
    g: Array, out: Array, x: Array, y: Array, *, axes: int
) -> tuple[Callable[[], Array], Callable[[], Array]]:
    rows, columns = x.ndim - axes, y.ndim - axes
    g = cast(g, x.dtype)
    return (
        lambda: cast(apply(tensordot_p, g, _exchanged(y, axes), axes=columns), x.dtype),
        lambda: cast(apply(tensordot_p, _exchanged(x, rows), g, axes=rows), y.dtype),
    )


@batching(tensordot_p)
def _tensordot_batched(size: int, x: Array, y: Array, *, axes: int) -> Array:
    """Merge the elements into rows or columns if one operand is the same for all of them."""
    if y.shape[0] == 1:
        return apply(tensordot_p, x, bare(y), axes=axes)
    if x.shape[0] == 1:
        return moveaxis(apply(tensordot_p, bare(x), moveaxis(y, 0, axes), axes=axes), x.ndim - 1 - axes, 0)
    rows, inner, columns = x.shape[1 : x.ndim - axes], x.shape[x.ndim - axes :], y.shape[1 + axes :]
    left = reshape(x, (size, math.prod(rows), math.prod(inner)))
    right = reshape(y, (size, math.prod(inner), math.prod(columns)))
    return reshape(apply(matmul_p, left, right), (size, *rows, *columns))


def _exchanged(x: Array, first: int) -> Array:
    """Move the ``first`` first axes of ``x`` after the others."""
    return permute(x, (*range(first, x.ndim), *range(first)))


def _require_matching(x: Sequence[int], y: Sequence[int]) -> None:
    inner = y[-2] if len(y) > 1 else y[0]
    if x[-1] != inner:
        place = "second to last" if len(y) > 1 else "only"
        raise ShapeError(
            f"[matmul] operand shapes {tuple(x)} and {tuple(y)} do not match: "
            f"the last axis of x ({x[-1]}) must equal the {place} axis of y ({inner})."
        )


def matmul(x: Operand, y: Operand) -> Array:
    """Return the matrix product (Array API): batch axes broadcast, a vector is a row on the left and a column on the
    right.

    Half precision is multiplied and summed in float32 and rounded once."""
    if isinstance(x, TensorLike) and isinstance(y, TensorLike) and _are_multiplied_as_they_are(x, y):
        _require_matching(x.shape, y.shape)
        return apply(matmul_p, x, y)
    like = anchor(matmul_p, (x, y))
    dtype = common_dtype(matmul_p, (x, y))
    a, b = lifted(like, x, dtype, 0), lifted(like, y, dtype, 0)
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(f"[matmul] operands need at least one axis, got shapes {a.shape} and {b.shape}; use multiply.")
    _require_matching(a.shape, b.shape)
    if a.ndim == 1 or b.ndim == 1:
        rows = expand_dims(a, 0) if a.ndim == 1 else a
        columns = expand_dims(b, 1) if b.ndim == 1 else b
        product = matmul(rows, columns)
        dropped = (*((-2,) if a.ndim == 1 else ()), *((-1,) if b.ndim == 1 else ()))
        return squeeze(product, dropped)
    if dtype.is_inexact:
        return cast(_product(cast(a, operand_dtype(dtype)), cast(b, operand_dtype(dtype))), dtype)
    # exact in the integers: a contraction in floats would not be
    terms = multiply(expand_dims(a, -1), expand_dims(b, -3))
    return cast(sum(terms, axis=-2), dtype)


def _are_multiplied_as_they_are(x: TensorLike, y: TensorLike) -> bool:
    """Return whether these are matrices of one dtype that the machine multiplies: the usual case."""
    dtype = x.dtype
    return x.ndim == y.ndim == 2 and y.dtype is dtype and dtype.is_inexact and sum_dtype(operand_dtype(dtype)) is dtype


def _product(a: Array, b: Array) -> Array:
    """Multiply matrices of a dtype that the machine multiplies; products of bfloat16 are float32."""
    if a.ndim == b.ndim and a.shape[:-2] == b.shape[:-2]:
        return apply(matmul_p, a, b)
    if b.ndim == 2:  # the batch becomes rows of one large product
        rows = reshape(a, (math.prod(a.shape[:-1]), a.shape[-1]))
        return reshape(apply(matmul_p, rows, b), (*a.shape[:-1], b.shape[-1]))
    batch = broadcast_shapes("matmul", a.shape[:-2], b.shape[:-2])
    return apply(matmul_p, broadcast_to(a, batch + a.shape[-2:]), broadcast_to(b, batch + b.shape[-2:]))


@composed
def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Return x · weightᵀ + bias, of shape (…, out), for ``x`` (…, in), ``weight`` (out, in) and ``bias`` (out).

    Half precision is summed in float32, with the bias, and rounded once. ShapeError if the numbers of features
    differ."""
    if weight.ndim != 2 or x.ndim == 0 or x.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"[linear] x of shape {x.shape} does not go with a weight of shape {weight.shape}, which is (out, in): the "
            "last axis of x must have size in."
        )
    dtype = common_dtype(matmul_p, (x, weight))
    if bias is None or not dtype.is_float or dtype.itemsize >= 4:
        product = matmul(x, transpose(weight))
        return product if bias is None else add(product, bias)
    rows = x if x.ndim > 1 else expand_dims(x, 0)
    rows, columns = (cast(cast(y, dtype), operand_dtype(dtype)) for y in (rows, weight))
    total = add(_product(rows, transpose(columns)), bias)
    return cast(total if x.ndim > 1 else squeeze(total, 0), promote(dtype, bias.dtype))


def outer(x: Array, y: Array) -> Array:
    """Return the products of each element of the vector ``x`` with each of the vector ``y``."""
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(f"[outer] takes two vectors, got shapes {x.shape} and {y.shape}.")
    return multiply(expand_dims(x, 1), expand_dims(y, 0))


def vecdot(x: Array, y: Array, axis: int = -1) -> Array:
    """Sum the products along ``axis``, with ``x`` conjugated if it is complex."""
    rank = max(x.ndim, y.ndim)
    place = normalize_axis("vecdot", axis, rank) - rank
    if -place > min(x.ndim, y.ndim) or x.shape[place] != y.shape[place]:
        raise ShapeError(f"[vecdot] axis {axis} must have the same size in both operands; got {x.shape} and {y.shape}.")
    return sum(multiply(conj(x), y), axis=place, dtype=common_dtype(matmul_p, (x, y)))


def tensordot(x: Array, y: Array, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    """Return the product summed over ``axes``: the last n of ``x`` with the first n of ``y``, or two lists of axes."""
    sum_axes: Any = axes
    if is_single(sum_axes):
        count = operator.index(sum_axes)
        if not 0 <= count <= min(x.ndim, y.ndim):
            raise AxisError(f"[tensordot] {count} axes cannot be summed over in shapes {x.shape} and {y.shape}.")
        left: Sequence[int] = range(x.ndim - count, x.ndim)
        right: Sequence[int] = range(count)
    else:
        left, right = sum_axes
    left = [normalize_axis("tensordot", a, x.ndim) for a in left]
    right = [normalize_axis("tensordot", a, y.ndim) for a in right]
    if [x.shape[a] for a in left] != [y.shape[a] for a in right]:
        raise ShapeError(f"[tensordot] axes {left} of shape {x.shape} and {right} of shape {y.shape} differ in size.")
    free_x = [a for a in range(x.ndim) if a not in left]
    free_y = [a for a in range(y.ndim) if a not in right]
    dtype = common_dtype(matmul_p, (x, y))
    if dtype.is_inexact:
        x, y = (cast(cast(z, dtype), operand_dtype(dtype)) for z in (x, y))
    x, y = permute(x, (*free_x, *left)), permute(y, (*right, *free_y))
    if dtype.is_inexact:
        return cast(apply(tensordot_p, x, y, axes=len(left)), dtype)
    rows, inner, columns = (x.shape[: len(free_x)], x.shape[len(free_x) :], y.shape[len(right) :])
    whole = math.prod(inner)
    product = matmul(reshape(x, (math.prod(rows), whole)), reshape(y, (whole, math.prod(columns))))
    return reshape(product, (*rows, *columns))
