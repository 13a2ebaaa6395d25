"""Elementwise primitives whose formula is in ``loops.formulas.library``: their registration in the tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.core.dtypes import FLOATS, from_numpy
from runnel.core.tables import Op
from runnel.loops import scalar
from runnel.loops.formulas import table
from runnel.loops.formulas.computed import Computed
from runnel.loops.formulas.value import Value
from runnel.loops.scalar import ScalarOp
from runnel.ops.family import elementwise

Formula = Callable[..., Value]


def scalar_operation(
    name: str,
    arity: int,
    formula: Formula,
    cost: int,
    *,
    result: str = "same",
    on_bits: bool = False,
    kinds: tuple[str, ...] = ("float",),
) -> ScalarOp:
    """A row of the table of scalar operations, and of that of formulas. In NumPy it is the formula, too."""

    def in_numpy(*arrays: Any) -> Any:
        together = np.broadcast_arrays(*arrays)
        values = [Computed(np.ravel(a), from_numpy(a.dtype)) for a in together]
        with np.errstate(all="ignore"):
            value: Any = formula(*values)
        return value.array.reshape(together[0].shape)

    op = scalar.row(name, arity, in_numpy, result, cost)
    table.TABLE[op] = table.Row(formula, kinds, on_bits)
    return op


def function_of_floats(name: str, signature: str, doc: str, formula: Formula, cost: int) -> Op:
    """An elementwise op of floats."""
    op = Op(name, signature, doc, is_late=True)
    elementwise(op, scalar_operation(name, len(signature.split(",")), formula, cost), FLOATS)
    return op
