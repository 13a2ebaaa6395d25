"""``vmap``: vectorize a function of one element over a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from runnel.core import pytree
from runnel.core.errors import ArgumentError, AxisError, ShapeError
from runnel.ops import broadcast_to, moveaxis
from runnel.ops.arguments import is_single
from runnel.tensor.batching import Batching
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor

Axis = int | None


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Return a function that computes ``fn`` for all elements of a batch at once.

    Its arguments and results have an axis over the elements. Keyword arguments are the same for all elements. ``fn``
    runs once, on tensors with the shape of one element, whose values it cannot read. Random numbers drawn with a key
    for each element are the same as in a loop; generators draw different numbers for each element.

    Args:
        fn: a function from trees of tensors to a tree of tensors, for one element.
        in_axes: the axis over the elements in the arguments, which may be negative; None for arguments that are the
            same for all elements; or a tuple with an item for each argument. An item may be a tree of axes that has
            the structure of the argument down to some depth. All arrays have the same size along their axes.
        out_axes: the axis in the results; None for results that are the same for all elements; or a tree of axes.

    Example:
        >>> rn.vmap(rn.dot, in_axes=(0, None))(rn.ones((5, 3)), rn.ones(3)).shape
        (5,)
    """

    @functools.wraps(fn)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = pytree.flatten(args)
        prefix = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        axes = _axes_of("in_axes", prefix, structure)
        if isinstance(prefix, tuple) and len(prefix) != len(args):
            raise ArgumentError(
                f"[vmap] in_axes must have an item for each of {len(args)} arguments; got {len(prefix)}."
            )
        arrays = [_array(x, axis, path) for x, axis, path in zip(leaves, axes, pytree.paths(structure), strict=True)]
        level = Batching(_size(arrays, axes, structure))
        with level:
            pairs = zip(arrays, axes, strict=True)
            passed = [x if axis is None else level.stack(moveaxis(x, axis, 0)) for x, axis in pairs]
            result = fn(*pytree.unflatten(structure, passed), **kwargs)
            outs, form = pytree.flatten(result)
            ends = _axes_of("out_axes", out_axes, form)
            return pytree.unflatten(form, [_ended(level, x, axis) for x, axis in zip(outs, ends, strict=True)])

    return mapped


def _axes_of(name: str, prefix: Any, structure: pytree.Structure) -> list[Axis]:
    """Return the axis for each leaf, from a tree of axes that may be less deep."""
    result: list[Axis] = []
    leaves, form = pytree.flatten(prefix)
    axes = iter(leaves)
    pairs: list[tuple[pytree.Structure, pytree.Structure]] = [(form, structure)]
    while pairs:
        mine, theirs = pairs.pop()
        if not isinstance(mine, pytree.Branch):
            axis = next(axes)
            if axis is not None and (not is_single(axis) or isinstance(axis, bool)):
                raise ArgumentError(f"[vmap] {name} must contain axes or None; got {axis!r}.")
            result += [axis] * len(pytree.paths(theirs))
            continue
        fits = isinstance(theirs, pytree.Branch) and (mine.kind, mine.names) == (theirs.kind, theirs.names)
        if not fits or len(mine.children) != len(theirs.children):  # type: ignore[union-attr]
            raise ArgumentError(f"[vmap] {name} must be a prefix of a tree of the form {structure!r}; got {prefix!r}.")
        pairs += reversed([*zip(mine.children, theirs.children, strict=True)])  # type: ignore[union-attr]
    return result


def _array(leaf: Any, axis: Axis, path: str) -> Any:
    """Return a leaf of the arguments, as a tensor if it has an axis."""
    if axis is None:
        return leaf
    x = leaf.read() if isinstance(leaf, ArrayMethods) else asarray(leaf) if hasattr(leaf, "__array__") else None
    if x is None:
        raise ArgumentError(
            f"[vmap] argument {path} must be an array to have axis {axis}; got {type(leaf).__name__}. Pass None for "
            "it in in_axes."
        )
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"[vmap] in_axes must be an axis of argument {path} of shape {x.shape}; got {axis}.")
    return x


def _size(leaves: list[Any], axes: list[Axis], structure: pytree.Structure) -> int:
    sizes = {
        path: x.shape[axis]
        for x, axis, path in zip(leaves, axes, pytree.paths(structure), strict=True)
        if axis is not None
    }
    if not sizes:
        raise ArgumentError("[vmap] in_axes must have an axis for at least one argument; got None for all.")
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{path}: {size}" for path, size in sizes.items())
        raise ShapeError(f"[vmap] the mapped axes must have the same size; got {listed}.")
    return next(iter(sizes.values()))


def _ended(level: Batching, out: Any, axis: Axis) -> Tensor | None:
    """Return a result outside the level, with its elements along ``axis``."""
    if out is None:
        return None
    x = asarray(out)
    values, is_stacked = level.split(x)
    if axis is None:
        if is_stacked:
            raise ArgumentError("[vmap] out_axes must be an axis for a result that differs between elements; got None.")
        return values
    if not is_stacked:
        values = broadcast_to(values, (level.size, *values.shape))
    if not -values.ndim <= axis < values.ndim:
        raise AxisError(f"[vmap] out_axes must be an axis of a result with {values.ndim} axes; got {axis}.")
    moved: Tensor = moveaxis(values, 0, axis)
    return moved
