"""Constants of one element: common values are part of a kernel's code, others are params.

So one kernel serves all batch sizes, epsilons and probabilities: means divide by a count that is a param.
"""

from __future__ import annotations

import math

import numpy as np

from runnel.core.dtypes import DType, bool_, int16, int32, int64
from runnel.graph.node import Value
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr, Param

_COMMON = (0, 1, -1, 2, -2, 0.5, -0.5)
_SIGNED = {2: int16, 4: int32, 8: int64}


def is_common(node: Value) -> bool:
    """Whether the value of a constant of one element is part of the code."""
    value = node.value.reshape(-1)[0].item()
    return node.aval.dtype is bool_ or value in _COMMON or not math.isfinite(value)


def literal(node: Value) -> Const:
    """The constant as part of the code."""
    return Const(node.value.reshape(-1)[0].item(), node.aval.dtype)


def bits(node: Value) -> int:
    """The constant as the value of a param."""
    value, dtype = np.ascontiguousarray(node.value).reshape(-1)[:1], node.aval.dtype
    if dtype.is_float:
        return int(value.view(_SIGNED[dtype.itemsize].numpy)[0])
    return int(value.astype(np.int64)[0])


def from_bits(param: Param, dtype: DType) -> Expr:
    """The constant that a param holds."""
    if not dtype.is_float:
        return param if dtype is int64 else Apply(scalar.cast, (param,), dtype)
    signed = _SIGNED[dtype.itemsize]
    narrow: Expr = param if signed is int64 else Apply(scalar.cast, (param,), signed)
    return Apply(scalar.bitcast, (narrow,), dtype)
