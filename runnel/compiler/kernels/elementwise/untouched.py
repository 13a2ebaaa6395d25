"""Rows that a kernel may pass over: where a row's bucket is empty and what the kernel would store there lies there
already.

An update of the form ``where(any(g != 0), new, old)`` (optimizers of sparse gradients) is of this kind: with g = 0 the
condition is known, and ``old`` is the value of the Variable that is updated in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.compiler.fusion.clusters import Cluster
from runnel.compiler.fusion.strided import Strided
from runnel.compiler.kernels.places import Place, Space
from runnel.core import tables
from runnel.graph.node import Value
from runnel.loops.rules import BucketSums, Pointwise, Reduction
from runnel.ops.logic import where_p

_OF_EQUAL_VALUES = ("any", "all", "max", "min")  # give that value, however many they are


def leaves_empty_rows(
    cluster: Cluster, views: dict[Value, Strided], sources: dict[Value, Place], targets: dict[Value, list[Place]]
) -> bool:
    """Whether nothing changes in the rows of ``cluster`` for which all its sums of buckets are empty."""
    known: dict[Value, Any] = {}  # values that are the same at each point of such a row
    same: dict[Value, Value] = {}  # members that are another node there
    for node in cluster.members:
        rule = tables.lower.get(node.op) if node.op is not None else None
        if isinstance(rule, BucketSums):
            known[node] = np.zeros((1,) * node.aval.ndim, node.aval.dtype.numpy)
            continue
        values = [_value(views[x].base, x, known) for x in node.inputs]
        if node.op is where_p and values[0] is not None and not values[0].any():
            base = views[node.inputs[2]].base
            same[node] = same.get(base, base)
        elif _is_determined(rule) and all(v is not None for v in values):
            with np.errstate(all="ignore"):
                known[node] = np.asarray(tables.reference[node.op](*values, **node.attrs))  # type: ignore[index]
    return all(
        place.space is Space.VARIABLE and node in same and sources.get(same[node]) is place
        for node in cluster.members
        for place in targets.get(node, ())
    )


def _value(base: Value, read: Value, known: dict[Value, Any]) -> Any:
    """What is read there, as an array of one element; None where it is not known."""
    value = known.get(base)
    if value is None and base.is_constant and base.aval.size == 1:
        value = base.value
    return None if value is None else np.reshape(value, (1,) * read.aval.ndim)


def _is_determined(rule: Any) -> bool:
    return isinstance(rule, Pointwise) or (isinstance(rule, Reduction) and rule.op in _OF_EQUAL_VALUES)
