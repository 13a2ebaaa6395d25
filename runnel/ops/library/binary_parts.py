"""Floats taken apart: x = mantissa · 2^exponent, by NumPy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import ELEMENTWISE
from runnel.core.dispatch import apply
from runnel.core.dtypes import FLOATS, int32
from runnel.core.rules import TRANSPOSED
from runnel.core.tables import Op, abstract_eval, axes, cost, jvp, lower, reference, vjp
from runnel.loops.rules import HostCall
from runnel.ops.arguments import Array, require_dtype
from runnel.ops.arithmetic import multiply, negative
from runnel.ops.conversion import cast
from runnel.ops.family import per_element
from runnel.ops.transcendental import pow


class Frexp(NamedTuple):
    """A mantissa in ±[0.5, 1), or x where it is 0 or not finite, and an exponent of 2."""

    mantissa: Array
    exponent: Array


frexp_p = Op("frexp", "x", "Mantissas and exponents of floats.", multiple_results=True, is_late=True)
lower.register(frexp_p, HostCall())
axes.register(frexp_p, ELEMENTWISE)
cost.register(frexp_p, per_element)
jvp.register(frexp_p, TRANSPOSED)


@abstract_eval.rule(frexp_p)
def _abstract_eval(x: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    require_dtype("frexp", x.dtype, FLOATS)
    return x, aval(x.shape, int32)


@reference.rule(frexp_p)
def _reference(x: Any) -> tuple[Any, Any]:
    mantissa, exponent = np.frexp(x if x.dtype.kind == "f" else x.astype(np.float32))  # NumPy has no rule of bfloat16
    return np.asarray(mantissa, x.dtype), np.asarray(np.where(np.isfinite(mantissa), exponent, 0), np.int32)


@vjp.rule(frexp_p)
def _vjp(gs: Any, outs: Any, x: Array, *, needs_grad: Any) -> tuple[Any]:
    if gs[0] is None:
        return (None,)
    power = cast(negative(outs[1]), x.dtype)
    return (multiply(gs[0], pow(2.0, power)),)


def frexp(x: Array) -> Frexp:
    """The mantissa in ±[0.5, 1) and the int32 exponent with x = mantissa · 2^exponent: a named tuple (mantissa,
    exponent). 0, infinities and NaN are their own mantissas, with the exponent 0."""
    return Frexp(*apply(frexp_p, x))
