"""Reverse-mode transforms of functions: ``grad``, ``value_and_grad`` and ``vjp``. They nest.

The tensors among the arguments become leaves of a separate tape, by which the result is differentiated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from runnel.core import pytree
from runnel.core.dtypes import float32, from_numpy
from runnel.core.errors import GradientError
from runnel.ops import cast, full_like, zeros_like
from runnel.ops.arguments import as_shape, is_single
from runnel.tensor import tensor as tensors, tracing
from runnel.tensor.creation import asarray
from runnel.tensor.grad_mode import RECORDING, recording
from runnel.tensor.handle import Record, origin, passed_on, version
from runnel.tensor.levels import Level, every_component
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tape import cotangents, needed_order
from runnel.tensor.tensor import Tensor


def alias(x: Tensor, source: Tensor | None = None) -> Tensor:
    """Return another tensor with the value of ``x`` that requires a gradient.

    Since it is another tensor, other uses of ``x`` do not count. The tape continues from it to ``source``, by default
    ``x``, so that derivatives nest. Without a ``source`` it belongs to the innermost level, which holds the tape of
    everything that is differentiated inside it.
    """
    trace, level = tracing.ACTIVE.trace, tracing.ACTIVE.level
    if source is None and isinstance(level, Level) and x._level is not level:
        lifted: Tensor = level.lifted(x)  # the component continues its own tape, and the handle starts one
        lifted.requires_grad = lifted._is_argument = True
        return lifted
    if x._level is not None and x._level.trace is trace:
        twin = x.untaped()
        twin._serial = tensors.serial_now()
    elif trace is not None:
        twin = tensors.symbolic(tensors.node_of(x, trace))
    elif x._storage is None:
        raise GradientError("[grad] a traced tensor was used after its trace ended.")
    else:
        twin = tensors.from_storage(x.aval, x._storage, *x._layout)
    twin.requires_grad = twin._is_argument = True
    before = x if source is None else source
    if before.requires_grad:
        twin._record = Record(None, (before,), {}, passed_on)
    return twin


class Argument(NamedTuple):
    """An argument to differentiate by.

    Attributes:
        passed: the value to pass to the function.
        leaves: the tensors in it.
        structure: the structure of the gradient.
    """

    passed: Any
    leaves: list[Tensor]
    structure: pytree.Structure

    def answer(self, cotangents: dict[int, tuple[Tensor, Tensor]]) -> Any:
        """Return the cotangents of the leaves as a tree, with zeros for unused leaves. All tensors are new handles."""
        gradients = [cotangents[id(x)][1] if id(x) in cotangents else zeros_like(x.without_tape()) for x in self.nodes]
        return pytree.unflatten(self.structure, [g.handle() for g in gradients])

    @property
    def nodes(self) -> list[Tensor]:
        """The values of the leaves when the function was called; it may have assigned others."""
        return list(map(origin, self.leaves))


def argument(name: str, value: Any) -> Argument:
    """Prepare an argument: a tensor, a Variable, a number, a tree of these, or an object with ``named_parameters()``.

    The gradient by such an object is a dict from names.
    """
    if hasattr(value, "named_parameters"):
        parameters = {path: p for path, p in value.named_parameters() if p.requires_grad}
        leaves = [p.read() for p in parameters.values()]
        return Argument(value, leaves, pytree.flatten(dict.fromkeys(parameters))[1])
    values, structure = pytree.flatten(value)
    leaves = [alias(as_float(name, leaf)) for leaf in values]
    return Argument(pytree.unflatten(structure, leaves), leaves, structure)


def as_float(name: str, leaf: Any) -> Tensor:
    """Return ``leaf`` as a floating-point or complex tensor; raise GradientError if it is not one."""
    if isinstance(leaf, ArrayMethods):
        tensor = leaf.read()
    elif isinstance(leaf, float):
        tensor = tensors.constant(leaf, float32)  # also if it is an input of a program
    elif isinstance(leaf, np.ndarray | np.generic):
        tensor = tensors.from_numpy(np.asarray(leaf), from_numpy(leaf.dtype), copy=True)
    else:
        raise GradientError(
            f"[{name}] arguments must be floating-point tensors; got {type(leaf).__name__}. Select the arguments to "
            "differentiate by with argnums."
        )
    if not tensor.dtype.is_inexact:
        raise GradientError(
            f"[{name}] arguments must be floating-point tensors; got dtype {tensor.dtype.name}. Cast it, or select the "
            "arguments to differentiate by with argnums."
        )
    return tensor


def value_and_grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """Return a function that computes the value of ``fn`` and its gradient by some arguments.

    The gradient by an argument that ``fn`` does not use is zero. If ``fn`` assigns to an argument (``x[i] = v``), the
    gradient is by the value that it was called with. Operations in ``fn`` are recorded even under ``no_grad``.

    Args:
        fn: a function that returns a floating-point tensor of size 1, or with ``has_aux`` a pair of it and anything.
        argnums: the position of the argument, or several positions for a tuple of gradients. An argument is a tensor,
            a tree of tensors (tuples, lists, dicts, dataclasses), or a Module, whose gradient is a dict from the names
            of its Parameters.
        has_aux: whether ``fn`` returns a pair; the value is then this pair.

    Example:
        >>> value, gradient = rn.value_and_grad(lambda x: (x * x).sum())(rn.asarray([1.0, 2.0]))
        >>> value.item(), gradient.tolist()
        (5.0, [2.0, 4.0])
    """
    numbers = as_shape("grad", argnums)

    @functools.wraps(fn)
    def differentiated(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        passed = list(args)
        arguments: list[Argument] = []
        for number in numbers:
            if not -len(args) <= number < len(args):
                raise GradientError(f"[grad] argnums must be positions of the {len(args)} arguments; got {number}.")
            arguments.append(argument("grad", args[number]))
            passed[number] = arguments[-1].passed
        with recording(True):
            result = fn(*passed, **kwargs)
        value = pair_of("grad", result)[0] if has_aux else result
        if not isinstance(value, ArrayMethods) or value.size != 1 or not value.dtype.is_float:
            what = f"a tensor {value.aval}" if isinstance(value, ArrayMethods) else f"a {type(value).__name__}"
            raise GradientError(f"[grad] the function must return one floating-point number; got {what}. Use sum().")
        root = value.read()
        by_leaf = _pulled([root], [full_like(root.without_tape(), 1)], arguments)
        answers = tuple(a.answer(by_leaf) for a in arguments)
        plain = _without_own_tape(result, arguments)
        return plain, answers[0] if is_single(argnums) else answers

    return differentiated


def grad(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of ``fn`` by some arguments.

    The arguments are as in :func:`value_and_grad`. With ``has_aux`` the function returns a pair: the gradient, and the
    second item of the pair that ``fn`` returned.

    Example:
        >>> rn.grad(lambda x: (x * x).sum())(rn.asarray([1.0, 2.0])).tolist()
        [2.0, 4.0]
    """
    both = value_and_grad(fn, argnums, has_aux)

    @functools.wraps(fn)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return differentiated


def vjp(fn: Callable[..., Any], *args: Any, has_aux: bool = False) -> Any:
    """Return ``fn(*args)`` and a function from a cotangent of the result to a tuple of cotangents of the arguments.

    The function may be called several times. If the result is a tree of tensors, its cotangent has the same structure.

    Args:
        fn: a function that returns a tree of tensors, or with ``has_aux`` a pair of it and anything.
        args: trees of floating-point tensors.
        has_aux: whether ``fn`` returns a pair; its second item is then the third result.
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
            raise GradientError(
                f"[vjp] the cotangent must have the structure {structure!r} of the result; got {theirs!r}."
            )
        pairs = [
            (root, cast(g if isinstance(g, ArrayMethods) else asarray(g, root.dtype, device=root.device), root.dtype))
            for root, g in zip(roots, leaves, strict=True)
            if isinstance(root, Tensor) and root.dtype.is_inexact
        ]
        for root, g in pairs:
            if g.shape != root.shape:
                raise GradientError(f"[vjp] a cotangent must have the shape {root.shape} of its result; got {g.shape}.")
        by_leaf = _pulled([root for root, _ in pairs], [g for _, g in pairs], arguments, keep=True)
        return tuple(a.answer(by_leaf) for a in arguments)

    plain = _without_own_tape(result, arguments), pullback
    return (*plain, _without_own_tape(aux, arguments)) if has_aux else plain


def pair_of(name: str, result: Any) -> tuple[Any, Any]:
    """Return the pair that a function with ``has_aux`` returned; raise GradientError if it is not a pair."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise GradientError(f"[{name}] with has_aux the function must return a pair; got {type(result).__name__}.")
    return result


def _pulled(
    roots: Sequence[Tensor], seeds: Sequence[Tensor], arguments: Sequence[Argument], keep: bool = False
) -> dict[int, tuple[Tensor, Tensor]]:
    """Return the cotangents of the arguments' leaves, on a tape if anything else needs a gradient."""
    pairs = [(root, seed) for root, seed in zip(roots, seeds, strict=True) if root.requires_grad]
    roots, seeds = [root for root, _ in pairs], [seed for _, seed in pairs]
    leaves = [leaf for a in arguments for leaf in a.nodes]
    further = any(x.requires_grad for seed in seeds for x in (seed, *every_component(seed)))
    again = RECORDING.get() and (further or _depends_on_more(roots, arguments))
    return cotangents(roots, seeds, leaves, create_graph=again, retain_graph=keep)


def _depends_on_more(roots: Sequence[Tensor], arguments: Sequence[Argument]) -> bool:
    """Return whether an outer tape, or a Parameter read inside, needs a gradient.

    The components of a level's tensors are on outer tapes.
    """
    leaves = {id(leaf): leaf for a in arguments for leaf in a.nodes}
    if any(leaf._record is not None for leaf in leaves.values()):
        return True
    below = [x for root in roots for x in every_component(root) if x.requires_grad]
    return any(x._record is None and id(x) not in leaves for x in needed_order([*roots, *below], frozenset(leaves)))


def _without_own_tape(result: Any, arguments: Sequence[Argument]) -> Any:
    """Return ``result`` without a tape that leads only to the arguments."""
    leaves, structure = pytree.flatten(result)
    roots = [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.requires_grad]
    if not roots:
        return result
    alone = roots if not RECORDING.get() else [x for x in roots if not _leads_further(version(x), arguments)]
    done = {id(x) for x in alone}
    return pytree.unflatten(structure, [x.untaped() if id(x) in done else x for x in leaves])


def _leads_further(x: Tensor, arguments: Sequence[Argument]) -> bool:
    if x._record is None or x._record.freed:
        return False
    try:
        return _depends_on_more([x], arguments)
    except GradientError:  # the pass freed records below it, which it keeps if they lead to more than the arguments
        return False


def zeros_for(x: Tensor) -> Tensor:
    """Return a cotangent of zeros for ``x``."""
    zeros: Tensor = zeros_like(x.without_tape())
    return zeros
