"""Sorting, the positions of a sort, and the largest elements.

Every sort is stable. NaN counts as larger than every number, as in NumPy and PyTorch: it is last in ascending order
and first in descending order. -0 and +0 are equal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.composed import composed
from runnel.core.dispatch import apply
from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError
from runnel.core.rules import Tangents
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.loops.rules import Sort
from runnel.ops.arguments import Array, normalize_axis
from runnel.ops.creation_like import iota, zeros_like
from runnel.ops.elementwise.arithmetic import add, multiply
from runnel.ops.indexing.gather import scatter_add, take_along_axis
from runnel.ops.shapes.broadcasting import Stacked
from runnel.ops.shapes.pieces import narrow
from runnel.ops.shapes.views import moveaxis, of_axisless, reshape

_LONGEST = 2**31 - 1  # elements of a row: kernels number them in 32 bits

sort_p = Op(
    "sort",
    "x, *, descending",
    "The elements of x along its last axis in order, and where they were.",
    multiple_results=True,
)
lower.register(sort_p, Sort())
axes.register(sort_p, Stacked())
cost.register(sort_p, lambda x, *, descending: x.size * max(x.shape[-1] - 1, 1).bit_length())


@abstract_eval.rule(sort_p)
def _abstract_eval(x: ShapedArray, *, descending: bool) -> tuple[ShapedArray, ShapedArray]:
    if not x.ndim or x.shape[-1] > _LONGEST:
        raise ShapeError(f"[sort] needs a last axis of at most {_LONGEST} elements; got shape {x.shape}.")
    return x, aval(x.shape, int64)


@reference.rule(sort_p)
def _reference(x: Any, *, descending: bool) -> tuple[Any, Any]:
    wide = np.asarray(x).astype(np.float64) if x.dtype.kind not in "biuf" else x  # bfloat16
    if not descending:
        order = np.argsort(wide, axis=-1, kind="stable")
    else:  # the last first, of equal ones the first first: the order from behind, of the row from behind
        order = x.shape[-1] - 1 - np.flip(np.argsort(np.flip(wide, -1), axis=-1, kind="stable"), -1)
    return np.take_along_axis(x, order, -1), order.astype(np.int64)


@vjp.rule(sort_p)
def _vjp(
    gs: tuple[Array | None, ...], outs: tuple[Array, ...], x: Array, *, needs_grad: tuple[bool, ...], descending: bool
) -> tuple[Any]:
    """Move the gradient of each sorted element to where the element came from."""
    g, indices = gs[0], outs[1]
    if g is None or not x.size:
        return (None if g is None else zeros_like(x),)
    n = x.shape[-1]
    rows = x.size // n
    flat = add(reshape(indices, (rows, n)), multiply(iota(indices, (rows, 1), 0), n))
    return (reshape(scatter_add(reshape(flat, (x.size,)), reshape(g, (x.size,)), x.size), x.shape),)


@jvp.rule(sort_p)
def _jvp(tangents: Tangents, outs: tuple[Array, ...], x: Array, *, descending: bool) -> tuple[list[Array], list[Array]]:
    return [take_along_axis(tangents[0], outs[1], -1)], []


class TopK(NamedTuple):
    """The greatest (or smallest) elements and their positions along the axis."""

    values: Array
    indices: Array


def _sorted(name: str, x: Array, axis: int | None, descending: bool) -> tuple[Array, Array, int]:
    """Return the results of the op, and the axis along which it sorted."""
    if axis is None:
        x, axis = reshape(x, (x.size,)), -1
    place = normalize_axis(name, axis, x.ndim)
    values, indices = apply(sort_p, moveaxis(x, place, -1), descending=bool(descending))
    return values, indices, place


@composed
def sort(x: Array, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Array:
    """Sort along ``axis`` in ascending (or ``descending``) order; None sorts the flattened ``x``.

    Always stable, whatever ``stable`` says. NaN is larger than every number. Gradients go back to where the elements
    came from. Long rows use radix sort: time is proportional to the number of elements."""
    values, _, place = _sorted("sort", x, axis, descending)
    return moveaxis(values, -1, place)


@composed
@of_axisless
def argsort(x: Array, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the int64 positions that sort ``x``: ``take_along_axis(x, argsort(x), axis)`` is sorted."""
    _, indices, place = _sorted("argsort", x, axis, descending)
    return moveaxis(indices, -1, place)


@composed
@of_axisless
def topk(x: Array, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> TopK:
    """Return the ``k`` largest elements along ``axis``, in descending order, and their int64 positions: (values,
    indices).

    Unless ``largest``, the smallest ones in ascending order. The first of equal elements come first; NaN counts as
    the largest. The result is sorted, whatever ``sorted`` says. ShapeError unless 0 ≤ k ≤ the size of the axis."""
    place = normalize_axis("topk", axis, x.ndim)
    if not 0 <= k <= x.shape[place]:
        raise ShapeError(f"[topk] k={k} of the {x.shape[place]} elements along axis {axis} of shape {x.shape}.")
    values, indices, place = _sorted("topk", x, place, largest)
    return TopK(*(moveaxis(narrow(ranked, -1, 0, k), -1, place) for ranked in (values, indices)))
