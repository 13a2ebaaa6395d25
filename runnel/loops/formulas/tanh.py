"""The hyperbolic tangent."""

from __future__ import annotations

from typing import Final

from runnel.core.dtypes import float32, float64
from runnel.loops.formulas.exp import expm1_bounded
from runnel.loops.formulas.value import Value

_SATURATED: Final = {float32: 10.0, float64: 22.0}  # beyond, tanh rounds to ±1


def tanh(x: Value) -> Value:
    """tanh |x| = t/(t + 2) with t = e^(2|x|) - 1, which is free of cancellation; the sign of x is restored.

    Measured error: at most 2.27 ULP in float32, 2.25 in float64.
    """
    t = expm1_bounded(abs(x).at_most(_SATURATED[x.dtype]) * 2.0)
    return (t / (t + 2.0)).with_sign_of(x)
