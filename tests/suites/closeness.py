"""How far a native result may be from its reference: not at all, unless the op rounds more than once per element."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from runnel.core.avals import ShapedArray
from runnel.core.dtypes import DType, from_numpy
from runnel.core.tables import Op, cost, decompose, lower
from runnel.loops import scalar
from runnel.loops.formulas.table import ULP_BOUNDS
from runnel.loops.ir import Apply, Expr, Ref
from runnel.loops.rules import (
    Attention,
    AttentionGradient,
    DotGeneral,
    Elementwise,
    Reduction,
    SmallSolve,
    Winograd,
    WinogradGradient,
)
from runnel.loops.scalar import ScalarOp

Array = np.ndarray[Any, Any]
HALF_BOUND = 0.51  # computed in float32 and rounded once


def _operations(expr: Expr) -> set[ScalarOp]:
    if not isinstance(expr, Apply):
        return set()
    return {expr.op}.union(*(_operations(a) for a in expr.args))


def ulps_allowed(op: Op, avals: tuple[ShapedArray, ...], attrs: dict[str, Any]) -> float:
    """Units in the last place between ``op`` and its exact value; 0 where it must be the reference to the bit.

    ``avals`` describe the inputs and the result. Sums and products are in another order than NumPy's, so their
    bound grows with the number of terms.
    """
    rule, result = lower.get(op), avals[-1].dtype
    if isinstance(rule, Elementwise):
        refs = [Ref(f"x{i}", a.dtype) for i, a in enumerate(avals[:-1])]
        used = _operations(rule.expr(avals, *refs, **attrs)) & set(ULP_BOUNDS)
        bound = max((ULP_BOUNDS[o].get(result, HALF_BOUND) for o in used), default=0.0)
        return 0.0 if bound <= 0.5 or used == {scalar.sqrt} else bound
    if not result.is_float:
        return 0.0
    if op in decompose or isinstance(rule, (Attention, AttentionGradient)):
        return cost[op](*avals[:-1], **attrs) / max(avals[-1].size, 1)
    if isinstance(rule, (Winograd, WinogradGradient)):  # the transforms cancel what is larger than their results
        return 4.0 * max(avals[0].shape)
    if isinstance(rule, SmallSolve):
        return 4.0 * avals[0].shape[-1] ** 2
    if isinstance(rule, DotGeneral):
        return 2.0 * avals[0].shape[-1]
    if isinstance(rule, Reduction) and rule.op in ("sum", "prod"):
        return 2.0 * (avals[0].size / max(avals[-1].size, 1) + 1)
    return 0.0


def unit(x: Array, dtype: DType, scale: Array) -> Array:
    """One unit in the last place of ``scale`` in ``dtype``, as float64."""
    info = ml_dtypes.finfo(dtype.numpy)
    exponent = np.maximum(np.frexp(np.abs(scale))[1] - 1, int(info.minexp))
    return np.ldexp(1.0, exponent - int(info.nmant))


def bits_differ(got: Array, want: Array) -> Array:
    """Where two arrays of one dtype differ in their bits, a NaN being like any other."""
    if got.dtype.kind in "biu":
        return np.asarray(got != want)
    kind = np.dtype(f"u{got.dtype.itemsize}")
    differ = np.ascontiguousarray(got).view(kind) != np.ascontiguousarray(want).view(kind)
    nan = np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64))
    return np.asarray(differ & ~nan)


def check(got: Array, want: Array, ulps: float, what: Any = "", scale: Array | None = None) -> None:
    """``got`` is ``want`` to the bit, or within ``ulps`` units of ``want`` (of ``scale`` where terms cancel)."""
    assert got.shape == want.shape, what
    if ulps == 0:
        assert got.dtype == want.dtype, what
        wrong = bits_differ(np.atleast_1d(got), np.atleast_1d(want))
        assert not wrong.any(), (what, np.atleast_1d(got)[wrong][:4], np.atleast_1d(want)[wrong][:4])
        return
    dtype = from_numpy(got.dtype)
    exact, actual = want.astype(np.float64), got.astype(np.float64)
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype).astype(np.float64)
        size = np.abs(exact) if scale is None else np.maximum(scale, np.abs(exact))
        near = np.abs(actual - exact) <= ulps * unit(actual, dtype, np.where(np.isfinite(size), size, 1.0))
    same = (actual == rounded) | (np.isnan(actual) & np.isnan(rounded))
    assert (same | (np.isfinite(actual) & near)).all(), (what, got, want)
