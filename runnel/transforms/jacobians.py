"""Jacobians and Hessians of functions: ``jacfwd``, ``jacrev`` and ``hessian``."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from runnel.core import pytree
from runnel.core.errors import GradientError
from runnel.ops import cast, moveaxis, narrow, reshape
from runnel.ops.arguments import as_shape, is_single
from runnel.tensor.creation import asarray, eye
from runnel.tensor.tensor import Tensor
from runnel.transforms.gradients import as_float, vjp
from runnel.transforms.jvp import jvp
from runnel.transforms.vmap import vmap


def jacfwd(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of ``fn`` by columns, which suits few arguments and many results.

    The Jacobian of a result of shape (*m) by an argument of shape (*n) has shape (*m, *n). For trees it is a tree
    like the result, in which each leaf is a tree like the argument.

    Args:
        fn: a function from trees of floating-point tensors to such a tree, or with ``has_aux`` to a pair of it and
            anything.
        argnums: the position of the argument, or several positions for a tuple of Jacobians.
        has_aux: whether ``fn`` returns a pair; the function then returns the pair (Jacobian, second item).
    """

    @functools.wraps(fn)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        call, chosen = _by_arguments("jacfwd", fn, args, kwargs, argnums)
        leaves, structure = pytree.flatten(chosen)
        xs = [as_float("jacfwd", leaf) for leaf in leaves]

        def column(*tangents: Tensor) -> Any:
            return jvp(call, pytree.unflatten(structure, xs), pytree.unflatten(structure, tangents), has_aux)[1:]

        columns, *aux = vmap(column, out_axes=(0, None) if has_aux else (0,))(*_basis(xs))
        outs, form = pytree.flatten(columns)
        blocks = [_in_place(_split_columns(asarray(y), xs), structure, argnums) for y in outs]
        answer = pytree.unflatten(form, blocks)
        return (answer, *aux) if has_aux else answer

    return jacobian


def jacrev(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of ``fn`` by rows, which suits many arguments and few results.

    Shapes, trees and arguments are as in :func:`jacfwd`.
    """

    @functools.wraps(fn)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        call, chosen = _by_arguments("jacrev", fn, args, kwargs, argnums)
        out, pull, *aux = vjp(call, *chosen, has_aux=has_aux)
        leaves, form = pytree.flatten(out)
        ys = [as_float("jacrev", y) for y in leaves]
        rows = vmap(lambda *seeds: pull(pytree.unflatten(form, seeds)))(*_basis(ys))
        jacobians, structure = pytree.flatten(rows)
        begins = [0, *itertools.accumulate(y.size for y in ys)]
        blocks = [
            [reshape(narrow(g, 0, begin, y.size), (*y.shape, *g.shape[1:])) for g in jacobians]
            for begin, y in zip(begins, ys, strict=False)
        ]
        answer = pytree.unflatten(form, [_in_place(block, structure, argnums) for block in blocks])
        return (answer, *aux) if has_aux else answer

    return jacobian


def hessian(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the second derivatives of ``fn``, as ``jacfwd(jacrev(fn))``.

    The second derivatives of a scalar by an argument of shape (*n) have shape (*n, *n).
    """
    return jacfwd(jacrev(fn, argnums, has_aux), argnums, has_aux)


def _by_arguments(
    name: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: int | Sequence[int]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return ``fn`` as a function of the arguments at the positions ``argnums``, and these arguments."""
    numbers = as_shape(name, argnums)
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise GradientError(f"[{name}] argnums must be positions of the {len(args)} arguments; got {number}.")

    def call(*chosen: Any) -> Any:
        arguments = list(args)
        for number, value in zip(numbers, chosen, strict=True):
            arguments[number] = value
        return fn(*arguments, **kwargs)

    return call, tuple(args[number] for number in numbers)


def _basis(xs: Sequence[Tensor]) -> list[Tensor]:
    """Return for each of ``xs`` its part of all unit vectors of their joint space, along axis 0."""
    total = sum(x.size for x in xs)
    begins = [0, *itertools.accumulate(x.size for x in xs)]
    return [
        reshape(cast(narrow(eye(total, device=x.device), 1, begin, x.size), x.dtype), (total, *x.shape))
        for begin, x in zip(begins, xs, strict=False)
    ]


def _split_columns(columns: Tensor, xs: Sequence[Tensor]) -> list[Tensor]:
    """Return for each of ``xs`` its block of a Jacobian whose columns lie along axis 0."""
    begins = [0, *itertools.accumulate(x.size for x in xs)]
    return [
        reshape(moveaxis(narrow(columns, 0, begin, x.size), 0, -1), (*columns.shape[1:], *x.shape))
        for begin, x in zip(begins, xs, strict=False)
    ]


def _in_place(blocks: Sequence[Tensor], structure: pytree.Structure, argnums: int | Sequence[int]) -> Any:
    """Return the blocks as trees like the arguments."""
    trees = pytree.unflatten(structure, blocks)
    return trees[0] if is_single(argnums) else trees
