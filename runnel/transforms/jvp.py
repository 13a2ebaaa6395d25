"""``jvp``: forward-mode differentiation of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.core import pytree
from runnel.core.errors import DTypeError, GradientError, ShapeError
from runnel.ops import zeros_like
from runnel.tensor.creation import asarray
from runnel.tensor.forward import Forward
from runnel.tensor.grad_mode import RECORDING, recording
from runnel.tensor.handle import plain
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.transforms.gradients import pair_of


def jvp(fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """``fn(*primals)`` and its derivative along ``tangents``: the pair (y, Jacobian·tangents).

    Args:
        fn: takes and returns trees of tensors.
        primals: the arguments, as a tuple or list.
        tangents: a tree for each of them, of the same structure. Each leaf has the shape and dtype of the primal's, or
            is None, which means zero; what is no floating tensor has None.
        has_aux: ``fn`` returns a pair of what is differentiated and anything else, which becomes the third result.

    Results that are not floating have tangents of zeros. ``no_grad`` is about the tape: around the call it changes
    nothing but that the results have none.
    """
    for name, listed in (("primals", primals), ("tangents", tangents)):
        if not isinstance(listed, tuple | list):
            raise GradientError(
                f"[jvp] {name} are a tuple, an entry for each argument; received {type(listed).__name__}."
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
    """The leaves of ``tangents``; GradientError unless they have the ``structure`` of the primals."""
    directions, theirs = pytree.flatten(tuple(tangents))
    if theirs != structure:
        raise GradientError(
            f"[{name}] the tangents must have the structure of the primals, {structure!r}; received {theirs!r}."
        )
    return directions


def direction_of(name: str, x: Tensor, direction: Any) -> Tensor:
    """A tangent of the primal ``x``."""
    if not x.dtype.is_inexact:
        raise DTypeError(f"[{name}] a primal of dtype {x.dtype.name} has no tangent; pass None for it.")
    t = asarray(direction) if isinstance(direction, ArrayMethods) else asarray(direction, x.dtype, device=x.device)
    if t.shape != x.shape:
        raise ShapeError(f"[{name}] a tangent has shape {t.shape}, its primal {x.shape}.")
    if t.dtype is not x.dtype:
        raise DTypeError(f"[{name}] a tangent is {t.dtype.name}, its primal {x.dtype.name}; cast it.")
    return t


def _passed(level: Forward, leaf: Any, direction: Any) -> Any:
    """What the function is given for a leaf of the primals."""
    if direction is None:
        return leaf
    x = asarray(leaf)
    return level.dual(x.handle(), direction_of("jvp", x, direction))


def _primal_and_tangent(level: Forward, out: Any, mode: bool) -> tuple[Any, Any]:
    """A result and its tangent, on a tape if ``mode`` says so."""
    if out is None:
        return None, None
    primal, tangent = level.split(asarray(out))
    ends = primal, zeros_like(primal.detach()) if tangent is None else tangent
    return ends if mode else (plain(ends[0]), plain(ends[1]))


def without_tangents(level: Forward, tree: Any) -> Any:
    """A tree whose tensors of ``level`` are their primals."""
    leaves, structure = pytree.flatten(tree)
    return pytree.unflatten(structure, [level.split(x)[0] if isinstance(x, Tensor) else x for x in leaves])
