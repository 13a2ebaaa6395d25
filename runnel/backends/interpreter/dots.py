"""Products of pairs of bfloat16 with the rounding of dot instructions, in NumPy.

VDPBF16PS (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2) adds the product of the second
elements of a pair, then that of the first ones, each fused and rounded to nearest; subnormal operands and results are
zeros. BFDOT (Arm Architecture Reference Manual for A-profile, functions BFDotAdd and BFAdd, without FEAT_EBF16) adds
the two products, rounded to odd, and that to the total, rounded to odd; subnormals are zeros likewise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from runnel.loops.formulas.computed import fused_multiply_add, sum_to_odd

Array = np.ndarray[Any, Any]
_SMALLEST: Final = np.finfo(np.float32).smallest_normal


def vdpbf16ps(a: Array, b: Array, total: Array) -> Array:
    """``total`` + Σ a[:, k]·b[k], for float32 matrices that hold an even number of bfloat16 along k."""
    a, b, total = _flushed(a), _flushed(b), _flushed(total)
    for pair in range(0, a.shape[1], 2):
        for k in (pair + 1, pair):
            total = _flushed(fused_multiply_add(a[:, k, None], b[None, k], total))
    return total


def bfdot(a: Array, b: Array, total: Array) -> Array:
    """Return the same."""
    a, b, wide = (_flushed(x).astype(np.float64) for x in (a, b, total))
    for k in range(0, a.shape[1], 2):
        first, second = a[:, k, None] * b[None, k], a[:, k + 1, None] * b[None, k + 1]
        wide = _odd(wide, _odd(first, second))
    return wide.astype(np.float32)


def _odd(x: Array, y: Array) -> Array:
    """x + y of numbers that float32 holds, or of products of two bfloat16: rounded to odd in float32."""
    total: Array = sum_to_odd(x, y)
    near = total.astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.int32)
    away = np.where(np.abs(back) > np.abs(total), -1, 1).astype(np.int32)
    inexact = np.isfinite(total) & (back != total) & (bits & 1 == 0)
    return _flushed(np.where(inexact, bits + away, bits).astype(np.int32).view(np.float32)).astype(np.float64)


def _flushed(x: Array) -> Array:
    """Subnormal numbers as zeros of their sign."""
    flushed: Array = np.where(np.abs(x) < _SMALLEST, np.copysign(np.zeros_like(x), x), x)
    return flushed


RULES: Final[dict[str, Callable[[Array, Array, Array], Array]]] = {"vdpbf16ps": vdpbf16ps, "bfdot": bfdot}
