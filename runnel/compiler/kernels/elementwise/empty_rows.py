"""Row skipping: rows in which nothing is summed and the kernel would store the values that are there already.

An update of the form ``where(any(g != 0), new, old)`` (optimizers of sparse gradients) is of this kind: with g = 0 the
condition is known, and ``old`` is the value of the Variable that is updated in place.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.compiler.fusion.cluster import Cluster
from runnel.compiler.fusion.strided import Strided
from runnel.compiler.kernels.allocations import Allocation, MemorySpace
from runnel.compiler.kernels.lowering import lowering_of
from runnel.core import tables
from runnel.core.dtypes import int64
from runnel.graph.node import Value
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr, For, Let, Ref, Stmt, Var
from runnel.ops.logic import where_p


def leaves_empty_rows(
    cluster: Cluster,
    views: dict[Value, Strided],
    sources: dict[Value, Allocation],
    targets: dict[Value, list[Allocation]],
) -> bool:
    """Whether rows of ``cluster`` remain unchanged if none of its sums over rows has an element there."""
    known: dict[Value, Any] = {}  # values that are constant in such a row
    same: dict[Value, Value] = {}  # members that equal another node there
    for node in cluster.members:
        lowering = lowering_of(node)
        empty = lowering.value_of_empty_row(node)
        if empty is not None:
            known[node] = empty
            continue
        values = [_value(views[x].base, x, known) for x in node.inputs]
        if node.op is where_p and values[0] is not None and not values[0].any():
            base = views[node.inputs[2]].base
            same[node] = same.get(base, base)
        elif lowering.is_function_of_elements(node) and all(v is not None for v in values):
            with np.errstate(all="ignore"):
                known[node] = np.asarray(tables.reference[node.op](*values, **node.attrs))  # type: ignore[index]
    return all(
        allocation.space is MemorySpace.VARIABLE and node in same and sources.get(same[node]) is allocation
        for node in cluster.members
        for allocation in targets.get(node, ())
    )


def _value(base: Value, read: Value, known: dict[Value, Any]) -> Any:
    """The value that is read there, as an array of one element; None if unknown."""
    value = known.get(base)
    if value is None and base.is_constant and base.aval.size == 1:
        value = base.value
    return None if value is None else np.reshape(value, (1,) * read.aval.ndim)


def unless_empty(lengths: Sequence[Expr], block: Sequence[Stmt]) -> list[Stmt]:
    """``block``, unless all ``lengths`` are 0."""
    total = functools.reduce(lambda x, y: Apply(scalar.add, (x, y), int64), lengths)
    once = Apply(scalar.minimum, (total, Const(1, int64)), int64)
    return [Let("named", once), For(Var("turn"), 0, Ref("named", int64), "seq", tuple(block))]
