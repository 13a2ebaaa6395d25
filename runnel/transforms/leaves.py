"""The tensors in a function's arguments, as leaves of a tape of their own to differentiate by."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runnel.core import pytree
from runnel.core.dtypes import float32, from_numpy
from runnel.core.errors import GradientError
from runnel.ops import zeros_like
from runnel.tensor import tensor as tensors, tracing
from runnel.tensor.handle import Record, origin, passed_on
from runnel.tensor.levels import Level
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor


def alias(x: Tensor, source: Tensor | None = None) -> Tensor:
    """A tensor with the value of ``x`` that needs a gradient. It is another tensor, so that readings of ``x`` by other
    ways do not count; and the tape goes on from it to ``source``, by default ``x``, so that derivatives nest. Without a
    ``source`` it is a tensor of the innermost level: what is differentiated inside of a level has its tape there."""
    trace, level = tracing.ACTIVE.trace, tracing.ACTIVE.level
    if source is None and isinstance(level, Level) and x._level is not level:
        lifted: Tensor = level.lifted(x)  # the component goes on with its own tape, and the handle begins one
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
    """One argument to differentiate by: what to pass to the function, its leaves, and the structure of the answer."""

    passed: Any
    leaves: list[Tensor]
    structure: pytree.Structure

    def answer(self, cotangents: dict[int, tuple[Tensor, Tensor]]) -> Any:
        """The cotangents of the leaves in the argument's structure, handles of their own; zeros for a leaf that was not
        used."""
        gradients = [cotangents[id(x)][1] if id(x) in cotangents else zeros_like(x.detach()) for x in self.nodes]
        return pytree.unflatten(self.structure, [g.handle() for g in gradients])

    @property
    def nodes(self) -> list[Tensor]:
        """What the leaves were when the function was called; it may have given them other values."""
        return list(map(origin, self.leaves))


def argument(name: str, value: Any) -> Argument:
    """Prepare an argument: a tensor, a Variable, a number, a tree of these, or an object with ``named_parameters()``,
    for which the answer is a dict by name."""
    if hasattr(value, "named_parameters"):
        parameters = {path: p for path, p in value.named_parameters() if p.requires_grad}
        leaves = [p.read() for p in parameters.values()]
        return Argument(value, leaves, pytree.flatten(dict.fromkeys(parameters))[1])
    values, structure = pytree.flatten(value)
    leaves = [alias(as_float(name, leaf)) for leaf in values]
    return Argument(pytree.unflatten(structure, leaves), leaves, structure)


def as_float(name: str, leaf: Any) -> Tensor:
    """``leaf`` as a tensor that has derivatives."""
    if isinstance(leaf, ArrayMethods):
        tensor = leaf.read()
    elif isinstance(leaf, float):
        tensor = tensors.constant(leaf, float32)  # one that a program is given included
    elif isinstance(leaf, np.ndarray | np.generic):
        tensor = tensors.from_numpy(np.asarray(leaf), from_numpy(leaf.dtype), copy=True)
    else:
        raise GradientError(
            f"[{name}] cannot differentiate by a {type(leaf).__name__}; pass floating tensors, or choose the arguments "
            "with argnums."
        )
    if not tensor.dtype.is_inexact:
        raise GradientError(
            f"[{name}] cannot differentiate by a tensor of dtype {tensor.dtype.name}; cast it, or choose the "
            "arguments with argnums."
        )
    return tensor
