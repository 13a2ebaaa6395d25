"""``grad``, ``value_and_grad`` and ``vjp``: functions that differentiate functions. They nest."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from runnel.core import pytree
from runnel.core.errors import GradientError
from runnel.ops import cast, full_like, zeros_like
from runnel.ops.arguments import as_shape, is_single
from runnel.tensor.creation import asarray
from runnel.tensor.grad_mode import RECORDING, recording
from runnel.tensor.handle import version
from runnel.tensor.levels import every_component
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tape import cotangents, needed_order
from runnel.tensor.tensor import Tensor
from runnel.transforms.leaves import Argument, argument


def value_and_grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """A function that gives ``fn``'s value and its gradient with respect to the arguments numbered ``argnums``.

    Args:
        fn: returns a floating tensor of size 1; with ``has_aux`` a pair of it and anything else.
        argnums: one number, or several for a tuple of gradients. An argument is a tensor, a tree of tensors (tuples,
            lists, dicts, dataclasses), or a Module, whose gradient is a dict by the names of its Parameters.
        has_aux: then the value is the pair that ``fn`` returned.

    What ``fn`` does not use has a gradient of zeros. ``fn`` may give its arguments other values (``x[i] = v``): the
    gradient is that by the values it was given. Operations in it are recorded whatever the mode around the call.
    """
    numbers = as_shape("grad", argnums)

    @functools.wraps(fn)
    def differentiated(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        passed = list(args)
        arguments: list[Argument] = []
        for number in numbers:
            if not -len(args) <= number < len(args):
                raise GradientError(f"[grad] argnums names argument {number}; the function was given {len(args)}.")
            arguments.append(argument("grad", args[number]))
            passed[number] = arguments[-1].passed
        with recording(True):
            result = fn(*passed, **kwargs)
        value = pair_of("grad", result)[0] if has_aux else result
        if not isinstance(value, ArrayMethods) or value.size != 1 or not value.dtype.is_float:
            what = f"a tensor {value.aval}" if isinstance(value, ArrayMethods) else f"a {type(value).__name__}"
            raise GradientError(f"[grad] the function must return one floating number; it returned {what}. Use sum().")
        root = value.read()
        by_leaf = _pulled([root], [full_like(root.detach(), 1)], arguments)
        answers = tuple(a.answer(by_leaf) for a in arguments)
        plain = _without_own_tape(result, arguments)
        return plain, answers[0] if is_single(argnums) else answers

    return differentiated


def grad(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of ``fn``, as :func:`value_and_grad` does; with ``has_aux`` a pair of the
    gradient and what ``fn`` returned beside its value."""
    both = value_and_grad(fn, argnums, has_aux)

    @functools.wraps(fn)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return differentiated


def vjp(fn: Callable[..., Any], *args: Any, has_aux: bool = False) -> Any:
    """``fn(*args)``, and the function that takes a cotangent of the result to cotangents of all arguments.

    The result may be a tree of tensors; the cotangent then has the same structure. It may be called several times. With
    ``has_aux`` ``fn`` returns a pair of the result and anything else, which comes third.
    """
    arguments = [argument("vjp", value) for value in args]
    with recording(True):
        result = fn(*[a.passed for a in arguments])
    aux = None
    if has_aux:
        result, aux = pair_of("vjp", result)
    leaves, structure = pytree.flatten(result)
    roots = [version(leaf.read()) if isinstance(leaf, ArrayMethods) else leaf for leaf in leaves]

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        leaves, theirs = pytree.flatten(cotangent)
        if theirs != structure:
            raise GradientError("[vjp] the cotangent must have the structure of the function's result.")
        pairs = [
            (root, cast(g if isinstance(g, ArrayMethods) else asarray(g, root.dtype, device=root.device), root.dtype))
            for root, g in zip(roots, leaves, strict=True)
            if isinstance(root, Tensor) and root.dtype.is_inexact
        ]
        for root, g in pairs:
            if g.shape != root.shape:
                raise GradientError(f"[vjp] a cotangent has shape {g.shape}, the result {root.shape}.")
        by_leaf = _pulled([root for root, _ in pairs], [g for _, g in pairs], arguments, keep=True)
        return tuple(a.answer(by_leaf) for a in arguments)

    plain = _without_own_tape(result, arguments), pullback
    return (*plain, _without_own_tape(aux, arguments)) if has_aux else plain


def pair_of(name: str, result: Any) -> tuple[Any, Any]:
    """What a function with ``has_aux`` returned: its result, and anything else."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise GradientError(
            f"[{name}] with has_aux the function must return a pair; it returned {type(result).__name__}."
        )
    return result


def _pulled(
    roots: Sequence[Tensor], seeds: Sequence[Tensor], arguments: Sequence[Argument], keep: bool = False
) -> dict[int, tuple[Tensor, Tensor]]:
    """The cotangents of the arguments' leaves. They can be differentiated again if anything else needs a gradient."""
    pairs = [(root, seed) for root, seed in zip(roots, seeds, strict=True) if root.requires_grad]
    roots, seeds = [root for root, _ in pairs], [seed for _, seed in pairs]
    leaves = [leaf for a in arguments for leaf in a.nodes]
    further = any(x.requires_grad for seed in seeds for x in (seed, *every_component(seed)))
    again = RECORDING.get() and (further or _depends_on_more(roots, arguments))
    return cotangents(roots, seeds, leaves, create_graph=again, retain_graph=keep)


def _depends_on_more(roots: Sequence[Tensor], arguments: Sequence[Argument]) -> bool:
    """Whether anything but the arguments' own leaves needs a gradient: an outer tape, or a Parameter read inside. The
    components of tensors of a level are on tapes that are further out."""
    leaves = {id(leaf): leaf for a in arguments for leaf in a.nodes}
    if any(leaf._record is not None for leaf in leaves.values()):
        return True
    below = [x for root in roots for x in every_component(root) if x.requires_grad]
    return any(x._record is None and id(x) not in leaves for x in needed_order([*roots, *below], frozenset(leaves)))


def _without_own_tape(result: Any, arguments: Sequence[Argument]) -> Any:
    """``result`` without the tape that only led to the arguments; one that leads further is left in place."""
    leaves, structure = pytree.flatten(result)
    roots = [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.requires_grad]
    if not roots:
        return result
    alone = roots if not RECORDING.get() else [x for x in roots if not _leads_further(version(x), arguments)]
    done = {id(x) for x in alone}
    return pytree.unflatten(structure, [x.untaped() if id(x) in done else x for x in leaves])


def _leads_further(x: Tensor, arguments: Sequence[Argument]) -> bool:
    return x._record is not None and not x._record.freed and _depends_on_more([x], arguments)


def zeros_for(x: Tensor) -> Tensor:
    """A cotangent of zeros for ``x``."""
    zeros: Tensor = zeros_like(x.detach())
    return zeros
