"""Constant folding from outside: two new attributes of ops that exist, and a pass that asks for nothing else.

Tables say which ops may be folded, and how; a third file may add rows for its ops. Replaces Runnel's pass `fold`:

    passes.USUAL.without("fold").insert(FOLD, after="decompose")
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runnel import passes

is_const: passes.Table[Callable[..., bool]] = passes.Table(
    "is_const", "rule(*are_constant) -> bool: whether the result is constant, given which inputs are."
)
value_of: passes.Table[Callable[..., np.ndarray]] = passes.Table(
    "value_of", "rule(*arrays, **attrs) -> ndarray: the value of a constant result."
)


def all_constant(*are_constant: bool) -> bool:
    return all(are_constant)


for name, function in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "sqrt": np.sqrt,
}.items():  # fmt: skip
    is_const.register(passes.op(name), all_constant)
    value_of.register(passes.op(name), function)

is_const.register(passes.op("reshape"), all_constant)
value_of.register(passes.op("reshape"), lambda x, shape: x.reshape(shape))


def folded(value: passes.Value) -> passes.Value:
    rule = is_const.get(value.op) if value.op is not None else None
    if rule is None or not rule(*[x.is_constant for x in value.inputs]):
        return value
    array = value_of[value.op](*[x.value for x in value.inputs], **value.attrs)
    return passes.written(lambda: array, where=value.where)


FOLD = passes.Pass(
    "fold_by_attributes",
    "nodes that are constant by attribute `is_const` become constants",
    lambda graph: passes.rewrite(graph, folded),
    needs=("decomposed",),
)
