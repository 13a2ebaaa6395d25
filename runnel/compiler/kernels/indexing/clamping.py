"""Clamped indices: no input can make a kernel read or write outside its buffers."""

from __future__ import annotations

from runnel.core.dtypes import int64
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr


def clamped(index: Expr, last: Expr) -> Expr:
    """``index`` clamped to [0, last]."""
    wide = index if index.dtype is int64 else Apply(scalar.cast, (index,), int64)
    return Apply(scalar.minimum, (Apply(scalar.maximum, (wide, Const(0, int64)), int64), last), int64)
