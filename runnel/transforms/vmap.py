"""``vmap``: a function on one element as a function on a batch of them."""

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
    """``fn`` for all elements at once: the function whose arguments and results have an axis that numbers elements.

    Args:
        fn: takes and returns trees of tensors, of one element.
        in_axes: where the elements are in the arguments: an axis, which may be negative; None for what is the same for
            all; or a tuple with an entry for each argument, each of these, or a tree of them down to some depth of
            the argument (a prefix). What has an axis is an array, of one size along it.
        out_axes: where they shall be in the results: an axis, None for what is the same for all, or a tree of them.

    Keyword arguments are the same for all elements. ``fn`` runs once, on tensors of one element's shape; values of
    batched tensors cannot be looked at in it. Random numbers drawn with a key per element are those of a loop;
    generators draw other numbers for each element.
    """

    @functools.wraps(fn)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = pytree.flatten(args)
        prefix = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        axes = _axes_of("in_axes", prefix, structure)
        if isinstance(prefix, tuple) and len(prefix) != len(args):
            raise ArgumentError(f"[vmap] in_axes has {len(prefix)} entries for {len(args)} arguments.")
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
    """The axis for each leaf, from a tree of axes that may end further up."""
    result: list[Axis] = []
    leaves, form = pytree.flatten(prefix)
    axes = iter(leaves)
    pairs: list[tuple[pytree.Structure, pytree.Structure]] = [(form, structure)]
    while pairs:
        mine, theirs = pairs.pop()
        if not isinstance(mine, pytree.Branch):
            axis = next(axes)
            if axis is not None and (not is_single(axis) or isinstance(axis, bool)):
                raise ArgumentError(f"[vmap] {name} holds axes and None; received {axis!r}.")
            result += [axis] * len(pytree.paths(theirs))
            continue
        fits = isinstance(theirs, pytree.Branch) and (mine.kind, mine.names) == (theirs.kind, theirs.names)
        if not fits or len(mine.children) != len(theirs.children):  # type: ignore[union-attr]
            raise ArgumentError(f"[vmap] {name} {prefix!r} is no prefix of a tree of the form {structure!r}.")
        pairs += reversed([*zip(mine.children, theirs.children, strict=True)])  # type: ignore[union-attr]
    return result


def _array(leaf: Any, axis: Axis, path: str) -> Any:
    """A leaf of the arguments: a tensor where it has elements."""
    if axis is None:
        return leaf
    x = leaf.read() if isinstance(leaf, ArrayMethods) else asarray(leaf) if hasattr(leaf, "__array__") else None
    if x is None:
        raise ArgumentError(
            f"[vmap] argument {path} is a {type(leaf).__name__} and has no axis {axis}; its entry in in_axes is None."
        )
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"[vmap] in_axes names axis {axis} of argument {path}, whose shape is {x.shape}.")
    return x


def _size(leaves: list[Any], axes: list[Axis], structure: pytree.Structure) -> int:
    sizes = {
        path: x.shape[axis]
        for x, axis, path in zip(leaves, axes, pytree.paths(structure), strict=True)
        if axis is not None
    }
    if not sizes:
        raise ArgumentError("[vmap] nothing is mapped: in_axes is None for every argument.")
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{path}: {size}" for path, size in sizes.items())
        raise ShapeError(f"[vmap] the mapped axes must have one size; received {listed}.")
    return next(iter(sizes.values()))


def _ended(level: Batching, out: Any, axis: Axis) -> Tensor | None:
    """A result outside of the level."""
    if out is None:
        return None
    x = asarray(out)
    values, is_stacked = level.split(x)
    if axis is None:
        if is_stacked:
            raise ArgumentError("[vmap] out_axes is None for a result that differs from element to element.")
        return values
    if not is_stacked:
        values = broadcast_to(values, (level.size, *values.shape))
    if not -values.ndim <= axis < values.ndim:
        raise AxisError(f"[vmap] out_axes names axis {axis} of a result with {values.ndim} axes.")
    moved: Tensor = moveaxis(values, 0, axis)
    return moved
