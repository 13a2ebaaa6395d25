"""The reductions of an ``Acc`` of the loop IR: one row each, read by verifier, interpreter and code generation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from runnel.core.dtypes import DType
from runnel.core.records import record
from runnel.loops import scalar
from runnel.loops.scalar import ScalarOp

Identity = Callable[[DType], bool | int | float]


@record
class Reducer:
    """A reduction: ``combine(acc, value)`` is applied element by element, starting from ``identity(dtype)``.

    ``kinds`` are the kinds of dtype it is defined for; ``rounds`` says that floats are rounded at each step, so that
    the result depends on the order.
    """

    name: str
    combine: ScalarOp
    identity: Identity
    kinds: frozenset[str]
    rounds: bool = False

    def has_blocks(self, dtype: DType) -> bool:
        """Whether long sequences of ``dtype`` are accumulated in blocks that are combined pairwise (``ir``)."""
        return self.rounds and dtype.is_float


def lowest(dtype: DType) -> bool | int | float:
    """The value below all others: -inf, the smallest integer, False."""
    if dtype.is_float:
        return -math.inf
    return int(np.iinfo(dtype.numpy).min) if dtype.is_integer else False


def highest(dtype: DType) -> bool | int | float:
    """The value above all others: inf, the largest integer, True."""
    if dtype.is_float:
        return math.inf
    return int(np.iinfo(dtype.numpy).max) if dtype.is_integer else True


_NUMBERS: Final = frozenset({"int", "uint", "float"})
_ORDERED: Final = frozenset({"int", "uint", "float", "bool"})
_TRUTHS: Final = frozenset({"bool"})

REDUCERS: Final = {
    row.name: row
    for row in (
        Reducer("sum", scalar.add, lambda dtype: 0, _NUMBERS, rounds=True),
        Reducer("prod", scalar.mul, lambda dtype: 1, _NUMBERS, rounds=True),
        Reducer("max", scalar.maximum, lowest, _ORDERED),
        Reducer("min", scalar.minimum, highest, _ORDERED),
        Reducer("any", scalar.or_, lambda dtype: False, _TRUTHS),
        Reducer("all", scalar.and_, lambda dtype: True, _TRUTHS),
    )
}
