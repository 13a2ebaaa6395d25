"""Views: the same elements under another shape or order. Nothing is computed; lowering folds the index maps into loads.

A ``map`` rule answers, for each axis of the input, which of its elements an element of the result is:
``offset + Σ step · index along the result's axis``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.axes import ELEMENTWISE, AxisRule, batching
from runnel.core.dispatch import TensorLike, apply
from runnel.core.dtypes import DType
from runnel.core.errors import AxisError, ShapeError
from runnel.core.records import record
from runnel.core.rules import linear
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp, write_back
from runnel.core.viewing import viewing
from runnel.loops.rules import Elementwise, View
from runnel.ops.arguments import Array, Axis, as_shape, as_tuple, is_single, normalize_axes, normalize_axis
from runnel.ops.shapes.bits import of_bits

AxisMap = tuple[int, tuple[tuple[int, int], ...]]  # (offset, ((result axis, step), ...)) for one axis of the input

# --- reshape ------------------------------------------------------------------------------------------------------

reshape_p = Op("reshape", "x, *, shape", "The elements of x in row-major order under another shape.")
reference.register(reshape_p, lambda x, *, shape: x.reshape(shape))
vjp.register(reshape_p, lambda g, out, x, *, shape: (apply(reshape_p, g, shape=x.shape),))
jvp.register(reshape_p, linear(reshape_p))
cost.register(reshape_p, lambda x, *, shape: 0)
write_back.register(reshape_p, lambda x, new, *, shape: apply(reshape_p, new, shape=x.shape))


@abstract_eval.rule(reshape_p)
def _reshape_abstract_eval(x: ShapedArray, *, shape: Shape) -> ShapedArray:
    if math.prod(shape) != x.size or min(shape, default=0) < 0:
        raise ShapeError(f"[reshape] shape {x.shape} has {x.size} elements and cannot become {shape}.")
    return aval(shape, x.dtype)


def _reshape_map(aval_in: ShapedArray, aval_out: ShapedArray, *, shape: Shape) -> list[AxisMap] | None:
    """Return the map of a reshape that splits axes, or adds and drops axes of size 1; None for merged axes."""
    if aval_in.size == 0:
        return [(0, ())] * aval_in.ndim
    maps: list[AxisMap] = []
    out_axis = 0
    for size in aval_in.shape:
        parts: list[int] = []
        remaining = size
        while remaining > 1 and out_axis < aval_out.ndim:
            part = aval_out.shape[out_axis]
            if remaining % part:
                return None
            parts.append(out_axis)
            remaining //= part
            out_axis += 1
        step = size
        terms: list[tuple[int, int]] = []
        for axis in parts:
            step //= aval_out.shape[axis]
            if aval_out.shape[axis] != 1:
                terms.append((axis, step))
        maps.append((0, tuple(terms)))
    return maps


lower.register(reshape_p, View(_reshape_map))


@batching(reshape_p)
def _reshape_batched(size: int, x: Array, *, shape: Shape) -> Array:
    return reshape(x, (size, *shape))


@viewing
def reshape(x: Array, shape: int | Iterable[int], *, copy: bool | None = None) -> Array:
    """Return ``x`` with another shape; one size may be -1 and is computed from the others.

    A tensor is a value, so ``copy`` makes no difference. With a dtype for ``shape``, as PyTorch's ``x.view(dtype)``,
    the result shows the same bytes as numbers of that dtype.
    """
    try:
        target = as_shape("reshape", shape)
    except (ShapeError, TypeError):
        if isinstance(shape, DType):
            return of_bits(x, shape)
        raise
    if -1 in target:
        rest = -math.prod(target)
        if target.count(-1) > 1 or rest <= 0 or x.size % rest:
            raise ShapeError(f"[reshape] shape {x.shape} has {x.size} elements and cannot become {target}.")
        target = tuple(x.size // rest if n == -1 else n for n in target)
    return x if target == x.shape else x.apply_view(reshape_p, {"shape": target})


@viewing
def flatten(x: Array, start: int = 0, end: int = -1) -> Array:
    """Merge the axes ``start`` to ``end`` into one."""
    if x.ndim == 0:
        return reshape(x, (1,))
    first, last = normalize_axis("flatten", start, x.ndim), normalize_axis("flatten", end, x.ndim)
    if first > last:
        raise AxisError(f"[flatten] start {start} comes after end {end} in an array of {x.ndim} dimensions.")
    return reshape(x, (*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))


@viewing
def expand_dims(x: Array, axis: int | Sequence[int]) -> Array:
    """Insert axes of size 1 at the positions ``axis`` of the result."""
    added = len(as_tuple(axis))
    new_axes = normalize_axes("expand_dims", axis, x.ndim + added)
    sizes = iter(x.shape)
    return reshape(x, tuple(1 if i in new_axes else next(sizes) for i in range(x.ndim + added)))


@viewing
def squeeze(x: Array, axis: Axis = None) -> Array:
    """Remove the axes ``axis``, which must have size 1 (None: all axes of size 1)."""
    if axis is None:
        return reshape(x, tuple(n for n in x.shape if n != 1))
    axes = normalize_axes("squeeze", axis, x.ndim)
    for a in axes:
        if x.shape[a] != 1:
            raise ShapeError(
                f"[squeeze] axis {a} of shape {x.shape} has size {x.shape[a]}; only size 1 can be dropped."
            )
    return reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in axes))


# --- permute ------------------------------------------------------------------------------------------------------

permute_p = Op("permute", "x, *, axes", "x with its axes in the order axes.")
reference.register(permute_p, lambda x, *, axes: np.transpose(x, axes))
jvp.register(permute_p, linear(permute_p))
cost.register(permute_p, lambda x, *, axes: 0)
write_back.register(permute_p, lambda x, new, *, axes: apply(permute_p, new, axes=inverse_order(axes)))


@abstract_eval.rule(permute_p)
def _permute_abstract_eval(x: ShapedArray, *, axes: tuple[int, ...]) -> ShapedArray:
    if sorted(axes) != list(range(x.ndim)):
        raise AxisError(f"[permute] axes must name each of the {x.ndim} axes of shape {x.shape} once; got {axes}.")
    return aval(tuple(x.shape[a] for a in axes), x.dtype)


@vjp.rule(permute_p)
def _permute_vjp(g: Array, out: Array, x: Array, *, axes: tuple[int, ...]) -> tuple[Array]:
    return (apply(permute_p, g, axes=inverse_order(axes)),)


def _permute_map(aval_in: ShapedArray, aval_out: ShapedArray, *, axes: tuple[int, ...]) -> list[AxisMap]:
    return [(0, ((place, 1),)) for place in inverse_order(axes)]


lower.register(permute_p, View(_permute_map))


@batching(permute_p)
def _permute_batched(size: int, x: Array, *, axes: tuple[int, ...]) -> Array:
    return permute(x, (0, *(a + 1 for a in axes)))


def inverse_order(axes: Sequence[int]) -> tuple[int, ...]:
    """Return the order that undoes ``axes``."""
    return tuple(axes.index(i) for i in range(len(axes)))


@viewing
def permute(x: Array, axes: Sequence[int]) -> Array:
    """Put the axes in the order ``axes``, each of them once. Copies nothing."""
    order = tuple(normalize_axis("permute", a, x.ndim) for a in as_tuple(axes))
    return x if order == tuple(range(x.ndim)) else x.apply_view(permute_p, {"axes": order})


def with_axis(x: Array) -> Array:
    """Return ``x``, or a vector of one element for an array without axes."""
    return x if x.ndim else reshape(x, (1,))


@viewing
def transpose(x: Array, first: int = -2, second: int = -1) -> Array:
    """Exchange two axes, by default the last two."""
    order: list[Any] = list(range(x.ndim or 1))
    a, b = (normalize_axis("transpose", axis, len(order)) for axis in (first, second))
    order[a], order[b] = b, a
    return permute(x, order) if x.ndim else x


@viewing
def moveaxis(x: Array, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Move the axis ``source`` to the position ``destination``, or several axes, each to its position.

    The other axes keep their order."""
    if is_single(source) and is_single(destination):
        a, b = (normalize_axis("moveaxis", v, x.ndim) for v in (*as_tuple(source), *as_tuple(destination)))
        order = [i for i in range(x.ndim) if i != a]
        order.insert(b, a)
        return permute(x, order)
    moved, places = (
        [normalize_axis("moveaxis", a, x.ndim) for a in as_tuple(entry)] for entry in (source, destination)
    )
    if len(moved) != len(places) or len(set(moved)) != len(moved) or len(set(places)) != len(places):
        raise AxisError(f"[moveaxis] axes {tuple(moved)} and places {tuple(places)} must be as many, each named once.")
    order = [i for i in range(x.ndim) if i not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place, axis)
    return permute(x, order)


# --- new axes -----------------------------------------------------------------------------------------------------


def bare(x: Array) -> Array:
    """Remove the batching axis of size 1 from an operand that is the same for all elements."""
    return reshape(x, x.shape[1:])


@record(slots=False)
class Leading(AxisRule):
    """Axis 0 of the result, and of the operands at ``places``, numbers independent rows: the elements' rows are put one
    after the other. The other operands must be the same for all elements."""

    places: tuple[int, ...] = (0,)

    def batched(self, op: Op, size: int, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if any(x.shape[0] == size != 1 for i, x in enumerate(operands) if i not in self.places):
            return None
        if any(x.shape[0] != size for i, x in enumerate(operands) if i in self.places):
            return None
        merged = [merged_rows(x) if i in self.places else bare(x) for i, x in enumerate(operands)]
        return split_rows(apply(op, *merged, **attrs), size, operands[self.places[0]].shape[1])


def merged_rows(x: Array) -> Array:
    """Reshape x[size, n, ...] to x[size·n, ...]."""
    return reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def split_rows(x: Array, size: int, rows: int) -> Array:
    """Reshape x[size·rows, ...] to x[size, rows, ...]."""
    return reshape(x, (size, rows, *x.shape[1:]))


contiguous_p = Op("contiguous", "x", "x, stored densely in row-major order.")
abstract_eval.register(contiguous_p, lambda x: x)
reference.register(contiguous_p, lambda x: np.ascontiguousarray(x).reshape(np.shape(x)))
vjp.register(contiguous_p, lambda g, out, x: (g,))
lower.register(contiguous_p, Elementwise(lambda avals, x: x))
cost.register(contiguous_p, lambda x: 0)
axes.register(contiguous_p, ELEMENTWISE)
jvp.register(contiguous_p, linear(contiguous_p))


def contiguous(x: Array) -> Array:
    """Return ``x`` stored densely in row-major order, a copy if it is another view."""
    return apply(contiguous_p, x)


FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def of_axisless(function: FunctionT) -> FunctionT:
    """Make a function along an axis accept a 0-d array as a vector of one element, as in PyTorch.

    The results are 0-d, or have no elements."""

    @functools.wraps(function)
    def called(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.ndim:
            return function(x, *args, **kwargs)
        named = {name: _vector(value) for name, value in kwargs.items()}
        result = function(_vector(x), *map(_vector, args), **named)
        if isinstance(result, TensorLike):
            return _number(function.__name__, result)
        return type(result)(*(_number(function.__name__, part) for part in result))

    return called  # type: ignore[return-value]


def _vector(value: Any) -> Any:
    return with_axis(value) if isinstance(value, TensorLike) else value


def _number(name: str, value: Any) -> Any:
    if not value.size:
        return value
    if value.size != 1:
        raise ShapeError(f"[{name}] takes one element of a 0-d array; {value.size} are asked for.")
    return reshape(value, ())
