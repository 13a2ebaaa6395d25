"""Forward-mode transforms of functions: ``jvp``, and ``linearize`` for many tangents at one point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.core import pytree
from runnel.core.errors import DTypeError, GradientError, ShapeError
from runnel.ops import zeros_like
from runnel.tensor.creation import asarray
from runnel.tensor.forward import Forward, Transpose
from runnel.tensor.grad_mode import RECORDING, recording
from runnel.tensor.handle import plain
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.transforms.gradients import as_float, pair_of, vjp


def jvp(fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Return ``fn(*primals)`` and its derivative along ``tangents``: the pair (y, Jacobian·tangents).

    The tangent of a result that is not floating-point is zero. Under ``no_grad`` the results have no tape; their
    tangents are the same.

    Args:
        fn: a function from trees of tensors to a tree of tensors, or with ``has_aux`` to a pair of it and anything.
        primals: a tuple or list of the arguments.
        tangents: for each argument, a tree of the same structure. Each leaf has the shape and dtype of the primal, or
            is None for zero. It must be None if the primal is not a floating-point tensor.
        has_aux: whether ``fn`` returns a pair; its second item is then the third result.

    Example:
        >>> y, tangent = rn.jvp(lambda x: x * x, (rn.asarray(3.0),), (rn.asarray(1.0),))
        >>> y.item(), tangent.item()
        (9.0, 6.0)
    """
    for name, listed in (("primals", primals), ("tangents", tangents)):
        if not isinstance(listed, tuple | list):
            raise GradientError(
                f"[jvp] {name} must be a tuple with an item for each argument; got {type(listed).__name__}."
            )
    leaves, structure = pytree.flatten(tuple(primals))
    directions = directions_of("jvp", tangents, structure)
    level, mode = Forward(), RECORDING.get()
    with level, recording(True):
        pairs = zip(leaves, directions, strict=True)
        result = fn(*pytree.unflatten(structure, [_passed(level, x, t) for x, t in pairs]))
    output, aux = pair_of("jvp", result) if has_aux else (result, None)
    outs, form = pytree.flatten(output)
    ends = [_primal_and_tangent(level, out, mode) for out in outs]
    answer = tuple(pytree.unflatten(form, side) for side in zip(*ends, strict=True)) if ends else (output, output)
    return (*answer, without_tangents(level, aux)) if has_aux else answer


def directions_of(name: str, tangents: Sequence[Any], structure: pytree.Structure) -> list[Any]:
    """Return the leaves of ``tangents``; raise GradientError unless they have the ``structure`` of the primals."""
    directions, theirs = pytree.flatten(tuple(tangents))
    if theirs != structure:
        raise GradientError(
            f"[{name}] the tangents must have the structure of the primals, {structure!r}; got {theirs!r}."
        )
    return directions


def direction_of(name: str, x: Tensor, direction: Any) -> Tensor:
    """Return ``direction`` as a tangent of the primal ``x``; raise an error if it does not fit."""
    if not x.dtype.is_inexact:
        raise DTypeError(f"[{name}] the tangent of a primal of dtype {x.dtype.name} must be None.")
    t = asarray(direction) if isinstance(direction, ArrayMethods) else asarray(direction, x.dtype, device=x.device)
    if t.shape != x.shape:
        raise ShapeError(f"[{name}] a tangent must have the shape {x.shape} of its primal; got {t.shape}.")
    if t.dtype is not x.dtype:
        raise DTypeError(f"[{name}] a tangent must have the dtype {x.dtype.name} of its primal; got {t.dtype.name}.")
    return t


def _passed(level: Forward, leaf: Any, direction: Any) -> Any:
    if direction is None:
        return leaf
    x = asarray(leaf)
    return level.dual(x.handle(), direction_of("jvp", x, direction))


def _primal_and_tangent(level: Forward, out: Any, mode: bool) -> tuple[Any, Any]:
    """Return a result and its tangent, on a tape if ``mode`` says so."""
    if out is None:
        return None, None
    primal, tangent = level.split(asarray(out))
    ends = primal, zeros_like(primal.without_tape()) if tangent is None else tangent
    return ends if mode else (plain(ends[0]), plain(ends[1]))


def without_tangents(level: Forward, tree: Any) -> Any:
    """Return a tree with the primals of ``level`` in place of its tensors."""
    leaves, structure = pytree.flatten(tree)
    return pytree.unflatten(structure, [level.split(x)[0] if isinstance(x, Tensor) else x for x in leaves])


def linearize(fn: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return ``fn(*primals)`` and a linear function from tangents of the primals to the tangent of the result.

    ``fn`` runs once; the linear function reuses its values. The tangent of a result that is not floating-point is zero.

    Args:
        fn: a function that returns a tree of tensors, or with ``has_aux`` a pair of it and anything.
        primals: trees of floating-point tensors.
        has_aux: whether ``fn`` returns a pair; its second item is then the third result.
    """
    leaves, structure = pytree.flatten(tuple(primals))
    xs = [as_float("linearize", leaf) for leaf in leaves]
    out, pull, *aux = vjp(fn, *pytree.unflatten(structure, xs), has_aux=has_aux)
    out_leaves, form = pytree.flatten(out)
    places = [i for i, y in enumerate(out_leaves) if isinstance(y, ArrayMethods)]
    outs = [out_leaves[i].read() for i in places]

    def pulled(seeds: list[Tensor]) -> list[Tensor]:
        cotangents = list(out_leaves)
        for i, seed in zip(places, seeds, strict=True):
            cotangents[i] = seed
        return pytree.flatten(pull(pytree.unflatten(form, cotangents)))[0]

    transpose = Transpose(pulled, outs, xs)

    def linear(*tangents: Any) -> Any:
        """Return the derivative along ``tangents``."""
        directions = directions_of("linearize", tangents, structure)
        in_tangents = [
            None if t is None else direction_of("linearize", x, t) for x, t in zip(xs, directions, strict=True)
        ]
        out_tangents = transpose.tangents(in_tangents, keep=True)
        answers = list(out_leaves)
        for i, y, t in zip(places, outs, out_tangents, strict=True):
            answers[i] = zeros_like(y.without_tape()) if t is None else t
        return pytree.unflatten(form, answers)

    return (out, linear, *aux)
