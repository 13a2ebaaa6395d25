"""Stacking, splitting, blocks and repetition of arrays."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.core.dispatch import TensorLike, required
from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError
from runnel.core.viewing import viewing
from runnel.ops.arguments import (
    Array,
    as_shape,
    as_sizes,
    broadcast_shapes as meeting_shape,
    is_single,
    normalize_axes,
    normalize_axis,
)
from runnel.ops.elementwise.arithmetic import multiply
from runnel.ops.indexing.gather import take
from runnel.ops.promotion import meet
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.padding import pad
from runnel.ops.shapes.pieces import concat, concat_p, flip, narrow, split, stack
from runnel.ops.shapes.views import expand_dims, permute, reshape, squeeze


def atleast_1d(*arrays: Array) -> Any:
    """Return each array with at least one axis; several arrays return a tuple."""
    return _each(arrays, lambda x: reshape(x, (1,)) if x.ndim == 0 else x)


def atleast_2d(*arrays: Array) -> Any:
    """Return each array with at least two axes, new ones first; several arrays return a tuple."""
    return _each(arrays, lambda x: reshape(x, (1,) * (2 - x.ndim) + x.shape))


def atleast_3d(*arrays: Array) -> Any:
    """Return each array with at least three axes: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1), as in NumPy."""
    return _each(
        arrays, lambda x: x if x.ndim > 2 else reshape(x, {0: (1, 1, 1), 1: (1, x.size, 1)}.get(x.ndim, (*x.shape, 1)))
    )


def _each(arrays: tuple[Any, ...], function: Any) -> Any:
    if len(arrays) == 1 and not isinstance(arrays[0], TensorLike):
        arrays = tuple(arrays[0])
    results = tuple(function(x) for x in arrays)
    return results[0] if len(results) == 1 else results


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which arrays of ``shapes`` broadcast; ShapeError if there is none."""
    return meeting_shape("broadcast_shapes", *(as_sizes("broadcast_shapes", shape) for shape in shapes))


def hstack(arrays: Sequence[Array]) -> Array:
    """Join the arrays along axis 1, vectors along axis 0."""
    rows = [atleast_1d(x) for x in arrays]
    return concat(rows, 0 if all(x.ndim == 1 for x in rows) else 1)


def vstack(arrays: Sequence[Array]) -> Array:
    """Join the arrays along axis 0; vectors are rows."""
    return concat([atleast_2d(x) for x in arrays], 0)


def dstack(arrays: Sequence[Array]) -> Array:
    """Join the arrays along axis 2, with at least three axes."""
    return concat([atleast_3d(x) for x in arrays], 2)


def column_stack(arrays: Sequence[Array]) -> Array:
    """Join the arrays along axis 1; vectors are columns."""
    return concat([reshape(x, (x.size, 1)) if x.ndim < 2 else x for x in arrays], 1)


def block_diag(*arrays: Array) -> Array:
    """Return the matrix with the arrays as blocks on its diagonal; vectors are rows, numbers 1 × 1 matrices."""
    if not arrays:
        raise ShapeError("[block_diag] needs at least one array.")
    blocks = meet(concat_p, *(atleast_2d(x) for x in arrays))
    if any(x.ndim != 2 for x in blocks):
        raise ShapeError(f"[block_diag] takes matrices; got shapes {', '.join(str(x.shape) for x in arrays)}.")
    width, left, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        rows.append(pad(x, ((0, 0), (left, width - left - x.shape[1]))))
        left += x.shape[1]
    return concat(rows, 0)


@viewing
def chunk(x: Array, chunks: int, axis: int = 0) -> tuple[Array, ...]:
    """Split ``x`` along ``axis`` into at most ``chunks`` pieces of equal size, except possibly the last (as
    PyTorch)."""
    as_sizes("chunk", (max(operator.index(chunks), 0), 1 << 20))  # so many pieces that no list holds them are refused
    if chunks < 1:
        raise ShapeError(f"[chunk] there must be at least one piece; got chunks={chunks}.")
    n = x.shape[normalize_axis("chunk", axis, x.ndim)]
    return split(x, max(-(-n // chunks), 1), axis) if n else (x,) * chunks


@viewing
def tensor_split(x: Array, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Array, ...]:
    """Split ``x`` along ``axis`` before the given positions, or into pieces whose sizes differ by at most 1.

    The larger pieces come first."""
    place = normalize_axis("tensor_split", axis, x.ndim)
    n = x.shape[place]
    if is_single(indices_or_sections):
        count = operator.index(indices_or_sections)  # type: ignore[arg-type]
        if count < 1:
            raise ShapeError(f"[tensor_split] there must be at least one piece; got {count}.")
        as_sizes("tensor_split", (count, 1 << 20))  # so many pieces that no list holds them are refused
        sizes = [n // count + (i < n % count) for i in range(count)]
        return split(x, sizes, place)
    cuts = [slice(None, at).indices(n)[1] for at in as_shape("tensor_split", indices_or_sections)]
    edges = list(zip([0, *cuts], [*cuts, n], strict=True))
    return tuple(narrow(x, place, min(a, b), max(b - a, 0)) for a, b in edges)


def hsplit(x: Array, indices_or_sections: int | Sequence[int]) -> tuple[Array, ...]:
    """Apply :func:`tensor_split` along axis 1 (vectors: axis 0), into pieces of one size."""
    return _even_pieces("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1, 1)


def vsplit(x: Array, indices_or_sections: int | Sequence[int]) -> tuple[Array, ...]:
    """Apply :func:`tensor_split` along axis 0, into pieces of one size."""
    return _even_pieces("vsplit", x, indices_or_sections, 0, 2)


def dsplit(x: Array, indices_or_sections: int | Sequence[int]) -> tuple[Array, ...]:
    """Apply :func:`tensor_split` along axis 2, into pieces of one size."""
    return _even_pieces("dsplit", x, indices_or_sections, 2, 3)


def _even_pieces(name: str, x: Array, cuts: Any, axis: int, ndim: int) -> tuple[Array, ...]:
    if x.ndim < ndim:
        raise ShapeError(f"[{name}] needs {ndim} axes at least; got shape {x.shape}.")
    if is_single(cuts) and (operator.index(cuts) < 1 or x.shape[axis] % operator.index(cuts)):
        raise ShapeError(f"[{name}] axis {axis} of shape {x.shape} cannot be cut into {cuts} equal pieces.")
    return tensor_split(x, cuts, axis)


@viewing
def unstack(x: Array, axis: int = 0) -> tuple[Array, ...]:
    """Return one array for each position along ``axis``: the inverse of ``stack``."""
    place = normalize_axis("unstack", axis, x.ndim)
    return tuple(squeeze(narrow(x, place, i, 1), place) for i in range(x.shape[place]))


def fliplr(x: Array) -> Array:
    """Reverse the order along axis 1."""
    return flip(x, 1)


def flipud(x: Array) -> Array:
    """Reverse the order along axis 0."""
    normalize_axis("flipud", 0, x.ndim)
    return flip(x, 0)


def tile(x: Array, repetitions: int | Sequence[int]) -> Array:
    """Repeat ``x`` as a whole, ``repetitions`` times along each axis, or along the last axes."""
    times = as_sizes("tile", repetitions)
    ndim = max(len(times), x.ndim)
    times, shape = (1,) * (ndim - len(times)) + times, (1,) * (ndim - x.ndim) + x.shape
    apart = reshape(x, tuple(n for size in shape for n in (1, size)))
    wide = broadcast_to(apart, tuple(n for pair in zip(times, shape, strict=True) for n in pair))
    return reshape(wide, tuple(t * n for t, n in zip(times, shape, strict=True))).separate()


def repeat(x: Array, repeats: Array | int | Sequence[int], axis: int | None = None) -> Array:
    """Repeat each element along ``axis`` (None: of ``x`` flattened) ``repeats`` times.

    ``repeats`` is one number, or one for each element, which must be known: a compiled function takes those that it
    does not compute."""
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    place = normalize_axis("repeat", axis, x.ndim)
    traced = "[repeat] the numbers of repetitions decide the shape and must be known; they are computed here."
    counts = required(repeats, traced) if isinstance(repeats, TensorLike) else np.asarray(repeats)
    n = x.shape[place]
    if counts.dtype.kind not in "iu" or counts.ndim > 1 or counts.size not in (1, n) or (counts < 0).any():
        raise ShapeError(f"[repeat] repeats must be whole numbers from 0 up, one or {n}; got {counts.tolist()}.")
    if counts.size == 1:
        times = int(counts.reshape(()))
        wide = broadcast_to(expand_dims(x, place + 1), (*x.shape[: place + 1], times, *x.shape[place + 1 :]))
        return reshape(wide, (*x.shape[:place], n * times, *x.shape[place + 1 :])).separate()
    return take(x, x.lift(np.repeat(np.arange(n), counts), int64), place)


def kron(x: Array, y: Array) -> Array:
    """Return the Kronecker product: one block of ``y`` for each element of ``x``, scaled by it."""
    ndim = max(x.ndim, y.ndim)
    left, right = ((1,) * (ndim - z.ndim) + z.shape for z in (x, y))
    blocks, inside = tuple(n for size in left for n in (size, 1)), tuple(n for size in right for n in (1, size))
    product = multiply(reshape(x, blocks), reshape(y, inside))
    return reshape(product, tuple(a * b for a, b in zip(left, right, strict=True)))


def meshgrid(*arrays: Array, indexing: str = "xy") -> tuple[Array, ...]:
    """Return each vector repeated along the axes of the others.

    The axes have the order of the arguments ("ij"), or the first two exchanged ("xy"), as in the Array API and
    NumPy."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"[meshgrid] indexing must be 'xy' or 'ij'; got {indexing!r}.")
    if len(arrays) == 1 and not isinstance(arrays[0], TensorLike):
        arrays = tuple(arrays[0])
    if any(x.ndim > 1 for x in arrays):
        raise ShapeError(f"[meshgrid] takes vectors; got shapes {', '.join(str(x.shape) for x in arrays)}.")
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[:2] = [1, 0]
    sizes = tuple(arrays[i].size for i in order)
    return tuple(
        broadcast_to(reshape(x, tuple(x.size if i == k else 1 for i in order)), sizes) for k, x in enumerate(arrays)
    )


def cartesian_prod(*arrays: Array) -> Array:
    """Return the rows of all choices of one element from each vector, the last varying fastest; one vector is
    returned as it is."""
    if len(arrays) == 1:
        return arrays[0]
    grids = meshgrid(*meet(concat_p, *arrays), indexing="ij")
    return stack([reshape(x, (x.size,)) for x in grids], 1)


def combinations(x: Array, r: int = 2, with_replacement: bool = False) -> Array:
    """Return the rows of all choices of ``r`` elements of the vector ``x``, in order."""
    if x.ndim != 1 or not 0 <= operator.index(r) <= max(x.size, 64):
        raise ShapeError(f"[combinations] x must be a vector and r at least 0; got shape {x.shape} and r={r}.")
    r = int(r)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(x.size), r)), np.int64)
    return take(x, x.lift(rows.reshape(len(rows), r), int64), 0)


@viewing
def unflatten(x: Array, axis: int, sizes: Sequence[int]) -> Array:
    """Split the axis ``axis`` into axes of ``sizes``, one of which may be -1."""
    place = normalize_axis("unflatten", axis, x.ndim)
    target = as_shape("unflatten", sizes)
    if -1 in target:
        rest = -math.prod(target)
        target = tuple(x.shape[place] // rest if n == -1 and rest > 0 else n for n in target)
    if math.prod(target) != x.shape[place] or min(target, default=0) < 0:
        raise ShapeError(f"[unflatten] axis {axis} of shape {x.shape} has {x.shape[place]} elements, not {target}.")
    return reshape(x, (*x.shape[:place], *target, *x.shape[place + 1 :]))


def rot90(x: Array, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """Rotate ``x`` ``k`` times by 90° in the plane of two axes, from the first toward the second."""
    plane = normalize_axes("rot90", axes, x.ndim)
    if len(plane) != 2:
        raise ShapeError(f"[rot90] axes must be two; got {axes}.")
    first, second = (normalize_axis("rot90", a, x.ndim) for a in axes)
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    turns = operator.index(k) % 4
    if turns == 0:
        return x.handle()
    if turns == 2:
        return flip(x, (first, second))
    return permute(flip(x, second), order) if turns == 1 else flip(permute(x, order), second)
