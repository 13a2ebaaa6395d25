"""Calls of Python functions as ops: with NumPy arrays, in program order."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import LOOPED
from runnel.core.dtypes import bool_
from runnel.core.errors import ArgumentError, GradientError
from runnel.core.rules import TRANSPOSED
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.graph.hashing import Identified
from runnel.loops.rules import HostCall
from runnel.ops.arguments import Array

TOKEN: Final = aval((0,), bool_)  # what hands on the order of effects: an array of no elements
_numbers = itertools.count()


class Callback(Identified):
    """``function(*arrays)`` gives an array for each of ``results``. No two are the same, in any process."""

    __slots__ = ("_identity", "function", "name", "results")

    def __init__(self, function: Callable[..., Sequence[Any]], results: tuple[ShapedArray, ...], name: str) -> None:
        self.function = function
        self.results = results
        self.name = name
        self._identity = b"%d, %d of %s" % (os.getpid(), next(_numbers), os.urandom(8))

    @property
    def identity(self) -> bytes:
        return self._identity

    def __repr__(self) -> str:
        return f"<{self.name}>"


callback_p = Op(
    "callback",
    "*operands, token, *, callback, ordered",
    "The arrays that the Python function gives for the operands, and, ordered, a token: an array of no elements that "
    "the next ordered callback reads, so that they run in this order and none is left out.",
    multiple_results=True,
)
lower.register(callback_p, HostCall())
axes.register(callback_p, LOOPED)
jvp.register(callback_p, TRANSPOSED)  # which says that there is none
cost.register(callback_p, lambda *operands, callback, ordered: 0)


@abstract_eval.rule(callback_p)
def _abstract_eval(*operands: ShapedArray, callback: Callback, ordered: bool) -> tuple[ShapedArray, ...]:
    return (*callback.results, TOKEN) if ordered else callback.results


@reference.rule(callback_p)
def _reference(*operands: Any, callback: Callback, ordered: bool) -> tuple[Any, ...]:
    results = tuple(callback.function(*operands[:-1]))
    return (*results, np.zeros(0, np.bool_)) if ordered else results


@vjp.rule(callback_p)
def _vjp(gs: Any, outs: Any, *operands: Array, **attrs: Any) -> tuple[Any, ...]:
    raise GradientError(
        f"[{attrs['callback'].name}] has no gradient: what the function computes is not known. Give it one with "
        "runnel.custom_vjp, or detach what it reads."
    )


def as_expected(name: str, result: Any, expected: ShapedArray) -> Any:
    """Convert the result of a user's function to an array; ArgumentError unless it has ``expected``'s shape and
    dtype."""
    array = np.asarray(result)
    if array.shape != expected.shape or array.dtype != expected.dtype.numpy:
        raise ArgumentError(
            f"[{name}] the function gave an array of shape {array.shape} and dtype {array.dtype}; it was to give "
            f"{expected!r}."
        )
    return array
